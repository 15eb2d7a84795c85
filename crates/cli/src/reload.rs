//! What a running daemon reads again when it gets SIGHUP: the keys of its cluster.
//!
//! It reads in a thread of its own, since a disk may take its time and the ring does not wait. What
//! cannot be used changes nothing.

use std::io;
use std::path::PathBuf;
use std::thread;

use rota_net::{KeyRing, Keys, NodeConfig};
use signal_hook::consts::SIGHUP;
use signal_hook::iterator::Signals;

/// What a daemon was started with.
pub struct Reload {
    path: PathBuf,
    config: NodeConfig,
    keys: Option<Keys>,
}

impl Reload {
    pub const fn new(path: PathBuf, config: NodeConfig, keys: Option<Keys>) -> Self {
        Self { path, config, keys }
    }

    /// Reads again whenever the process is told to, as long as it lives.
    pub fn on_signal(mut self) -> io::Result<()> {
        let mut signals = Signals::new([SIGHUP])?;
        thread::Builder::new()
            .name("rota-reload".to_owned())
            .spawn(move || {
                for _ in signals.forever() {
                    if let Err(what) = self.read_again() {
                        tracing::error!("nothing was changed: {what}");
                    }
                }
            })?;
        Ok(())
    }

    fn read_again(&mut self) -> Result<(), String> {
        let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", self.path.display());
        let config = NodeConfig::load(&self.path).map_err(|error| wrong(&error))?;
        let (Some(keys), Some(file)) = (&self.keys, &config.key_file) else {
            return self.read_without_keys(&config);
        };
        let ring = KeyRing::load(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let takes: Vec<u16> = ring.ids().map(|id| id.get()).collect();
        let sends = ring.sending().get();
        keys.set(ring);
        tracing::info!(sends, ?takes, "the keys were read again");
        self.config.key_file.clone_from(&config.key_file);
        self.warn_of_others(&config);
        Ok(())
    }

    fn read_without_keys(&self, config: &NodeConfig) -> Result<(), String> {
        if self.keys.is_some() || config.key_file.is_some() {
            let what = "whether datagrams are sealed cannot change while a daemon runs";
            return Err(what.to_owned());
        }
        self.warn_of_others(config);
        Ok(())
    }

    fn warn_of_others(&self, config: &NodeConfig) {
        if *config != self.config {
            tracing::warn!(
                "of what has changed in the configuration, only keys count without a restart"
            );
        }
    }
}

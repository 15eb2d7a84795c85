//! One process of a service, until it is told to stop.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rota_core::contract::NodeId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::log::{Log, LogFormat};
use crate::say::complain;
use crate::which::Which;

/// The time between two looks whether it is to stop, or has.
const LOOK: Duration = Duration::from_millis(50);

/// Options of a command that runs a process.
#[derive(Clone, Debug, clap::Args)]
pub struct ServeOptions {
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Which node of it this is: its number, from-hostname (rota-2 is node 2), or from-ordinal (rota-2 is node 3)
    #[arg(long, value_name = "ID")]
    node: Which,
    /// How the log on standard error is written: for people, or one JSON object on a line
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log: LogFormat,
    /// Stop, as on SIGTERM, when standard input ends: for programs that start processes and may be killed
    #[arg(long, hide = true)]
    until_input_ends: bool,
}

/// A process.
pub trait Serves {
    /// The reason why it has stopped by itself.
    fn ended(&self) -> Option<String>;

    /// Puts what may change of its configuration file into force; whether that has changed.
    ///
    /// # Errors
    /// In words: then nothing has changed.
    fn reload(&self, file: &Path) -> Result<bool, String>;
}

/// Runs until it is told to stop by a signal. `start`: the process of this node.
pub fn main<P: Serves>(
    options: &ServeOptions,
    start: impl FnOnce(NodeId) -> Result<P, String>,
) -> ExitCode {
    let (_log, _levels) = Log::start(options.log);
    let (process, (stop, reload)) = match open(options, start) {
        Ok(opened) => opened,
        Err(what) => {
            complain(&what);
            return ExitCode::from(2);
        }
    };
    while !stop.load(Ordering::Relaxed) {
        if let Some(why) = process.ended() {
            complain(&format!("the replica has stopped: {why}"));
            return ExitCode::FAILURE;
        }
        if reload.swap(false, Ordering::Relaxed) {
            reload_from(&options.config, &process);
        }
        thread::sleep(LOOK);
    }
    tracing::info!("the process stops: it has been told to");
    drop(process);
    ExitCode::SUCCESS
}

fn reload_from(file: &Path, process: &impl Serves) {
    match process.reload(file) {
        Ok(true) => tracing::info!("the users of the file are in force"),
        Ok(false) => tracing::info!(
            "the file has the same users as before; all else of it counts at the next start"
        ),
        Err(error) => tracing::error!(%error, "the file is not taken: the users stay as they were"),
    }
}

/// Whether signals have told the process to stop, and to read its file again.
type Told = (Arc<AtomicBool>, Arc<AtomicBool>);

fn open<P>(
    options: &ServeOptions,
    start: impl FnOnce(NodeId) -> Result<P, String>,
) -> Result<(P, Told), String> {
    let node = options.node.id()?;
    let (stop, reload) = Told::default();
    for (signal, flag) in [(SIGINT, &stop), (SIGTERM, &stop), (SIGHUP, &reload)] {
        signal_hook::flag::register(signal, Arc::clone(flag))
            .map_err(|error| format!("signals: {error}"))?;
    }
    if options.until_input_ends {
        let stop = Arc::clone(&stop);
        thread::spawn(move || {
            let mut byte = [0];
            while io::stdin().read(&mut byte).is_ok_and(|read| read > 0) {}
            stop.store(true, Ordering::Relaxed);
        });
    }
    let process = start(node)?;
    tracing::info!(node = node.get(), "the process serves clients");
    Ok((process, (stop, reload)))
}

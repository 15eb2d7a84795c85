//! `rota kv serve`: one process of a store.

use std::io::{self, Read as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rota_core::contract::NodeId;
use rota_kv::Kv;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::status::read;
use crate::log::{Log, LogFormat};
use crate::say::complain;

/// How often it is looked whether it is to stop, or has.
const LOOK: Duration = Duration::from_millis(50);

/// Options of `rota kv serve`.
#[derive(Clone, Debug, clap::Args)]
pub struct ServeOptions {
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Which node of it this is
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u16).range(1..))]
    node: u16,
    /// How the log on standard error is written: for people, or one JSON object on a line
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log: LogFormat,
    /// Stop, as on SIGTERM, when standard input ends: for programs that start processes and may be killed
    #[arg(long, hide = true)]
    until_input_ends: bool,
}

/// Runs until it is told to stop by a signal.
pub fn main(options: &ServeOptions) -> ExitCode {
    let _log = Log::start(options.log);
    let (kv, stop) = match open(options) {
        Ok(opened) => opened,
        Err(what) => {
            complain(&what);
            return ExitCode::from(2);
        }
    };
    while !stop.load(Ordering::Relaxed) {
        if let Some(why) = kv.status().ended {
            complain(&format!("the replica has stopped: {why}"));
            return ExitCode::FAILURE;
        }
        thread::sleep(LOOK);
    }
    tracing::info!("the process stops: it has been told to");
    kv.stop();
    ExitCode::SUCCESS
}

fn open(options: &ServeOptions) -> Result<(Kv, Arc<AtomicBool>), String> {
    let config = read(&options.config)?;
    let node = NodeId::new(options.node).ok_or("0 is no node")?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
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
    rota_daemon::ask_for_descriptors(config.kv.clients() as usize);
    let kv = Kv::start(&config, node).map_err(|error| error.to_string())?;
    tracing::info!(node = options.node, "the process serves clients");
    Ok((kv, stop))
}

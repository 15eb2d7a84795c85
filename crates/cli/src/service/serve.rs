//! One process of a service, until it is told to stop.

use std::io::{self, Read as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rota_core::contract::NodeId;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::log::{Log, LogFormat};
use crate::say::complain;

/// The time between two looks whether it is to stop, or has.
const LOOK: Duration = Duration::from_millis(50);

/// Options of a command that runs a process.
#[derive(Clone, Debug, clap::Args)]
pub struct ServeOptions {
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
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

/// A process.
pub trait Serves {
    /// The reason why it has stopped by itself.
    fn ended(&self) -> Option<String>;
}

/// Runs until it is told to stop by a signal. `start`: the process of this node.
pub fn main<P: Serves>(
    options: &ServeOptions,
    start: impl FnOnce(NodeId) -> Result<P, String>,
) -> ExitCode {
    let _log = Log::start(options.log);
    let (process, stop) = match open(options, start) {
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
        thread::sleep(LOOK);
    }
    tracing::info!("the process stops: it has been told to");
    drop(process);
    ExitCode::SUCCESS
}

fn open<P>(
    options: &ServeOptions,
    start: impl FnOnce(NodeId) -> Result<P, String>,
) -> Result<(P, Arc<AtomicBool>), String> {
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
    let process = start(node)?;
    tracing::info!(node = options.node, "the process serves clients");
    Ok((process, stop))
}

//! `rota daemon`: one for each host, with many clients.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rota_daemon::{Control, Daemon, DaemonConfig};
use rota_node::NodeConfig;
use rustix::process::{Signal, getpid, kill_process};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::config::node_here;
use crate::log::{LevelsHandle, Log, LogFormat};
use crate::notify;
use crate::reload::Reload;
use crate::say::complain;
use crate::which::Which;

/// Options of `rota daemon`.
#[derive(Clone, Debug, clap::Args)]
pub struct DaemonOptions {
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Which node of it this is: its number, from-hostname (rota-2 is node 2), or from-ordinal (rota-2 is node 3, as in a
    /// StatefulSet) [default: the one whose address this host has]
    #[arg(long, value_name = "ID")]
    node: Option<Which>,
    /// How the log on standard error is written: for people, or one JSON object on a line
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log: LogFormat,
    /// Stop, as on SIGTERM, when standard input ends: for programs that start daemons and may be killed
    #[arg(long, hide = true)]
    until_input_ends: bool,
}

/// Runs until it is told to stop by a signal.
pub fn main(options: &DaemonOptions) -> ExitCode {
    let (log, levels) = Log::start(options.log);
    let mut daemon = match open(options, levels) {
        Ok(mut daemon) => {
            daemon.count_lost_lines(log.lost());
            daemon
        }
        Err(what) => {
            complain(&what);
            return ExitCode::from(2);
        }
    };
    let stopping = || {
        tracing::info!("the daemon stops: it has been told to, and leaves the ring");
        notify::stopping();
    };
    match daemon.run_and_say(stopping) {
        Ok(()) => {
            tracing::info!("the daemon has stopped");
            ExitCode::SUCCESS
        }
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

fn open(options: &DaemonOptions, levels: LevelsHandle) -> Result<Daemon, String> {
    let path = &options.config;
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let config = NodeConfig::from_toml(&text).map_err(|error| wrong(&error))?;
    let daemon = DaemonConfig::from_toml(&text).map_err(|error| wrong(&error))?;
    levels.set(daemon.log.parse().map_err(|error: String| wrong(&error))?);
    let me = match options.node {
        Some(which) => which.id()?,
        None => node_here(&config).map_err(|error| wrong(&error))?,
    };
    let (stop, starts) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(true)),
    );
    for signal in [SIGTERM, SIGINT] {
        // A large log of votes, or a disk in trouble, may make the start long, and nobody is served yet: then the signal
        // ends the process, which is a crash that everything on disk is made for.
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&starts))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .map_err(|error| format!("cannot wait for signals: {error}"))?;
    }
    if options.until_input_ends {
        stop_with_input().map_err(|error| format!("cannot start a thread: {error}"))?;
    }
    let settings = daemon.clone();
    let daemon = Daemon::open(&config, daemon, me, stop).map_err(|error| wrong(&error))?;
    starts.store(false, Ordering::SeqCst);
    Reload::new(
        (path.clone(), &text),
        (me, settings),
        (daemon.keys(), levels),
        daemon.control(),
    )
    .on_signal()
    .and_then(|()| wake_on_signal(daemon.control()))
    .map_err(|error| format!("cannot wait for signals: {error}"))?;
    notify::watch(daemon.control()).map_err(|error| format!("cannot start a thread: {error}"))?;
    if let Err(error) = rota_net::give_memory_back_at_rest() {
        tracing::warn!(%error, "memory that was much used is not given back");
    }
    notify::ready();
    tracing::info!(node = %me, config = %path.display(), "a daemon has started");
    Ok(daemon)
}

/// Wakes the daemon when it is told to stop. A signal alone wakes nobody who is about to sleep, or whose other thread it
/// has interrupted.
fn wake_on_signal(control: Control) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let thread = thread::Builder::new().name("rota-stop".to_owned());
    let wake = move || signals.forever().for_each(|_| control.wake());
    thread.spawn(wake).map(drop)
}

/// Stops when the standard input is closed: the process that has started this one has ended then.
fn stop_with_input() -> io::Result<()> {
    let wait = || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = kill_process(getpid(), Signal::TERM);
    };
    let thread = thread::Builder::new().name("rota-input".to_owned());
    thread.spawn(wait).map(drop)
}

//! `rota reload`: tells a daemon to read its configuration again.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use rota_daemon::DaemonConfig;
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use super::PATIENCE;
use crate::ask::Place;
use crate::client::Failure;
use crate::say::{escaped_lines, print, print_json};

/// Options of `rota reload`.
#[derive(Clone, Debug, clap::Args)]
pub struct ReloadOptions {
    /// The daemon's admin socket
    #[arg(long, visible_alias = "admin", value_name = "PATH", default_value_os_t = DaemonConfig::default().admin)]
    socket: PathBuf,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// The outcome of a reload, for programs.
#[derive(Debug, Serialize)]
struct Outcome {
    done: bool,
    text: String,
}

/// Tells a daemon to read its configuration again, and says what came of it.
pub fn main(options: &ReloadOptions) -> ExitCode {
    match reload(&options.socket) {
        outcome if options.json => {
            let done = outcome.is_ok();
            let text = outcome.unwrap_or_else(|failure| failure.to_string());
            print_json(&Outcome { done, text });
            ExitCode::from(u8::from(!done))
        }
        Ok(text) => {
            print(&escaped_lines(&text));
            ExitCode::SUCCESS
        }
        Err(failure) => Failure::failed(escaped_lines(&failure.to_string())).exit(),
    }
}

fn reload(socket: &std::path::Path) -> Result<String, Failure> {
    let place = Place::Unix(socket.to_owned());
    let (_, before) = place.ask()?;
    let count = before.reload.map_or(0, |reload| reload.count);
    let pid = listener_of(socket)?;
    kill_process(pid, Signal::HUP)
        .map_err(|error| Failure::failed(format!("process {}: {error}", pid.as_raw_nonzero())))?;
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let (_, now) = place.ask()?;
        match now.reload {
            Some(reload) if reload.count > count && reload.done => return Ok(reload.text),
            Some(reload) if reload.count > count => {
                return Err(Failure::failed(reload.text));
            }
            _ => thread::sleep(Duration::from_millis(20)),
        }
    }
    Err(Failure::failed("the daemon has not reloaded"))
}

/// The process that listens at a socket, as the kernel knows it: what a daemon says of itself is its number in its own
/// PID namespace, which here may be somebody else's.
fn listener_of(socket: &std::path::Path) -> Result<Pid, Failure> {
    let wrong = |error: io::Error| Failure::failed(format!("{}: {error}", socket.display()));
    let stream = UnixStream::connect(socket).map_err(wrong)?;
    let pid = rota_net::peer_process(stream.as_fd()).map_err(wrong)?;
    let pid = pid.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    pid.ok_or_else(|| {
        Failure::failed(
            "the daemon runs in a PID namespace that cannot be seen from here, as in a container: run `rota reload` there, or \
             send it SIGHUP",
        )
    })
}

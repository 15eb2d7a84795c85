//! What the commands that are clients of a daemon have in common.

use std::fmt::Display;
use std::process::ExitCode;

use rota_client::{Builder, Client};
use rota_daemon::DaemonConfig;

use crate::say::complain;

/// Where the daemon is.
#[derive(Clone, Debug, clap::Args)]
pub struct ClientOptions {
    /// The daemon's socket for clients; tcp:HOST:PORT is TCP
    #[arg(long, value_name = "PATH", default_value_t = default_socket())]
    socket: String,
}

fn default_socket() -> String {
    DaemonConfig::default().socket.display().to_string()
}

impl ClientOptions {
    /// Connects to the daemon.
    pub fn connect(&self, builder: &Builder) -> Result<Client, Failure> {
        let client = builder.connect(&*self.socket);
        client.map_err(|error| Failure::failed(format!("{}: {error}", self.socket)))
    }
}

/// Why a command ends before it should.
#[derive(Debug)]
pub struct Failure {
    what: String,
    status: u8,
}

impl Failure {
    /// It did not go as hoped.
    pub fn failed(what: impl Display) -> Self {
        Self {
            what: what.to_string(),
            status: 1,
        }
    }

    /// It was used wrongly.
    pub fn misused(what: impl Display) -> Self {
        Self {
            what: what.to_string(),
            status: 2,
        }
    }

    /// Where it happened.
    pub fn at(self, place: impl Display) -> Self {
        let what = format!("{place}: {}", self.what);
        Self { what, ..self }
    }

    /// Says why.
    pub fn exit(&self) -> ExitCode {
        complain(&self.what);
        ExitCode::from(self.status)
    }
}

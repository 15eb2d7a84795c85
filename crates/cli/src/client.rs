//! The common parts of the commands that are clients of a daemon.

use std::fmt::Display;
use std::path::PathBuf;
use std::process::ExitCode;

use rota_client::{Builder, Client, Tls, TlsFileError};
use rota_daemon::DaemonConfig;

use crate::say::complain;

/// Where the daemon is.
#[derive(Clone, Debug, clap::Args)]
pub struct ClientOptions {
    /// The daemon's socket for clients; tcp:HOST:PORT is TCP, tls:HOST:PORT is TLS
    #[arg(long, value_name = "PATH", default_value_t = default_socket())]
    socket: String,
    #[command(flatten)]
    tls: TlsOptions,
}

/// How a daemon or a store and this client know each other.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct TlsOptions {
    /// The roots that the other side's certificate has to come from, as PEM
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// The certificate that this client shows, as PEM
    #[arg(long, value_name = "FILE", requires = "own_key", requires = "ca")]
    certificate: Option<PathBuf>,
    /// Its private key, as PEM
    #[arg(
        id = "own_key",
        long = "key",
        value_name = "FILE",
        requires = "certificate"
    )]
    key: Option<PathBuf>,
    /// The name that the other side's certificate has to be for [default: the host of the address]
    #[arg(long, value_name = "NAME", requires = "ca")]
    server_name: Option<String>,
}

impl TlsOptions {
    /// The contents of the files; `None`: no TLS is spoken.
    pub fn load(&self) -> Result<Option<Tls>, TlsFileError> {
        let tls = match (&self.ca, &self.certificate, &self.key) {
            (None, ..) => return Ok(None),
            (Some(ca), Some(certificate), Some(key)) => {
                Tls::with_certificate(ca, certificate, key)?
            }
            (Some(ca), ..) => Tls::new(ca)?,
        };
        Ok(Some(match &self.server_name {
            Some(name) => tls.server_name(name),
            None => tls,
        }))
    }
}

fn default_socket() -> String {
    DaemonConfig::default().socket.display().to_string()
}

impl ClientOptions {
    /// Connects to the daemon.
    pub fn connect(&self, builder: &Builder) -> Result<Client, Failure> {
        let mut builder = builder.clone();
        if let Some(tls) = self.tls.load().map_err(Failure::misused)? {
            if !self.socket.starts_with("tls:") {
                return Err(Failure::misused("--ca is for addresses tls:HOST:PORT"));
            }
            builder = builder.tls(tls);
        }
        let client = builder.connect(&*self.socket);
        client.map_err(|error| Failure::failed(format!("{}: {error}", self.socket)))
    }
}

/// The reason why a command ends before it should.
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

    /// Adds the place of the failure.
    pub fn at(self, place: impl Display) -> Self {
        let what = format!("{place}: {}", self.what);
        Self { what, ..self }
    }

    /// Says the reason.
    pub fn exit(&self) -> ExitCode {
        complain(&self.what);
        ExitCode::from(self.status)
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.what.fmt(f)
    }
}

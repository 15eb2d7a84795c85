//! The user that asks a store, and the transport: by TLS or not.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use rota_resp::Reply;
use rustls::ClientConnection;

use super::talk::RpcConnection;
use crate::client::TlsOptions;

/// What a store with users, or with TLS, wants of its clients.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Who {
    /// The user, where the store has some [default: default]
    #[arg(long, value_name = "NAME", requires = "password_file")]
    user: Option<String>,
    /// Its password is the first line of this file
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    #[command(flatten)]
    tls: TlsOptions,
}

impl Who {
    /// A connection on which who asks has said who it is.
    pub fn connect(
        &self,
        address: SocketAddr,
        patience: Duration,
    ) -> Result<RpcConnection, String> {
        let failed = |error| format!("{address}: {error}");
        let sealed = self.sealed(address)?;
        let mut talk = RpcConnection::open(address, patience, sealed).map_err(failed)?;
        let Some(file) = &self.password_file else {
            return Ok(talk);
        };
        let text = fs::read_to_string(file);
        let text = text.map_err(|error| format!("{}: {error}", file.display()))?;
        let password = text.lines().next().unwrap_or_default();
        let user = self.user.as_deref().unwrap_or("default");
        let told = talk.say(&[vec!["AUTH", user, password]]).map_err(failed)?;
        match told.first() {
            Some(Reply::Error(why)) => Err(why.clone()),
            _ => Ok(talk),
        }
    }

    /// The answer to a command, on a connection of its own.
    pub fn ask(
        &self,
        address: SocketAddr,
        patience: Duration,
        words: &[&str],
    ) -> Result<Reply, String> {
        let mut talk = self.connect(address, patience)?;
        let told = talk.say(&[words.to_vec()]);
        let told = told.map_err(|error| format!("{address}: {error}"))?;
        match told.into_iter().next() {
            Some(Reply::Error(error)) => Err(error),
            Some(reply) => Ok(reply),
            None => Err("no answer".to_owned()),
        }
    }

    fn sealed(&self, address: SocketAddr) -> Result<Option<ClientConnection>, String> {
        let tls = self.tls.load().map_err(|error| error.to_string())?;
        let connection = tls.map(|tls| tls.connection(&address.to_string()));
        connection.transpose().map_err(|error| error.to_string())
    }
}

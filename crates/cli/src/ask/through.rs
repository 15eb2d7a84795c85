//! Asks daemons through another one, as its client.

use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use rota_client::{Builder, Client, PrivateName};
use rota_daemon::{DaemonStatus, teller};

use crate::client::Failure;

/// A daemon that can be asked through another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Through {
    /// Where the other one's clients connect.
    socket: String,
    /// The client of the daemon that tells.
    teller: PrivateName,
}

impl fmt::Display for Through {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "daemon {} through {}", self.teller.daemon, self.socket)
    }
}

fn connect(socket: &str) -> Result<Client, String> {
    let connected = Builder::new().connect(socket);
    connected.map_err(|error| format!("{socket}: {error}"))
}

/// All daemons that can be asked through the one at this socket.
pub fn all(socket: &str) -> Result<Vec<Through>, Failure> {
    let mut client = connect(socket).map_err(Failure::failed)?;
    let wrong = |what: &dyn fmt::Display| Failure::failed(format!("{socket}: {what}"));
    let tellers = teller::tellers(&mut client).map_err(|error| wrong(&error))?;
    client.close().map_err(|error| wrong(&error))?;
    if tellers.is_empty() {
        let none = "no daemon tells how it is through others: set `cluster_status = true` in [daemon]; with rules, let the \
                    daemon's user join and send to the group rota-tell and #*";
        return Err(wrong(&none));
    }
    let through = |teller| Through {
        socket: socket.to_owned(),
        teller,
    };
    Ok(tellers.into_iter().map(through).collect())
}

impl Through {
    /// The status of the daemon, as it came and parsed.
    pub fn ask(&self, patience: Duration) -> io::Result<(String, DaemonStatus)> {
        let until = Instant::now() + patience;
        let mut client = connect(&self.socket).map_err(io::Error::other)?;
        let answers = teller::ask(&mut client, &[self.teller], until);
        match answers.map_err(io::Error::other)?.remove(&self.teller) {
            Some(Ok(told)) => Ok((
                String::from_utf8_lossy(&told.text).into_owned(),
                *told.status,
            )),
            Some(Err(code)) => Err(io::Error::other(format!("not sent: {code}"))),
            None => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

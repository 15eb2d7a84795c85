//! Asks daemons how they are.

mod through;

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rota_daemon::{DaemonConfig, DaemonStatus};
use rota_node::NodeConfig;
use serde::Deserialize;

use crate::client::Failure;
use crate::say::escaped;
use through::Through;

/// The time that a daemon may take to answer: one that is well does within milliseconds, and a crowded one within a
/// second.
const PATIENCE: Duration = Duration::from_secs(3);

/// The longest answer, in bytes: some thousand clients.
const MOST_BYTES: u64 = 64 << 20;

/// Which daemons to ask.
#[derive(Clone, Debug, clap::Args)]
pub struct AskOptions {
    /// A daemon's admin socket, or http://HOST:PORT as in its `metrics`; may be repeated [default:
    /// /run/rota/admin.sock]
    #[arg(long, visible_alias = "admin", value_name = "PATH|URL")]
    socket: Vec<Place>,
    /// All daemons of this configuration whose admin sockets are on this host, beside those of --socket
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// All daemons of the cluster, through one of them: its socket for clients, or tcp:HOST:PORT; for daemons with
    /// `cluster_status = true` [default: /run/rota/rota.sock]
    #[arg(long, value_name = "PATH", num_args = 0..=1)]
    cluster: Option<Option<String>>,
}

/// The place at which a daemon says how it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// Its admin socket.
    Unix(PathBuf),
    /// Host and port of its metrics.
    Http(String),
    /// Another daemon.
    Through(Through),
}

impl std::str::FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(rest) = text.strip_prefix("http://") else {
            return Ok(Self::Unix(PathBuf::from(text)));
        };
        let host = rest.split('/').next().unwrap_or_default();
        if host.contains(':') {
            Ok(Self::Http(host.to_owned()))
        } else {
            Err("a URL needs a port, as in http://10.0.0.1:9464".to_owned())
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => path.display().fmt(f),
            Self::Http(host) => write!(f, "http://{host}"),
            Self::Through(through) => through.fmt(f),
        }
    }
}

impl AskOptions {
    /// The daemons to ask, at least one.
    pub fn places(&self) -> Result<Vec<Place>, Failure> {
        let is_only = self.socket.is_empty() && self.cluster.is_none();
        let mut places = match &self.config {
            Some(path) => sockets_of(path, is_only).map_err(Failure::misused)?,
            None if is_only => vec![Place::Unix(DaemonConfig::default().admin)],
            None => Vec::new(),
        };
        if let Some(socket) = &self.cluster {
            let usual = || DaemonConfig::default().socket.display().to_string();
            let socket = socket.clone().unwrap_or_else(usual);
            places.extend(through::all(&socket)?.into_iter().map(Place::Through));
        }
        for place in &self.socket {
            if !places.contains(place) {
                places.push(place.clone());
            }
        }
        Ok(places)
    }
}

/// The admin sockets of a configuration that are on this host; `needed`: that there is none is a mistake.
fn sockets_of(path: &Path, needed: bool) -> Result<Vec<Place>, String> {
    let wrong = |error: &dyn fmt::Display| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    let nodes = NodeConfig::from_toml(&text).map_err(|error| wrong(&error))?;
    let daemon = DaemonConfig::from_toml(&text).map_err(|error| wrong(&error))?;
    let mut paths: Vec<PathBuf> = nodes
        .members()
        .into_iter()
        .map(|node| daemon.admin_of(node))
        .filter(|path| path.exists())
        .collect();
    paths.dedup();
    if paths.is_empty() && needed {
        return Err(wrong(&"none of its admin sockets is on this host"));
    }
    Ok(paths.into_iter().map(Place::Unix).collect())
}

/// The words on the clients' socket.
const NOT_ADMIN: &str = "this is not an admin socket: clients connect at `socket`, and how a daemon is says the one that \
                         its configuration calls `admin`";

/// The answer to somebody who may not know.
#[derive(Debug, Deserialize)]
struct Refused {
    refused: Option<String>,
}

impl Place {
    /// The daemon's answer, as it came and parsed.
    pub fn ask(&self) -> Result<(String, DaemonStatus), Failure> {
        let wrong = |what: &dyn fmt::Display| Failure::failed(format!("{self}: {what}"));
        let silent = |error| wrong(&silence(error));
        let line = match self {
            Self::Unix(path) => from_socket(path),
            Self::Http(host) => page(host),
            Self::Through(through) => return through.ask(PATIENCE).map_err(silent),
        };
        let line = line.map_err(silent)?;
        let nonsense = |_| wrong(&self.no_answer(&line));
        let Refused { refused } = serde_json::from_str(&line).map_err(nonsense)?;
        if let Some(why) = refused {
            return Err(wrong(&format!("refused: {}", escaped(&why))));
        }
        let status = serde_json::from_str(&line).map_err(nonsense)?;
        Ok((line.trim_end().to_owned(), status))
    }

    /// The words on a peer that has not answered as daemons do.
    fn no_answer(&self, line: &str) -> String {
        match self {
            Self::Unix(_) if line.is_empty() => format!(
                "it has closed the connection without an answer: it stops, or too many ask it, or {NOT_ADMIN}"
            ),
            Self::Unix(_) => NOT_ADMIN.to_owned(),
            // Through another daemon there are no lines.
            Self::Http(_) | Self::Through(_) => {
                let start: String = line.chars().take(40).collect();
                format!("not a daemon's answer: {start:?}")
            }
        }
    }
}

/// Asks daemons, all at once: one that is stopped keeps nobody waiting for the others.
pub fn ask_all(places: &[Place]) -> Vec<Result<(String, DaemonStatus), Failure>> {
    std::thread::scope(|scope| {
        let ask = |place| scope.spawn(move || Place::ask(place));
        let asked: Vec<_> = places.iter().map(ask).collect();
        let answer = |asked: std::thread::ScopedJoinHandle<'_, _>| {
            let failed = |_| Err(Failure::failed("a question to a daemon has failed"));
            asked.join().unwrap_or_else(failed)
        };
        asked.into_iter().map(answer).collect()
    })
}

/// The words on a peer that does not answer.
fn silence(error: io::Error) -> String {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            let seconds = PATIENCE.as_secs();
            format!(
                "it does not answer within {seconds} s: it is stopped, or stuck, or has no descriptors left"
            )
        }
        ErrorKind::ConnectionRefused => {
            format!("nobody listens there: the daemon has ended ({error})")
        }
        _ => error.to_string(),
    }
}

/// The answer at an admin socket, as it came.
pub fn from_socket(path: &Path) -> io::Result<String> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    read(stream)
}

fn read(stream: impl Read) -> io::Result<String> {
    let mut text = String::new();
    stream.take(MOST_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// To the first of these that answers: `localhost` may be more than one address, and the daemon at one only.
fn connect(addresses: impl Iterator<Item = SocketAddr>) -> io::Result<TcpStream> {
    let mut failed = ErrorKind::AddrNotAvailable.into();
    for address in addresses {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// The page with the status.
fn page(host: &str) -> io::Result<String> {
    let mut stream = connect(host.to_socket_addrs()?)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    // Not by its name: a daemon answers only to those that it knows to be its own.
    let address = stream.peer_addr()?;
    write!(stream, "GET /status HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
    let answer = read(stream)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let code = head.split(' ').nth(1).unwrap_or_default();
    if code == "200" {
        Ok(body.to_owned())
    } else {
        let line = head.lines().next().unwrap_or_default();
        Err(io::Error::other(format!("it answers: {}", escaped(line))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_addresses_of_a_host_are_tried() {
        let here = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let listener = std::net::TcpListener::bind(here(0)).expect("a port");
        let open = listener.local_addr().expect("it has one");
        // Nobody listens at port 1 of this host, as a rule; if somebody does, that is an answer, too.
        assert!(connect([here(1), open].into_iter()).is_ok());
        let none = connect(std::iter::empty()).expect_err("nothing to try");
        assert_eq!(none.kind(), ErrorKind::AddrNotAvailable);
    }

    #[test]
    fn a_place_is_a_path_or_an_address() {
        let place = |text: &str| text.parse::<Place>();
        assert_eq!(place("/a/b"), Ok(Place::Unix("/a/b".into())));
        let http = Ok(Place::Http("10.0.0.1:9464".to_owned()));
        assert_eq!(place("http://10.0.0.1:9464/status"), http);
        assert!(place("http://10.0.0.1").is_err());
    }
}

//! The address of a daemon.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The address at which a daemon listens.
///
/// A text gives one: `tcp:HOST:PORT` is TCP, `tls:HOST:PORT` is TLS, everything else the path of a Unix socket.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Address {
    /// A Unix socket. The kernel tells the daemon the user and the groups of its clients.
    Unix(PathBuf),
    /// Host and port. TCP neither protects nor authenticates, so only loopback addresses are taken unless
    /// [`crate::Builder::insecure`] allows others.
    Tcp(String),
    /// Host and port, encrypted: with the feature `tls`, and `Builder::tls`.
    Tls(String),
}

impl From<&str> for Address {
    fn from(text: &str) -> Self {
        match text.split_once(':') {
            Some(("tcp", host)) => Self::Tcp(host.to_owned()),
            Some(("tls", host)) => Self::Tls(host.to_owned()),
            _ => Self::Unix(text.into()),
        }
    }
}

impl From<String> for Address {
    fn from(text: String) -> Self {
        Self::from(&*text)
    }
}

impl From<&String> for Address {
    fn from(text: &String) -> Self {
        Self::from(&**text)
    }
}

impl From<&PathBuf> for Address {
    fn from(path: &PathBuf) -> Self {
        Self::from(&**path)
    }
}

impl From<&Self> for Address {
    fn from(address: &Self) -> Self {
        address.clone()
    }
}

impl From<&Path> for Address {
    fn from(path: &Path) -> Self {
        Self::Unix(path.into())
    }
}

impl From<PathBuf> for Address {
    fn from(path: PathBuf) -> Self {
        Self::Unix(path)
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address.to_string())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => path.display().fmt(f),
            Self::Tcp(host) => write!(f, "tcp:{host}"),
            Self::Tls(host) => write!(f, "tls:{host}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_be_borrowed() {
        let text = "tcp:n1:4805".to_owned();
        let address = Address::from(&text);
        assert_eq!(address, Address::Tcp("n1:4805".to_owned()));
        assert_eq!(Address::from(&address), address);
        let path = PathBuf::from("/run/rota/rota.sock");
        assert_eq!(Address::from(&path), Address::Unix(path));
    }
}

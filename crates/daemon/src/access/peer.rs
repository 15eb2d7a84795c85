//! Who is at the other end of a socket.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use rota_net::peer_groups;

use super::Rights;
use crate::seats::Seat;

/// What is known of a client before it says anything.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Peer {
    /// A process of this host, by what the kernel says of it.
    Local {
        uid: u32,
        /// Its group, and all others it is in.
        gids: Vec<u32>,
    },
    /// Somebody at this address, who has shown a certificate for these names.
    Remote { address: IpAddr, names: Vec<String> },
}

impl Peer {
    /// The process that connected this Unix socket, as it was then.
    pub fn of_unix(socket: &impl AsFd) -> io::Result<Self> {
        let credentials = getsockopt(socket, PeerCredentials)?;
        let mut gids = peer_groups(socket.as_fd())?;
        gids.push(credentials.gid());
        let uid = credentials.uid();
        Ok(Self::Local { uid, gids })
    }

    /// Somebody at this address.
    pub const fn at(address: IpAddr) -> Self {
        let names = Vec::new();
        Self::Remote { address, names }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local { uid, .. } => write!(f, "uid {uid}"),
            Self::Remote { address, names } => {
                address.fmt(f)?;
                names.iter().try_for_each(|name| write!(f, " {name}"))
            }
        }
    }
}

/// A client that came in, and what it may do.
#[derive(Debug)]
pub(crate) struct Guest {
    pub peer: Peer,
    pub rights: Rights,
    /// Its place among those of its address.
    pub _seat: Option<Seat>,
    /// Tells it from others that came by TLS.
    pub tls: Option<u64>,
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use nix::unistd::{getegid, geteuid, getgroups};

    use super::*;

    #[test]
    fn the_kernel_says_who_connected() {
        let (socket, _other) = UnixStream::pair().expect("descriptors");
        let Ok(Peer::Local { uid, gids }) = Peer::of_unix(&socket) else {
            panic!("a Unix socket has a local peer");
        };
        assert_eq!(uid, geteuid().as_raw());
        let mut mine = getgroups().expect("groups");
        mine.push(getegid());
        for gid in mine {
            assert!(gids.contains(&gid.as_raw()), "{gid} is not in {gids:?}");
        }
    }
}

//! The peer at the other end of a socket.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::unistd::geteuid;
use rota_core::groups::Owner;
use rota_net::peer_groups;

use super::Rights;
use crate::seats::{Seat, owner_at};

/// The facts about a client that are known before its first byte.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Peer {
    /// A process of this host, as the kernel describes it.
    Local {
        uid: u32,
        /// The group of the process, and all other groups it is in.
        gids: Vec<u32>,
    },
    /// A peer at this address, with the names of its certificate; without a certificate there are none.
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

    /// The owner whose share the peer takes: of connections, of memberships and of bytes that wait for clients. A
    /// process of root or of the daemon's own user could as well kill the daemon, so it takes no share.
    pub fn owner(&self) -> Option<Owner> {
        match self {
            Self::Local { uid, .. } => {
                let is_bounded = *uid != 0 && *uid != geteuid().as_raw();
                is_bounded.then_some(Owner::User(*uid))
            }
            Self::Remote { address, .. } => Some(owner_at(*address)),
        }
    }

    /// A peer at this address, without a certificate.
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
    /// The owner whose share the client takes.
    pub owner: Option<Owner>,
    /// The client's place among the connections of its owner.
    pub _seat: Option<Seat>,
    /// Distinguishes the client from others that came by TLS.
    pub tls: Option<u64>,
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use nix::unistd::{getegid, getgroups};

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

    #[test]
    fn all_are_bounded_but_those_who_could_kill_the_daemon() {
        let local = |uid| {
            Peer::Local {
                uid,
                gids: Vec::new(),
            }
            .owner()
        };
        let other = geteuid().as_raw() + 1;
        assert_eq!(local(other), Some(Owner::User(other)));
        assert_eq!((local(0), local(geteuid().as_raw())), (None, None));
        let at = |text: &str| Peer::at(text.parse().expect("an address")).owner();
        assert_eq!(at("::ffff:127.0.0.1"), at("127.0.0.1"));
        assert!(at("127.0.0.1").is_some());
    }
}

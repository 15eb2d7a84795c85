//! A listener: its socket, and the clients that wait there.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener as StdUnixListener, UnixStream as StdUnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use mio::net::{TcpListener, TcpStream, UnixListener};
use socket2::{Domain, SockAddr, SockRef, Socket, TcpKeepalive, Type};

use super::Port;
use crate::access::{Access, Peer};
use crate::config::Allow;
use crate::descriptors::has_one_for_a_client;
use crate::seats::{ConnectionLimits, Seat};
use crate::stream::Stream;

/// Clients that may wait to be let in at one socket.
const BACKLOG: i32 = 1024;

/// The mode of a Unix socket: open to its owner and group, the admin socket to its owner. If there are access rules,
/// every user of the host may open the socket, and the rules decide; the admin socket only if some rule gives that
/// right.
pub(super) fn mode(port: Port, access: &Access) -> u32 {
    let limited = access.is_limited();
    match port {
        Port::Native | Port::Spread if limited => 0o666,
        Port::Native | Port::Spread => 0o660,
        Port::Admin if limited && access.has_admins() => 0o666,
        Port::Admin => 0o600,
    }
}

/// A client that waited at a listener.
pub(super) enum Waited {
    Comes(Stream, Peer, Option<Seat>),
    /// Its network is not allowed.
    Stranger(Peer),
    /// Its address or its user has as many connections as it may.
    Crowded(Stream, Peer),
}

/// The socket of a listener.
#[derive(Debug)]
pub(super) enum Source {
    Unix(UnixListener, PathBuf),
    /// With the networks whose clients may connect.
    Tcp(TcpListener, Allow),
}

impl Source {
    /// Listens at a path, with this mode. Removes an old socket of the path at which no process listens.
    pub fn unix(path: &Path, mode: u32) -> io::Result<Self> {
        make_way(path)?;
        let socket = bind(path, mode)?;
        socket.listen(BACKLOG)?;
        let listener = UnixListener::from_std(StdUnixListener::from(socket));
        Ok(Self::Unix(listener, path.to_owned()))
    }

    /// The next who waits; the seats are those of clients, if that is who comes here.
    pub fn accept(&self, seats: Option<&ConnectionLimits>) -> io::Result<Waited> {
        let seat = |peer: &Peer| match (seats, peer.owner()) {
            (Some(seats), Some(owner)) => seats.take(owner).map(Some),
            _ => Some(None),
        };
        match self {
            Self::Unix(listener, _) => {
                if seats.is_some() {
                    has_one_for_a_client(listener)?;
                }
                let (stream, _) = listener.accept()?;
                let peer = Peer::of_unix(&stream)?;
                let stream = Stream::Unix(stream, None);
                Ok(match seat(&peer) {
                    Some(seat) => Waited::Comes(stream, peer, seat),
                    None => Waited::Crowded(stream, peer),
                })
            }
            Self::Tcp(listener, allow) => {
                has_one_for_a_client(listener)?;
                let (stream, address) = listener.accept()?;
                let peer = Peer::at(address.ip().to_canonical());
                if !allow.allows(address.ip()) {
                    return Ok(Waited::Stranger(peer));
                }
                // Without it messages would wait for each other; a socket that is gone has no use for it.
                let _ = stream.set_nodelay(true);
                keep_alive(&stream);
                let stream = Stream::Tcp(stream);
                Ok(match seat(&peer) {
                    Some(seat) => Waited::Comes(stream, peer, seat),
                    None => Waited::Crowded(stream, peer),
                })
            }
        }
    }
}

/// A listener at one of these addresses. One of all IPv6 addresses takes IPv4 as well, unless another one of these does.
pub(crate) fn listen_at(address: SocketAddr, all: &[SocketAddr]) -> io::Result<TcpListener> {
    let v4 = |other: &SocketAddr| other.is_ipv4() && other.port() == address.port();
    if address.is_ipv4() || !all.iter().any(v4) {
        return TcpListener::bind(address);
    }
    let socket = Socket::new(Domain::IPV6, Type::STREAM.nonblocking(), None)?;
    socket.set_only_v6(true)?;
    // As all listeners have it: after a restart, connections of the daemon before may still be there.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(TcpListener::from_std(socket.into()))
}

/// A listener at a path, for the daemon's own user and root. Removes an old socket of the path at which no process listens.
pub(crate) fn listen_for_owner(path: &Path) -> io::Result<StdUnixListener> {
    make_way(path)?;
    let socket = bind(path, 0o600)?;
    socket.set_nonblocking(false)?;
    socket.listen(BACKLOG)?;
    Ok(StdUnixListener::from(socket))
}

/// A client whose host is gone without a word is noticed in two minutes.
pub(crate) fn keep_alive(socket: &TcpStream) {
    let keep = TcpKeepalive::new()
        .with_time(Duration::from_secs(60))
        .with_interval(Duration::from_secs(10))
        .with_retries(6);
    // A socket that is gone has no use for it.
    let _ = SockRef::from(socket).set_tcp_keepalive(&keep);
}

/// A socket at a path, with this mode. No client can connect to it before it listens.
fn bind(path: &Path, mode: u32) -> io::Result<Socket> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    if let Err(error) = set_mode(path, mode) {
        let _ = fs::remove_file(path);
        return Err(error);
    }
    Ok(socket)
}

/// Sets the mode of the socket at a path.
pub(super) fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Removes a socket at which no process listens.
fn make_way(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !found.file_type().is_socket() {
        let text = "there is something else than a socket";
        return Err(io::Error::new(ErrorKind::AlreadyExists, text));
    }
    match StdUnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
        Ok(_) => Err(ErrorKind::AddrInUse.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, TcpStream as StdTcpStream};

    use super::*;

    #[test]
    fn both_kinds_of_all_addresses_can_be_listened_at_in_either_order() {
        let free = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0).into()).expect("a port");
        let port = free.local_addr().expect("it is bound").port();
        drop(free);
        let v4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        let v6 = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
        let here = [
            SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            SocketAddr::from((Ipv6Addr::LOCALHOST, port)),
        ];
        for all in [[v4, v6], [v6, v4]] {
            let _open = all.map(|address| listen_at(address, &all).expect("it is free"));
            for address in here {
                StdTcpStream::connect(address).expect("it is listened at");
            }
        }
        let _alone = listen_at(v6, &[v6]).expect("it is free");
        for address in here {
            StdTcpStream::connect(address).expect("it takes both");
        }
    }

    #[test]
    fn a_socket_has_its_rights_before_anybody_can_connect() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("sock");
        let socket = bind(&path, 0o640).expect("a free path");
        let mode = fs::metadata(&path)
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o640);
        let refused = StdUnixStream::connect(&path).expect_err("it does not listen");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        socket.listen(1).expect("it can");
        StdUnixStream::connect(&path).expect("it listens");
    }
}

//! One TCP connection that never waits.

use socket2::{Domain, Protocol, SockAddr, Socket, TcpKeepalive, Type};
use std::io::{self, ErrorKind, IoSlice, Read};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use crate::epoll::Change;

/// The limit, in bytes, of what the kernel keeps and has not sent: enough that the device never waits for this process,
/// and little, since messages in the kernel cannot be taken back and delay later ones.
const UNSENT_BYTES: u32 = 256 << 10;

/// The time between two questions whether a quiet connection is still there: the shortest that the kernel knows.
const KEEPALIVE: Duration = Duration::from_secs(1);

/// The congestion control, by which the kernel finds out what the path takes. Some systems are set to one that times
/// each packet, which costs more than the packets where many nodes share a processor.
const CONGESTION: &[u8] = b"cubic";

/// A connection, and what the kernel has last said of it.
#[derive(Debug)]
pub(super) struct Stream {
    socket: Socket,
    /// Its name among all connections; never used twice.
    pub(super) name: u64,
    readable: bool,
    writable: bool,
    ended: bool,
}

impl Stream {
    fn new(socket: Socket, name: u64) -> Self {
        Self {
            socket,
            name,
            readable: false,
            writable: false,
            ended: false,
        }
    }

    /// Begins to connect.
    pub(super) fn dial(from: IpAddr, to: SocketAddr, name: u64) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        // Its address tells the other side that it comes from a node.
        socket.bind(&SockAddr::from(SocketAddr::new(from, 0)))?;
        match socket.connect(&SockAddr::from(to)) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
            _ => Ok(Self::new(socket, name)),
        }
    }

    /// A connection that the other end has made.
    pub(super) fn accepted(socket: Socket, name: u64) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self::new(socket, name))
    }

    /// For a session: the kernel gives it up when nothing was heard for `patience`.
    pub(super) fn tune(&self, patience: Duration) -> io::Result<()> {
        let keepalive = TcpKeepalive::new()
            .with_time(KEEPALIVE)
            .with_interval(KEEPALIVE);
        // A kernel that does not have it, or does not let this process choose, goes on as it is set.
        if let Err(error) = self.socket.set_tcp_congestion(CONGESTION) {
            tracing::debug!(%error, "a link keeps the system's congestion control");
        }
        self.socket.set_tcp_nodelay(true)?;
        self.socket.set_tcp_keepalive(&keepalive)?;
        self.socket.set_tcp_user_timeout(Some(patience))?;
        self.socket.set_tcp_notsent_lowat(UNSENT_BYTES)
    }

    /// Takes over what the kernel says.
    pub(super) const fn know(&mut self, change: Change) {
        self.readable |= change.readable;
        self.writable |= change.writable;
        self.ended |= change.ended;
    }

    /// Whether reading may bring something.
    pub(super) const fn is_readable(&self) -> bool {
        self.readable
    }

    /// Whether the kernel may take something.
    pub(super) const fn is_writable(&self) -> bool {
        self.writable
    }

    /// The outcome of connecting, for a connection that was dialed and is writable now.
    pub(super) fn connected(&self) -> io::Result<()> {
        self.socket.take_error()?.map_or(Ok(()), Err)
    }

    /// Reads once; `None` when nothing waits.
    ///
    /// # Errors
    /// The kernel's own, and [`ErrorKind::UnexpectedEof`] where the other end has closed.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        if !self.readable {
            return Ok(None);
        }
        match (&self.socket).read(buffer) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                // Less than there was room for: it is empty, and the kernel tells when it is not. It does not tell
                // a second time that the other end has closed.
                self.readable = count == buffer.len() || self.ended;
                Ok(Some(count))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.readable = false;
                Ok(None)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes once, as much of these as the kernel takes; says how much that was.
    ///
    /// # Errors
    /// The kernel's own.
    pub(super) fn write(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        if !self.writable {
            return Ok(0);
        }
        let flags = libc::MSG_NOSIGNAL;
        match self.socket.send_vectored_with_flags(pieces, flags) {
            Ok(count) => {
                self.writable = count == pieces.iter().map(|piece| piece.len()).sum::<usize>();
                Ok(count)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.writable = false;
                Ok(0)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Writes the few bytes of a handshake, for which a new connection always has room.
    ///
    /// # Errors
    /// The kernel's own, and [`ErrorKind::WriteZero`].
    pub(super) fn write_whole(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.write(&[IoSlice::new(bytes)])? == bytes.len() {
            Ok(())
        } else {
            Err(ErrorKind::WriteZero.into())
        }
    }
}

impl AsRawFd for Stream {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// A message of a fixed size that comes in pieces.
#[derive(Debug)]
pub(super) struct Gather<const SIZE: usize> {
    bytes: [u8; SIZE],
    filled: usize,
}

impl<const SIZE: usize> Gather<SIZE> {
    pub(super) const fn new() -> Self {
        Self {
            bytes: [0; SIZE],
            filled: 0,
        }
    }

    /// Reads on, and not a byte beyond the message; returns the message once it is whole.
    pub(super) fn read(&mut self, stream: &mut Stream) -> io::Result<Option<&[u8; SIZE]>> {
        while self.filled < SIZE {
            match stream.read(&mut self.bytes[self.filled..])? {
                Some(count) => self.filled += count,
                None => return Ok(None),
            }
        }
        Ok(Some(&self.bytes))
    }
}

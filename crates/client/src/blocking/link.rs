//! The socket: reading and writing what there is, and waiting.
//!
//! This is the one file that knows what kind of a stream it is.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::Builder;
use crate::address::Address;
use crate::error::ConnectError;
use crate::memory::Memory;
#[cfg(feature = "tls")]
use crate::tls::{Session, Step};

/// A connected socket that never blocks; both halves of a client use it.
#[derive(Debug)]
pub enum Link {
    Unix(UnixStream),
    /// What the daemon says comes through memory.
    Memory(UnixStream, Box<Memory>),
    Tcp(TcpStream),
    #[cfg(feature = "tls")]
    Tls(TcpStream, Box<Session>),
}

/// What to wait for; a closed or failed socket counts as both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interest {
    pub read: bool,
    pub write: bool,
}

impl Link {
    pub fn connect(
        address: &Address,
        builder: &Builder,
        deadline: Option<Instant>,
    ) -> Result<Self, ConnectError> {
        match address {
            Address::Unix(path) => {
                let stream = connect_unix(path, deadline)?;
                stream.set_nonblocking(true)?;
                Ok(Self::Unix(stream))
            }
            Address::Tcp(host) => connect_tcp(host, builder.insecure, deadline).map(Self::Tcp),
            Address::Tls(host) => Self::connect_tls(host, builder, deadline),
        }
    }

    #[cfg(not(feature = "tls"))]
    fn connect_tls(_: &str, _: &Builder, _: Option<Instant>) -> Result<Self, ConnectError> {
        Err(ConnectError::Tls(
            "this program was built without it".to_owned(),
        ))
    }

    #[cfg(feature = "tls")]
    fn connect_tls(
        host: &str,
        builder: &Builder,
        deadline: Option<Instant>,
    ) -> Result<Self, ConnectError> {
        let Some(tls) = &builder.tls else {
            return Err(ConnectError::Tls(
                "no certificates to trust are given".to_owned(),
            ));
        };
        let session = tls.session(host)?;
        let stream = connect_tcp(host, true, deadline)?;
        let link = Self::Tls(stream, Box::new(session));
        while let Self::Tls(stream, session) = &link {
            let write = match session.shake(&mut &*stream)? {
                Step::Done => break,
                Step::Read => false,
                Step::Write => true,
            };
            let interest = Interest {
                read: !write,
                write,
            };
            if !link.wait(interest, deadline)? {
                return Err(ConnectError::TimedOut);
            }
        }
        Ok(link)
    }
}

/// Where as many wait as may, the kernel lets others wait for as long as the socket says that a write may take.
fn connect_unix(path: &Path, deadline: Option<Instant>) -> Result<UnixStream, ConnectError> {
    let os = |error: Errno| ConnectError::Io(error.into());
    let address = SocketAddrUnix::new(path).map_err(os)?;
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(os)?;
    loop {
        set_socket_timeout(&socket, Timeout::Send, left(deadline)?).map_err(os)?;
        match connect(&socket, &address) {
            Ok(()) => return Ok(socket.into()),
            Err(Errno::AGAIN) => return Err(ConnectError::TimedOut),
            Err(Errno::INTR) => {}
            Err(error) => return Err(os(error)),
        }
    }
}

/// How much time there is; for ever if there is no deadline.
fn left(deadline: Option<Instant>) -> Result<Option<Duration>, ConnectError> {
    let Some(deadline) = deadline else {
        return Ok(None);
    };
    match deadline.checked_duration_since(Instant::now()) {
        Some(left) if !left.is_zero() => Ok(Some(left)),
        _ => Err(ConnectError::TimedOut),
    }
}

fn connect_tcp(
    host: &str,
    insecure: bool,
    deadline: Option<Instant>,
) -> Result<TcpStream, ConnectError> {
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in host.to_socket_addrs()? {
        if !insecure && !address.ip().is_loopback() {
            return Err(ConnectError::Insecure(address));
        }
        let connected = match left(deadline)? {
            Some(left) => TcpStream::connect_timeout(&address, left),
            None => TcpStream::connect(address),
        };
        match connected {
            Ok(stream) => {
                // Writes are gathered here already.
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                return Ok(stream);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed.into())
}

impl Link {
    /// Reads as [`Self::read`] does, and a descriptor that came with it. Then nothing was read behind that.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, Option<OwnedFd>)>> {
        let Self::Unix(stream) = self else {
            return Ok(self.read(buffer)?.map(|bytes| (bytes, None)));
        };
        let mut descriptor = None;
        let bytes = or_none(|| {
            let (bytes, received) = rota_memory::receive(stream, buffer)?;
            descriptor = received;
            Ok(bytes)
        });
        Ok(bytes?.map(|bytes| (bytes, descriptor)))
    }

    /// From now on the daemon speaks through memory, if there is any.
    pub fn with_memory(self, memory: Option<Box<Memory>>) -> Self {
        match (self, memory) {
            (Self::Unix(stream), Some(memory)) => Self::Memory(stream, memory),
            (link, _) => link,
        }
    }

    /// Whether there is something to read that no descriptor tells of.
    pub fn has_more(&self) -> bool {
        match self {
            Self::Memory(_, memory) => memory.has_more(),
            _ => false,
        }
    }

    /// Reads what is there: `None` if there is nothing yet, 0 at the end of the stream.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self {
            Self::Unix(stream) => or_none(|| (&*stream).read(buffer)),
            Self::Memory(stream, memory) => {
                memory.read(buffer, |buffer| or_none(|| (&*stream).read(buffer)))
            }
            Self::Tcp(stream) => or_none(|| (&*stream).read(buffer)),
            #[cfg(feature = "tls")]
            Self::Tls(stream, session) => session.read(&mut &*stream, buffer),
        }
    }

    /// Writes what the socket takes now; `None` if that is nothing: then the same bytes are to be tried again.
    pub fn write(&self, bytes: &[u8]) -> io::Result<Option<usize>> {
        match self {
            Self::Unix(stream) | Self::Memory(stream, _) => or_none(|| (&*stream).write(bytes)),
            Self::Tcp(stream) => or_none(|| (&*stream).write(bytes)),
            #[cfg(feature = "tls")]
            Self::Tls(stream, session) => session.write(&mut &*stream, bytes),
        }
    }

    /// Waits until one of these is possible; false if the time has come first.
    pub fn wait(&self, interest: Interest, deadline: Option<Instant>) -> io::Result<bool> {
        #[cfg(feature = "tls")]
        if let Self::Tls(_, session) = self
            && interest.read
            && session.has_more()
        {
            return Ok(true);
        }
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, interest.read);
        flags.set(PollFlags::OUT, interest.write);
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            // Longer than the clock can count is for ever.
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            match poll(
                &mut [PollFd::from_borrowed_fd(self.fd(), flags)],
                timeout.as_ref(),
            ) {
                Ok(ready) => return Ok(ready > 0),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) | Self::Memory(stream, _) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
            #[cfg(feature = "tls")]
            Self::Tls(stream, _) => stream.as_fd(),
        }
    }

    /// Ends the stream in this direction or both; a socket that has failed already is left alone.
    pub fn shutdown(&self, how: Shutdown) {
        let _ = match self {
            Self::Unix(stream) | Self::Memory(stream, _) => stream.shutdown(how),
            Self::Tcp(stream) => stream.shutdown(how),
            #[cfg(feature = "tls")]
            Self::Tls(stream, session) => {
                session.close(&mut &*stream);
                stream.shutdown(how)
            }
        };
    }
}

/// A call that would block has no result yet; one that was interrupted is made again.
fn or_none(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<Option<usize>> {
    loop {
        match call() {
            Ok(bytes) => return Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

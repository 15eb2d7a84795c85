//! The socket: reading and writing what there is, and waiting.
//!
//! This is the one file that knows what kind of a stream it is: an encrypted one has to offer the same.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::address::Address;
use crate::error::ConnectError;

/// A connected socket that never blocks; both halves of a client use it.
#[derive(Debug)]
pub enum Link {
    Unix(UnixStream),
    Tcp(TcpStream),
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
        insecure: bool,
        timeout: Duration,
    ) -> Result<Self, ConnectError> {
        match address {
            Address::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_nonblocking(true)?;
                Ok(Self::Unix(stream))
            }
            Address::Tcp(host) => Self::connect_tcp(host, insecure, timeout),
        }
    }

    fn connect_tcp(host: &str, insecure: bool, timeout: Duration) -> Result<Self, ConnectError> {
        let mut failed = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        for address in host.to_socket_addrs()? {
            if !insecure && !address.ip().is_loopback() {
                return Err(ConnectError::Insecure(address));
            }
            match TcpStream::connect_timeout(&address, timeout) {
                Ok(stream) => {
                    // Writes are gathered here already.
                    stream.set_nodelay(true)?;
                    stream.set_nonblocking(true)?;
                    return Ok(Self::Tcp(stream));
                }
                Err(error) => failed = error,
            }
        }
        Err(failed.into())
    }

    /// Reads what is there: `None` if there is nothing yet, 0 at the end of the stream.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        or_none(|| match self {
            Self::Unix(stream) => (&*stream).read(buffer),
            Self::Tcp(stream) => (&*stream).read(buffer),
        })
    }

    /// Writes what the socket takes now; `None` if that is nothing.
    pub fn write(&self, bytes: &[u8]) -> io::Result<Option<usize>> {
        or_none(|| match self {
            Self::Unix(stream) => (&*stream).write(bytes),
            Self::Tcp(stream) => (&*stream).write(bytes),
        })
    }

    /// Waits until one of these is possible; false if the time has come first.
    pub fn wait(&self, interest: Interest, deadline: Option<Instant>) -> io::Result<bool> {
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
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }

    /// Ends the stream in this direction or both; a socket that has failed already is left alone.
    pub fn shutdown(&self, how: Shutdown) {
        let _ = match self {
            Self::Unix(stream) => stream.shutdown(how),
            Self::Tcp(stream) => stream.shutdown(how),
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

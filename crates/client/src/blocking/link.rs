//! The socket: reading and writing what there is, and waiting.
//!
//! No other file of the blocking client depends on the kind of the stream.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::Builder;
use super::dial::{connect_tcp, connect_unix};
use crate::address::Address;
use crate::error::ConnectError;
use crate::memory::Memory;
use crate::owner::Owner;
use crate::quiet::Quiet;
use crate::tcp::Patience;
#[cfg(feature = "tls")]
use crate::tls::{Session, Step};

/// A connected socket that never blocks; both halves of a client use it. In a child of the process that connected each
/// step fails, and does nothing.
#[derive(Debug)]
pub struct Link {
    owner: Owner,
    socket: Socket,
    patience: Patience,
}

#[derive(Debug)]
enum Socket {
    Unix(UnixStream),
    /// The daemon's frames come through memory.
    Memory(UnixStream, Box<Memory>),
    Tcp(TcpStream),
    #[cfg(feature = "tls")]
    Tls(TcpStream, Box<Session>),
}

/// The events to wait for; a closed or failed socket counts as both.
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
                Ok(Socket::Unix(stream).into())
            }
            Address::Tcp(host) => {
                let stream = connect_tcp(host, builder.insecure, deadline)?;
                Ok(Socket::Tcp(stream).into())
            }
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
        let link = Self::from(Socket::Tls(stream, Box::new(session)));
        while let Socket::Tls(stream, session) = &link.socket {
            let write = match session.shake(&mut Quiet(stream))? {
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

impl From<Socket> for Link {
    fn from(socket: Socket) -> Self {
        Self {
            owner: Owner::this(),
            socket,
            patience: Patience::default(),
        }
    }
}

impl Link {
    /// Reads as [`Self::read`] does, and a descriptor that came with it. Then nothing was read behind that.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, Option<OwnedFd>)>> {
        self.owner.check()?;
        let Socket::Unix(stream) = &self.socket else {
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
    pub fn with_memory(mut self, memory: Option<Box<Memory>>) -> Self {
        self.socket = match (self.socket, memory) {
            (Socket::Unix(stream), Some(memory)) => Socket::Memory(stream, memory),
            (socket, _) => socket,
        };
        self
    }

    /// Whether there is something to read that no descriptor tells of.
    pub fn has_more(&self) -> bool {
        match &self.socket {
            Socket::Memory(_, memory) => memory.has_more(),
            _ => false,
        }
    }

    /// As [`Self::has_more`]; of a session of TLS too, whose reads empty it by themselves.
    fn has_read_ahead(&self) -> bool {
        #[cfg(feature = "tls")]
        if let Socket::Tls(_, session) = &self.socket {
            return session.has_more();
        }
        self.has_more()
    }

    /// Reads what is there: `None` if there is nothing yet, 0 at the end of the stream.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        self.owner.check()?;
        match &self.socket {
            Socket::Unix(stream) => or_none(|| Quiet(stream).read(buffer)),
            Socket::Memory(stream, memory) => {
                memory.read(buffer, |buffer| or_none(|| Quiet(stream).read(buffer)))
            }
            Socket::Tcp(stream) => or_none(|| Quiet(stream).read(buffer)),
            #[cfg(feature = "tls")]
            Socket::Tls(stream, session) => session.read(&mut Quiet(stream), buffer),
        }
    }

    /// Writes what the socket takes now; `None` if that is nothing: then the same bytes are to be tried again.
    pub fn write(&self, bytes: &[u8]) -> io::Result<Option<usize>> {
        self.owner.check()?;
        match &self.socket {
            Socket::Unix(stream) | Socket::Memory(stream, _) => {
                or_none(|| Quiet(stream).write(bytes))
            }
            Socket::Tcp(stream) => or_none(|| Quiet(stream).write(bytes)),
            #[cfg(feature = "tls")]
            Socket::Tls(stream, session) => session.write(&mut Quiet(stream), bytes),
        }
    }

    /// Whether this process has connected, and not one that it was forked from.
    pub fn is_own(&self) -> bool {
        self.owner.is_this()
    }

    /// Waits until one of these is possible; false if the time has come first.
    pub fn wait(&self, interest: Interest, deadline: Option<Instant>) -> io::Result<bool> {
        self.owner.check()?;
        if interest.read && self.has_read_ahead() {
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

    /// Whether [`Self::mind`] does anything: a peer on this host needs no patience.
    pub const fn is_patient(&self) -> bool {
        !matches!(self.socket, Socket::Unix(_) | Socket::Memory(..))
    }

    /// Notes the bytes of messages that the daemon has not acknowledged.
    pub fn mind(&self, outstanding: u64) {
        if self.is_patient() && self.is_own() {
            self.patience.mind(self.fd(), outstanding);
        }
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Unix(stream) | Socket::Memory(stream, _) => stream.as_fd(),
            Socket::Tcp(stream) => stream.as_fd(),
            #[cfg(feature = "tls")]
            Socket::Tls(stream, _) => stream.as_fd(),
        }
    }

    /// Ends the stream in this direction or both; a socket that has failed already is left alone.
    pub fn shutdown(&self, how: Shutdown) {
        if !self.is_own() {
            return;
        }
        let _ = match &self.socket {
            Socket::Unix(stream) | Socket::Memory(stream, _) => stream.shutdown(how),
            Socket::Tcp(stream) => stream.shutdown(how),
            #[cfg(feature = "tls")]
            Socket::Tls(stream, session) => {
                session.close(&mut Quiet(stream));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_neither_reads_nor_writes_nor_ends_the_connection() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        for socket in [&ours, &theirs] {
            socket.set_nonblocking(true).expect("a socket");
        }
        let mut link = Link::from(Socket::Unix(ours));
        link.owner = Owner::parent();
        theirs.write_all(b"news").expect("there is room");
        let both = Interest {
            read: true,
            write: true,
        };
        assert!(link.read(&mut [0; 9]).is_err());
        assert!(link.receive(&mut [0; 9]).is_err());
        assert!(link.write(b"x").is_err());
        assert!(link.wait(both, None).is_err());
        link.shutdown(Shutdown::Both);
        // Nothing of that has happened.
        let error = theirs.read(&mut [0; 9]).expect_err("nothing has come");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        link.owner = Owner::this();
        assert_eq!(link.read(&mut [0; 9]).expect("it reads"), Some(4));
    }
}

//! A client's socket, of either kind; and memory beside it.

use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rota_memory::Writer;

/// A connected socket that never blocks.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    /// The frames for the client may go through memory.
    Unix(UnixStream, Option<Box<Shared>>),
}

/// The way through memory ([`rota_memory`]).
#[derive(Debug)]
pub(crate) struct Shared {
    writer: Writer,
    /// Bytes that go before the first record, as they are: the welcome.
    plain: usize,
    /// The descriptor by which the client finds the memory; it goes with the first of these bytes.
    memory: Option<OwnedFd>,
    /// The daemon has said that nothing more comes.
    over: bool,
}

impl Stream {
    fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Tcp(stream) => stream,
            Self::Unix(stream, _) => stream,
        }
    }

    pub fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        registry.register(self.source(), token, interest)
    }

    /// Prepares memory of this many bytes for the frames of the client; [`Self::welcomed`] has to follow.
    ///
    /// # Errors
    /// The system's, or that this is no Unix socket; then all stays as it is.
    pub fn share(&mut self, bytes: usize) -> io::Result<()> {
        let Self::Unix(_, shared) = self else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let (writer, memory) = Writer::new(bytes)?;
        *shared = Some(Box::new(Shared {
            writer,
            plain: 0,
            memory: Some(memory),
            over: false,
        }));
        Ok(())
    }

    /// All behind the next `plain` bytes goes through the memory, if there is any.
    pub fn welcomed(&mut self, plain: usize) {
        if let Self::Unix(_, Some(shared)) = self {
            shared.plain = plain;
        }
    }

    /// The memory, if there is any that the client has not read to its end and may still want to: one that has closed
    /// its socket reads nothing more.
    pub fn take_unread(&mut self) -> Option<Writer> {
        let Self::Unix(stream, shared) = self else {
            return None;
        };
        let shared = shared.take()?;
        // Once the daemon has ended its own way, that looks the same as a client that writes no more and reads on.
        let gone = !shared.over && is_closed(stream);
        (!gone && !shared.writer.is_read()).then_some(shared.writer)
    }

    /// A read may bring less than there is: the kernel ends one of a Unix socket behind a message that carries
    /// descriptors, and at urgent data. It has told of all of it by then, and what is left there may be a descriptor
    /// of the client's own socket, which would never close while it is not read.
    pub const fn reads_stop_early(&self) -> bool {
        matches!(self, Self::Unix(..))
    }

    /// Ends the way to the client; written bytes still arrive. A socket that is gone has no such way.
    pub fn hang_up(&mut self) {
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Self::Unix(stream, shared) => {
                if let Some(shared) = shared {
                    shared.over = true;
                }
                stream.shutdown(Shutdown::Write)
            }
        };
    }
}

/// Whether both ways of a socket are over, and this side has ended none: the other has closed it.
fn is_closed(stream: &UnixStream) -> bool {
    let mut asked = [PollFd::new(stream.as_fd(), PollFlags::empty())];
    let answer = poll(&mut asked, PollTimeout::ZERO);
    let told = asked[0].revents().unwrap_or(PollFlags::empty());
    answer.is_ok() && told.contains(PollFlags::POLLHUP)
}

impl Shared {
    fn write(&mut self, socket: &mut UnixStream, chunks: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.plain == 0 {
            return self.writer.write(socket, chunks);
        }
        let first = chunks.iter().find(|chunk| !chunk.is_empty());
        let first = first.map_or(&[][..], |chunk| &chunk[..chunk.len().min(self.plain)]);
        let written = match &self.memory {
            Some(memory) => rota_memory::send(&*socket, first, memory.as_fd())?,
            None => socket.write(first)?,
        };
        self.plain -= written;
        self.memory = None;
        Ok(written)
    }
}

impl Read for Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(bytes),
            Self::Unix(stream, _) => stream.read(bytes),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, chunks: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write_vectored(chunks),
            Self::Unix(stream, None) => stream.write_vectored(chunks),
            Self::Unix(stream, Some(shared)) => shared.write(stream, chunks),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream as StdStream;

    use super::*;

    /// A client that was told something in memory, and has not read it.
    fn told() -> (Stream, StdStream) {
        let (here, there) = StdStream::pair().expect("descriptors");
        here.set_nonblocking(true).expect("it is open");
        let mut stream = Stream::Unix(UnixStream::from_std(here), None);
        stream.share(64 << 10).expect("memory");
        stream.write_all(&[0; 8 << 10]).expect("there is room");
        (stream, there)
    }

    #[test]
    fn who_has_closed_the_socket_reads_nothing_more_of_the_memory() {
        let (mut stream, there) = told();
        drop(there);
        assert!(stream.take_unread().is_none());
    }

    #[test]
    fn who_only_writes_no_more_may_still_read() {
        let (mut stream, there) = told();
        there.shutdown(Shutdown::Write).expect("it is open");
        assert!(stream.take_unread().is_some());
        // Nor is one closed that the daemon has told that nothing more comes.
        let (mut stream, there) = told();
        stream.hang_up();
        there.shutdown(Shutdown::Write).expect("it is open");
        assert!(stream.take_unread().is_some());
    }
}

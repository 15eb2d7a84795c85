//! A client's socket, of either kind; and memory beside it.

use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use rota_memory::Writer;

/// A connected socket that never blocks.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    /// What the client is told may go through memory.
    Unix(UnixStream, Option<Box<Shared>>),
}

/// The way through memory ([`rota_memory`]).
#[derive(Debug)]
pub(crate) struct Shared {
    writer: Writer,
    /// Bytes that go before, as they are: the welcome.
    plain: usize,
    /// What the client finds the memory by; it goes with the first of them.
    memory: Option<OwnedFd>,
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

    /// Prepares memory of so many bytes for what the client is told; [`Self::welcomed`] has to follow.
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
        }));
        Ok(())
    }

    /// All behind the next `plain` bytes goes through the memory, if there is any.
    pub fn welcomed(&mut self, plain: usize) {
        if let Self::Unix(_, Some(shared)) = self {
            shared.plain = plain;
        }
    }

    /// The memory, if there is any that the client has not read to its end.
    pub fn take_unread(&mut self) -> Option<Writer> {
        match self {
            Self::Unix(_, shared) => shared
                .take()
                .map(|shared| shared.writer)
                .filter(|writer| !writer.is_read()),
            Self::Tcp(_) => None,
        }
    }

    /// A read may bring less than there is: the kernel ends one of a Unix socket behind a message that carries
    /// descriptors, and at urgent data. It has told of all of it by then, and what is left there may be a descriptor
    /// of the client's own socket, which would never close while it is not read.
    pub const fn reads_stop_early(&self) -> bool {
        matches!(self, Self::Unix(..))
    }

    /// Ends the way to the client; what was written still arrives. A socket that is gone has none.
    pub fn hang_up(&self) {
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Self::Unix(stream, _) => stream.shutdown(Shutdown::Write),
        };
    }
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

//! The socket of an async client.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::time;

use crate::address::Address;
use crate::blocking::Builder;
use crate::error::ConnectError;
use crate::memory::Memory;
#[cfg(feature = "tls")]
use crate::tls::{Session, Step};

/// From one attempt to connect to the next, where the daemon's queue is full.
const TRY_AGAIN: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub enum Stream {
    Unix(UnixStream),
    /// What the daemon says comes through memory.
    Memory(UnixStream, Box<Memory>),
    Tcp(TcpStream),
    #[cfg(feature = "tls")]
    Tls(TcpStream, Box<Session>),
}

impl Stream {
    pub async fn connect(address: &Address, builder: &Builder) -> Result<Self, ConnectError> {
        match address {
            Address::Unix(path) => Ok(Self::Unix(connect_unix(path).await?)),
            Address::Tcp(host) => Ok(Self::Tcp(connect_tcp(host, builder.insecure).await?)),
            Address::Tls(host) => Self::connect_tls(host, builder).await,
        }
    }

    #[cfg(not(feature = "tls"))]
    async fn connect_tls(_: &str, _: &Builder) -> Result<Self, ConnectError> {
        Err(ConnectError::Tls(
            "this program was built without it".to_owned(),
        ))
    }

    #[cfg(feature = "tls")]
    async fn connect_tls(host: &str, builder: &Builder) -> Result<Self, ConnectError> {
        let Some(tls) = &builder.tls else {
            return Err(ConnectError::Tls(
                "no certificates to trust are given".to_owned(),
            ));
        };
        let session = tls.session(host)?;
        let stream = connect_tcp(host, true).await?;
        loop {
            match session.shake(&mut Try(&stream))? {
                Step::Done => return Ok(Self::Tls(stream, Box::new(session))),
                Step::Read => stream.readable().await?,
                Step::Write => stream.writable().await?,
            }
        }
    }
}

/// Where as many wait as may, the kernel says so at once: then it is tried again, for as long as the caller waits.
async fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                time::sleep(TRY_AGAIN).await;
            }
            connected => return connected,
        }
    }
}

async fn connect_tcp(host: &str, insecure: bool) -> Result<TcpStream, ConnectError> {
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in lookup_host(host).await? {
        if !insecure && !address.ip().is_loopback() {
            return Err(ConnectError::Insecure(address));
        }
        match TcpStream::connect(address).await {
            Ok(stream) => {
                // Writes are gathered here already.
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed.into())
}

/// A socket as the standard library has them: it does what it can now.
#[cfg(feature = "tls")]
struct Try<'a>(&'a TcpStream);

#[cfg(feature = "tls")]
impl io::Read for Try<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(buffer)
    }
}

#[cfg(feature = "tls")]
impl io::Write for Try<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream {
    /// Waits until there is something to read, or, with `write`, room to write.
    pub async fn ready(&self, write: bool) -> io::Result<()> {
        let interest = if write {
            Interest::READABLE | Interest::WRITABLE
        } else {
            Interest::READABLE
        };
        match self {
            Self::Unix(stream) | Self::Memory(stream, _) => stream.ready(interest).await,
            Self::Tcp(stream) => stream.ready(interest).await,
            #[cfg(feature = "tls")]
            Self::Tls(_, session) if session.has_more() => return Ok(()),
            #[cfg(feature = "tls")]
            Self::Tls(stream, _) => stream.ready(interest).await,
        }
        .map(|_| ())
    }

    /// Reads as [`Self::read`] does, and a descriptor that came with it. Then nothing was read behind that.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, Option<OwnedFd>)>> {
        let Self::Unix(stream) = self else {
            return Ok(self.read(buffer)?.map(|bytes| (bytes, None)));
        };
        let received = stream.try_io(Interest::READABLE, || rota_memory::receive(stream, buffer));
        match received {
            Ok(received) => Ok(Some(received)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// From now on the daemon speaks through memory, if there is any.
    pub fn with_memory(self, memory: Option<Box<Memory>>) -> Self {
        match (self, memory) {
            (Self::Unix(stream), Some(memory)) => Self::Memory(stream, memory),
            (stream, _) => stream,
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
            Self::Unix(stream) => or_none(stream.try_read(buffer)),
            Self::Memory(stream, memory) => {
                memory.read(buffer, |buffer| or_none(stream.try_read(buffer)))
            }
            Self::Tcp(stream) => or_none(stream.try_read(buffer)),
            #[cfg(feature = "tls")]
            Self::Tls(stream, session) => session.read(&mut Try(stream), buffer),
        }
    }

    /// Writes what the socket takes now; `None` if that is nothing.
    pub fn write(&self, bytes: &[u8]) -> io::Result<Option<usize>> {
        match self {
            Self::Unix(stream) | Self::Memory(stream, _) => or_none(stream.try_write(bytes)),
            Self::Tcp(stream) => or_none(stream.try_write(bytes)),
            #[cfg(feature = "tls")]
            Self::Tls(stream, session) => session.write(&mut Try(stream), bytes),
        }
    }
}

fn or_none(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

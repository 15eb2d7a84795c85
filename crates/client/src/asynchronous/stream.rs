//! The socket of an async client.

use std::io;

use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream, lookup_host};

use crate::address::Address;
use crate::error::ConnectError;

#[derive(Debug)]
pub enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    pub async fn connect(address: &Address, insecure: bool) -> Result<Self, ConnectError> {
        let host = match address {
            Address::Unix(path) => return Ok(Self::Unix(UnixStream::connect(path).await?)),
            Address::Tcp(host) => host,
        };
        let mut failed = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        for address in lookup_host(host).await? {
            if !insecure && !address.ip().is_loopback() {
                return Err(ConnectError::Insecure(address));
            }
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    // Writes are gathered here already.
                    stream.set_nodelay(true)?;
                    return Ok(Self::Tcp(stream));
                }
                Err(error) => failed = error,
            }
        }
        Err(failed.into())
    }

    /// Waits until there is something to read, or, with `write`, room to write.
    pub async fn ready(&self, write: bool) -> io::Result<()> {
        let interest = if write {
            Interest::READABLE | Interest::WRITABLE
        } else {
            Interest::READABLE
        };
        match self {
            Self::Unix(stream) => stream.ready(interest).await,
            Self::Tcp(stream) => stream.ready(interest).await,
        }
        .map(|_| ())
    }

    /// Reads what is there: `None` if there is nothing yet, 0 at the end of the stream.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        or_none(match self {
            Self::Unix(stream) => stream.try_read(buffer),
            Self::Tcp(stream) => stream.try_read(buffer),
        })
    }

    /// Writes what the socket takes now; `None` if that is nothing.
    pub fn write(&self, bytes: &[u8]) -> io::Result<Option<usize>> {
        or_none(match self {
            Self::Unix(stream) => stream.try_write(bytes),
            Self::Tcp(stream) => stream.try_write(bytes),
        })
    }
}

fn or_none(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

//! A client of Redis' protocol.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rota_resp::{Replies, Reply, Request};
use rustls::{ClientConnection, StreamOwned};

/// A connection takes so long to make, at most.
const CONNECTS: Duration = Duration::from_secs(2);
/// So much may be answered at once.
const MOST_BYTES: usize = 256 << 20;

/// By TLS or not.
#[derive(Debug)]
enum Wire {
    Plain(TcpStream),
    Sealed(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Wire {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.write_all(bytes),
            Self::Sealed(stream) => stream.write_all(bytes),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Sealed(stream) => stream.read(buffer),
        }
    }
}

/// A connection.
#[derive(Debug)]
pub struct RpcConnection {
    stream: Wire,
    replies: Replies,
}

impl RpcConnection {
    /// To an address. `patience`: for each reply.
    ///
    /// # Errors
    /// The system's.
    pub fn connect(address: SocketAddr, patience: Duration) -> io::Result<Self> {
        Self::open(address, patience, None)
    }

    /// The same, by TLS where there is a side of it.
    ///
    /// # Errors
    /// The system's.
    pub fn open(
        address: SocketAddr,
        patience: Duration,
        sealed: Option<ClientConnection>,
    ) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, CONNECTS)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        let stream = match sealed {
            Some(sealed) => Wire::Sealed(Box::new(StreamOwned::new(sealed, stream))),
            None => Wire::Plain(stream),
        };
        Ok(Self {
            stream,
            replies: Replies::new(MOST_BYTES),
        })
    }

    /// Says several commands at once, and hears what each is answered.
    ///
    /// # Errors
    /// The system's, or there is no reply that can be read: the connection is of no use any more.
    pub fn say<A: AsRef<[u8]>>(&mut self, commands: &[Vec<A>]) -> io::Result<Vec<Reply>> {
        let mut out = Vec::new();
        for command in commands {
            Request::write(command, &mut out);
        }
        self.stream.write_all(&out)?;
        (0..commands.len()).map(|_| self.hear()).collect()
    }

    fn hear(&mut self) -> io::Result<Reply> {
        let mut buffer = [0; 16_384];
        loop {
            if let Some(reply) = self.replies.next().map_err(io::Error::other)? {
                return Ok(reply);
            }
            match self.stream.read(&mut buffer)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => self.replies.push(&buffer[..read]),
            }
        }
    }
}

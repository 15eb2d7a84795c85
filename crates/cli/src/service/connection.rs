//! A connection to a server of Redis' protocol, of many in one thread.

use std::io;
use std::net::SocketAddr;

use rota_resp::{Replies, Reply, Request};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// So much may be answered at once.
const MOST_BYTES: usize = 64 << 20;

/// One connection.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    replies: Replies,
    out: Vec<u8>,
}

impl Connection {
    /// To a server.
    ///
    /// # Errors
    /// The system's.
    pub async fn to(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            replies: Replies::new(MOST_BYTES),
            out: Vec::new(),
        })
    }

    /// A command, which [`flush`](Self::flush) sends.
    pub fn say<A: AsRef<[u8]>>(&mut self, command: &[A]) {
        Request::write(command, &mut self.out);
    }

    /// Sends what was said.
    ///
    /// # Errors
    /// The system's.
    pub async fn flush(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.out).await?;
        self.out.clear();
        Ok(())
    }

    /// The next reply.
    ///
    /// # Errors
    /// The system's, or it cannot be read.
    pub async fn hear(&mut self) -> io::Result<Reply> {
        let mut buffer = [0; 16_384];
        loop {
            if let Some(reply) = self.replies.next().map_err(io::Error::other)? {
                return Ok(reply);
            }
            match self.stream.read(&mut buffer).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => self.replies.push(&buffer[..read]),
            }
        }
    }
}

//! The socket of an async client.

use std::future::poll_fn;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::Poll;

use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};

use super::dial::{connect_tcp, connect_unix};
use crate::address::Address;
use crate::blocking::Builder;
use crate::error::ConnectError;
use crate::memory::Memory;
use crate::owner::Owner;
use crate::quiet::Quiet;
use crate::tcp::Patience;
#[cfg(feature = "tls")]
use crate::tls::{Session, Step};

/// After this number of waits other tasks, and time-outs, have their turn: the stream of a daemon that sends without end is
/// ready at all times.
const TURNS: u32 = 16;

/// A connected socket. In a child of the process that connected each step fails, and does nothing.
#[derive(Debug)]
pub struct Stream {
    owner: Owner,
    /// There is one until this is dropped.
    socket: Option<Socket>,
    patience: Patience,
    /// The number of waits.
    turns: AtomicU32,
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

impl From<Socket> for Stream {
    fn from(socket: Socket) -> Self {
        Self {
            owner: Owner::this(),
            socket: Some(socket),
            patience: Patience::default(),
            turns: AtomicU32::default(),
        }
    }
}

impl Drop for Stream {
    /// A child of the process that connected shares its parent's queue of readiness events (epoll). An event that the
    /// child took out of the queue would be lost for the parent, so the child leaves everything alone.
    fn drop(&mut self) {
        if !self.is_own() {
            std::mem::forget(self.socket.take());
        }
    }
}

impl Stream {
    pub async fn connect(address: &Address, builder: &Builder) -> Result<Self, ConnectError> {
        match address {
            Address::Unix(path) => Ok(Socket::Unix(connect_unix(path).await?).into()),
            Address::Tcp(host) => {
                Ok(Socket::Tcp(connect_tcp(host, builder.insecure).await?).into())
            }
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
                Step::Done => return Ok(Socket::Tls(stream, Box::new(session)).into()),
                Step::Read => stream.readable().await?,
                Step::Write => stream.writable().await?,
            }
        }
    }
}

/// A socket that does what it can now, and knows when that is not possible.
trait Ready: AsFd {
    fn do_now<T>(&self, interest: Interest, call: impl FnMut() -> io::Result<T>) -> io::Result<T>;
}

impl Ready for UnixStream {
    fn do_now<T>(&self, interest: Interest, call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        self.try_io(interest, call)
    }
}

impl Ready for TcpStream {
    fn do_now<T>(&self, interest: Interest, call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        self.try_io(interest, call)
    }
}

/// Reads and writes what is possible now, as the standard library's sockets do.
struct Try<'a, S>(&'a S);

impl<S: Ready> io::Read for Try<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let socket = self.0;
        socket.do_now(Interest::READABLE, || Quiet(socket).read(buffer))
    }
}

impl<S: Ready> io::Write for Try<'_, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let socket = self.0;
        socket.do_now(Interest::WRITABLE, || Quiet(socket).write(bytes))
    }

    fn write_vectored(&mut self, pieces: &[io::IoSlice<'_>]) -> io::Result<usize> {
        let socket = self.0;
        socket.do_now(Interest::WRITABLE, || Quiet(socket).write_vectored(pieces))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream {
    /// Whether this process has connected, and not one that it was forked from.
    pub fn is_own(&self) -> bool {
        self.owner.is_this()
    }

    fn socket(&self) -> io::Result<&Socket> {
        self.owner.check()?;
        let gone = || io::ErrorKind::NotConnected.into();
        self.socket.as_ref().ok_or_else(gone)
    }

    /// Notes the bytes of messages that the daemon has not acknowledged.
    pub fn mind(&self, outstanding: u64) {
        match &self.socket {
            None | Some(Socket::Unix(_) | Socket::Memory(..)) => {}
            _ if !self.is_own() => {}
            Some(Socket::Tcp(stream)) => self.patience.mind(stream, outstanding),
            #[cfg(feature = "tls")]
            Some(Socket::Tls(stream, _)) => self.patience.mind(stream, outstanding),
        }
    }

    /// Waits until there is something to read, or, with `write`, room to write.
    pub async fn ready(&self, write: bool) -> io::Result<()> {
        let interest = if write {
            Interest::READABLE | Interest::WRITABLE
        } else {
            Interest::READABLE
        };
        if self.turns.fetch_add(1, Relaxed) % TURNS == TURNS - 1 {
            give_way().await;
        }
        match self.socket()? {
            Socket::Memory(_, memory) if memory.has_more() => return Ok(()),
            Socket::Unix(stream) | Socket::Memory(stream, _) => stream.ready(interest).await,
            Socket::Tcp(stream) => stream.ready(interest).await,
            #[cfg(feature = "tls")]
            Socket::Tls(_, session) if session.has_more() => return Ok(()),
            #[cfg(feature = "tls")]
            Socket::Tls(stream, _) => stream.ready(interest).await,
        }
        .map(|_| ())
    }

    /// Reads as [`Self::read`] does, and a descriptor that came with it. Then nothing was read behind that.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, Option<OwnedFd>)>> {
        let Socket::Unix(stream) = self.socket()? else {
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
    pub fn with_memory(mut self, memory: Option<Box<Memory>>) -> Self {
        self.socket = match (self.socket.take(), memory) {
            (Some(Socket::Unix(stream)), Some(memory)) => Some(Socket::Memory(stream, memory)),
            (socket, _) => socket,
        };
        self
    }

    /// Whether there is something to read that no descriptor tells of.
    pub fn has_more(&self) -> bool {
        match &self.socket {
            Some(Socket::Memory(_, memory)) => memory.has_more(),
            _ => false,
        }
    }

    /// Reads what is there: `None` if there is nothing yet, 0 at the end of the stream.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self.socket()? {
            Socket::Unix(stream) => or_none(Try(stream).read(buffer)),
            Socket::Memory(stream, memory) => {
                memory.read(buffer, |buffer| or_none(Try(stream).read(buffer)))
            }
            Socket::Tcp(stream) => or_none(Try(stream).read(buffer)),
            #[cfg(feature = "tls")]
            Socket::Tls(stream, session) => session.read(&mut Try(stream), buffer),
        }
    }

    /// Writes what the socket takes now; `None` if that is nothing.
    pub fn write(&self, bytes: &[u8]) -> io::Result<Option<usize>> {
        match self.socket()? {
            Socket::Unix(stream) | Socket::Memory(stream, _) => or_none(Try(stream).write(bytes)),
            Socket::Tcp(stream) => or_none(Try(stream).write(bytes)),
            #[cfg(feature = "tls")]
            Socket::Tls(stream, session) => session.write(&mut Try(stream), bytes),
        }
    }
}

/// Comes back after other tasks have had their turn.
async fn give_way() {
    let mut has_waited = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn or_none(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_child_neither_reads_nor_writes_nor_ends_the_connection() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        theirs.try_write(b"news").expect("there is room");
        let mut stream = Stream::from(Socket::Unix(ours));
        stream.owner = Owner::parent();
        assert!(stream.ready(true).await.is_err());
        assert!(stream.read(&mut [0; 9]).is_err());
        assert!(stream.write(b"x").is_err());
        drop(stream);
        // Nothing of that has happened.
        let error = theirs.try_read(&mut [0; 9]).expect_err("nothing has come");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }
}

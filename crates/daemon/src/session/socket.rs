//! The socket of a client: what it is ready for, and whether it still takes bytes.

use std::io::{ErrorKind, IoSlice, Read, Write};

use rota_core::contract::Time;
use rota_memory::Writer;
use rota_net::monotonic;

use crate::door::Notice;
use crate::stream::Stream;

/// The outcome of a read.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Came {
    /// Nothing for now, or a signal came first.
    Nothing,
    /// So many bytes.
    Bytes(usize),
    /// The client has gone: why.
    Gone(String),
}

/// The outcome of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Went {
    /// The socket has taken so many bytes.
    Bytes(usize),
    /// The socket takes no more for now.
    Full,
    /// A signal came first, or the socket takes nothing any more.
    Nothing,
}

/// A socket that never blocks, and what is known of it.
#[derive(Debug)]
pub(super) struct ClientSocket {
    stream: Stream,
    readable: bool,
    writable: bool,
    /// The client writes no more: the end is still to be read.
    closed: bool,
    /// The socket is full since then, and has taken nothing.
    unread_since: Option<Time>,
    /// The socket takes nothing any more; there may still be something to read.
    deaf: bool,
    /// Its client says that it has taken more than it was given.
    lies: bool,
}

impl ClientSocket {
    pub const fn new(stream: Stream) -> Self {
        Self {
            stream,
            readable: true,
            writable: true,
            closed: false,
            unread_since: None,
            deaf: false,
            lies: false,
        }
    }

    /// Takes over what the kernel has said.
    pub const fn notice(&mut self, notice: Notice) {
        self.readable |= notice.readable;
        self.closed |= notice.closed;
        self.writable |= notice.writable;
    }

    /// Prepares memory of this many bytes for the frames of the client, if its socket can have some;
    /// [`Self::welcomed`] has to follow.
    pub fn share(&mut self, bytes: usize) -> bool {
        self.stream.share(bytes).is_ok()
    }

    /// All behind the next `plain` bytes goes through the memory, if there is any.
    pub fn welcomed(&mut self, plain: usize) {
        self.stream.welcomed(plain);
    }

    /// There may be something to read.
    pub const fn is_readable(&self) -> bool {
        self.readable
    }

    /// The socket may take something.
    pub const fn can_write(&self) -> bool {
        self.writable && !self.deaf
    }

    /// The socket takes nothing any more.
    pub const fn is_deaf(&self) -> bool {
        self.deaf
    }

    /// Whether its client has said since the last call that it has taken more than it was given.
    pub const fn take_lie(&mut self) -> bool {
        std::mem::replace(&mut self.lies, false)
    }

    /// The time since which the socket takes nothing, if bytes wait for it.
    pub const fn unread_since(&self) -> Option<Time> {
        self.unread_since
    }

    /// Reads once.
    pub fn read(&mut self, into: &mut [u8]) -> Came {
        match self.stream.read(into) {
            Ok(0) => Came::Gone("it has closed the connection".to_owned()),
            Ok(length) => {
                // If a short read has taken all there was, the kernel tells of later bytes.
                let all = length < into.len() && !self.stream.reads_stop_early();
                self.readable = !all || self.closed;
                Came::Bytes(length)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.readable = false;
                Came::Nothing
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Came::Nothing,
            Err(error) => Came::Gone(error.to_string()),
        }
    }

    /// Offers bytes once.
    pub fn write(&mut self, pieces: &[IoSlice<'_>]) -> Went {
        match self.stream.write_vectored(pieces) {
            Ok(bytes) => {
                self.unread_since = None;
                Went::Bytes(bytes)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.writable = false;
                self.unread_since.get_or_insert_with(monotonic);
                Went::Full
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Went::Nothing,
            Err(error) => {
                self.lies |= error.kind() == ErrorKind::InvalidData;
                self.deaf = true;
                self.readable = true;
                Went::Nothing
            }
        }
    }

    /// The session is over: the memory that its client may still read from.
    pub fn take_unread(&mut self) -> Option<Writer> {
        self.stream.take_unread()
    }

    /// Tells the client's side that nothing more comes.
    pub fn hang_up(&mut self) {
        self.stream.hang_up();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn pair() -> (ClientSocket, UnixStream) {
        let (near, far) = UnixStream::pair().expect("descriptors");
        near.set_nonblocking(true).expect("a socket");
        let stream = Stream::Unix(mio::net::UnixStream::from_std(near), None);
        (ClientSocket::new(stream), far)
    }

    #[test]
    fn a_full_socket_is_unread_until_it_takes_something_again() {
        let (mut socket, mut far) = pair();
        let bytes = vec![0; 64 << 10];
        while socket.write(&[IoSlice::new(&bytes)]) != Went::Full {}
        assert!(!socket.can_write() && socket.unread_since().is_some());
        let mut sink = vec![0; 4 << 20];
        let read = far.read(&mut sink).expect("there is something");
        assert!(read > 0);
        socket.notice(Notice {
            key: 0,
            readable: false,
            writable: true,
            closed: false,
        });
        assert!(socket.can_write() && socket.unread_since().is_some());
        assert!(matches!(
            socket.write(&[IoSlice::new(&bytes)]),
            Went::Bytes(_)
        ));
        assert_eq!(socket.unread_since(), None);
    }

    #[test]
    fn a_client_that_has_gone_is_deaf_and_what_it_sent_is_still_read() {
        let (mut socket, mut far) = pair();
        far.write_all(b"bye").expect("there is room");
        let mut buffer = [0; 8];
        // More may come, behind a descriptor.
        assert_eq!(socket.read(&mut buffer), Came::Bytes(3));
        assert_eq!(socket.read(&mut buffer), Came::Nothing);
        assert!(!socket.is_readable());
        drop(far);
        assert_eq!(socket.write(&[IoSlice::new(&[0])]), Went::Nothing);
        assert!(socket.is_deaf() && !socket.can_write() && socket.is_readable());
        assert!(matches!(socket.read(&mut buffer), Came::Gone(_)));
    }
}

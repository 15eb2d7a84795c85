//! One of the two sockets of a link, with what the kernel has said of it.

use std::io::{self, ErrorKind, Read, Write};

use mio::event::Event;

/// A socket that never blocks, and its readiness: reported by the kernel, and not found over since.
#[derive(Debug)]
pub(super) struct Side<S> {
    socket: S,
    can_read: bool,
    can_write: bool,
}

impl<S> Side<S> {
    /// A socket of which nothing is known yet: it is tried.
    pub const fn new(socket: S) -> Self {
        Self {
            socket,
            can_read: true,
            can_write: true,
        }
    }

    /// Takes over what the kernel has said.
    pub fn notice(&mut self, event: &Event) {
        self.can_read |= event.is_readable() || event.is_read_closed() || event.is_error();
        self.can_write |= event.is_writable() || event.is_write_closed() || event.is_error();
    }

    pub const fn can_read(&self) -> bool {
        self.can_read
    }

    pub const fn can_write(&self) -> bool {
        self.can_write
    }

    /// The socket has come to its end: there is nothing to read any more.
    pub const fn at_end(&mut self) {
        self.can_read = false;
    }

    pub const fn socket(&self) -> &S {
        &self.socket
    }

    /// Has `read` read once. `None`: nothing for now, or a signal came first.
    pub fn read(
        &mut self,
        read: impl FnOnce(&mut S) -> io::Result<usize>,
    ) -> io::Result<Option<usize>> {
        match read(&mut self.socket) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.can_read = false;
                Ok(None)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
            read => read.map(Some),
        }
    }

    /// Has `write` write once. `None`: no room for now, or a signal came first.
    pub fn write(
        &mut self,
        write: impl FnOnce(&mut S) -> io::Result<usize>,
    ) -> io::Result<Option<usize>> {
        match write(&mut self.socket) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.can_write = false;
                Ok(None)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
            written => written.map(Some),
        }
    }
}

impl<S: Read + Write> Side<S> {
    pub fn read_into(&mut self, bytes: &mut [u8]) -> io::Result<Option<usize>> {
        self.read(|socket| socket.read(bytes))
    }

    pub fn write_from(&mut self, bytes: &[u8]) -> io::Result<Option<usize>> {
        self.write(|socket| socket.write(bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_socket_that_is_found_empty_or_full_is_not_tried_again() {
        let (near, mut far) = UnixStream::pair().expect("descriptors");
        near.set_nonblocking(true).expect("a socket");
        let mut side = Side::new(near);
        let mut buffer = [0; 16];
        assert!(side.can_read() && side.can_write());
        far.write_all(b"abc").expect("there is room");
        assert_eq!(side.read_into(&mut buffer).expect("it is open"), Some(3));
        assert!(side.can_read());
        assert_eq!(side.read_into(&mut buffer).expect("it is open"), None);
        assert!(!side.can_read());
        while side.write_from(&[0; 4096]).expect("it is open").is_some() {}
        assert!(!side.can_write());
        drop(far);
        assert!(side.write_from(&[0]).is_err(), "nobody reads it any more");
    }
}

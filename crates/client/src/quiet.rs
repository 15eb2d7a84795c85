//! Sockets that raise no signal.

use std::io::{self, IoSlice, Read, Write};
use std::os::fd::AsFd;

use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};

/// The most pieces of one call; the system refuses more than 1024.
const PIECES: usize = 64;

/// A socket on which no write raises SIGPIPE, which ends a program that does not ignore it, as one in C need not. The
/// standard library raises it where it writes several pieces at once.
#[derive(Clone, Copy, Debug)]
pub struct Quiet<S>(pub S);

impl<S: AsFd> Read for Quiet<S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let (bytes, _) = recv(&self.0, into, RecvFlags::empty())?;
        Ok(bytes)
    }
}

impl<S: AsFd> Write for Quiet<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(&self.0, bytes, SendFlags::NOSIGNAL)?)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let pieces = &pieces[..pieces.len().min(PIECES)];
        let mut nothing = SendAncillaryBuffer::default();
        Ok(sendmsg(&self.0, pieces, &mut nothing, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn bytes_pass_in_one_piece_and_in_many() {
        let (to, from) = UnixStream::pair().expect("a pair");
        assert_eq!(Quiet(&to).write(b"one").expect("it writes"), 3);
        let many = vec![IoSlice::new(b"x"); 2000];
        assert_eq!(Quiet(&to).write_vectored(&many).expect("it writes"), PIECES);
        let mut into = [0; 100];
        let bytes = Quiet(&from).read(&mut into).expect("it reads");
        assert_eq!(&into[..bytes], [&b"one"[..], &[b'x'; PIECES]].concat());
        drop(from);
        let error = Quiet(&to).write_vectored(&many).expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}

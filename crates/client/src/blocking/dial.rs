//! Connects the socket of a blocking client.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_error};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::error::ConnectError;
use crate::tcp;

/// If the queue of the listener is full, the kernel lets `connect` wait for the send time-out of the socket.
pub fn connect_unix(path: &Path, deadline: Option<Instant>) -> Result<UnixStream, ConnectError> {
    let os = |error: Errno| ConnectError::Io(error.into());
    let address = SocketAddrUnix::new(path).map_err(os)?;
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(os)?;
    loop {
        set_socket_timeout(&socket, Timeout::Send, left(deadline)?).map_err(os)?;
        match connect(&socket, &address) {
            Ok(()) => return Ok(socket.into()),
            Err(Errno::AGAIN) => return Err(ConnectError::TimedOut),
            Err(Errno::INTR) => {}
            Err(error) => return Err(os(error)),
        }
    }
}

/// The time until the deadline; `None` if there is no deadline.
fn left(deadline: Option<Instant>) -> Result<Option<Duration>, ConnectError> {
    let Some(deadline) = deadline else {
        return Ok(None);
    };
    match deadline.checked_duration_since(Instant::now()) {
        Some(left) if !left.is_zero() => Ok(Some(left)),
        _ => Err(ConnectError::TimedOut),
    }
}

pub fn connect_tcp(
    host: &str,
    insecure: bool,
    deadline: Option<Instant>,
) -> Result<TcpStream, ConnectError> {
    connect_first(tcp::to_try(host.to_socket_addrs()?, insecure)?, deadline)
}

/// Tries the addresses one behind the other, each soon after the one before, and takes the first that answers: an
/// address without an answer does not hold up the next.
fn connect_first(
    addresses: Vec<SocketAddr>,
    deadline: Option<Instant>,
) -> Result<TcpStream, ConnectError> {
    let mut rest = addresses.into_iter();
    let mut attempts = Attempts::default();
    loop {
        if let Some(address) = rest.next() {
            if !attempts.begin(&address) {
                continue;
            }
        } else if attempts.under_way.is_empty() {
            let failed = attempts.failed.unwrap_or_else(tcp::no_address);
            return Err(failed.into());
        }
        let left = left(deadline)?;
        let pause = (rest.len() > 0).then_some(tcp::STAGGER);
        if let Some(socket) = attempts.wait([left, pause].into_iter().flatten().min())? {
            let stream = TcpStream::from(socket);
            tcp::prepare(&stream)?;
            return Ok(stream);
        }
    }
}

/// Connections that are being made, by sockets that never block.
#[derive(Default, Debug)]
struct Attempts {
    under_way: Vec<OwnedFd>,
    /// Why the last one failed that did.
    failed: Option<io::Error>,
}

impl Attempts {
    /// Whether it has begun: it may fail at once.
    fn begin(&mut self, address: &SocketAddr) -> bool {
        let begun = begin(address);
        let is_begun = begun.is_ok();
        match begun {
            Ok(socket) => self.under_way.push(socket),
            Err(error) => self.failed = Some(error.into()),
        }
        is_begun
    }

    /// Waits until one has ended, at most so long; a connection if it has been made.
    fn wait(&mut self, most: Option<Duration>) -> io::Result<Option<OwnedFd>> {
        // Longer than the clock can count is for ever.
        let most = most.and_then(|most| Timespec::try_from(most).ok());
        let under_way = self.under_way.iter();
        let mut polled: Vec<_> = under_way
            .map(|socket| PollFd::new(socket, PollFlags::OUT))
            .collect();
        match poll(&mut polled, most.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let ended = polled.iter().position(|one| !one.revents().is_empty());
        let Some(ended) = ended else {
            return Ok(None);
        };
        let socket = self.under_way.remove(ended);
        match socket_error(&socket)? {
            Ok(()) => Ok(Some(socket)),
            Err(error) => {
                self.failed = Some(error.into());
                Ok(None)
            }
        }
    }
}

fn begin(address: &SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    match connect(&socket, address) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(socket),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::tests::{BlackHole, closed_port, open_port};

    #[test]
    fn an_address_that_nothing_answers_for_keeps_nobody_from_the_next() {
        let (hole, open) = (BlackHole::new(), open_port());
        let good = open.local_addr().expect("its address");
        let addresses = vec![hole.address, closed_port(), hole.address, good];
        let began = Instant::now();
        let deadline = began.checked_add(Duration::from_secs(20));
        let stream = connect_first(addresses, deadline).expect("connected");
        assert_eq!(stream.peer_addr().expect("connected"), good);
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "it waited for the first"
        );
    }

    #[test]
    fn attempts_end_with_the_time_or_with_the_last_of_them() {
        let hole = BlackHole::new();
        let deadline = Instant::now().checked_add(Duration::from_millis(400));
        let late = connect_first(vec![hole.address; 2], deadline).expect_err("nothing answers");
        assert!(matches!(late, ConnectError::TimedOut), "{late}");
        for addresses in [vec![], vec![closed_port(); 2]] {
            let failed = connect_first(addresses, None).expect_err("there is nobody");
            assert!(matches!(failed, ConnectError::Io(_)), "{failed}");
        }
    }
}

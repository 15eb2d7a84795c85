//! The TCP options of both kinds of clients, and the order of the addresses to try.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use rustix::net::sockopt::{
    set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl, set_tcp_nodelay,
    set_tcp_user_timeout,
};

use crate::error::ConnectError;

/// The pause from one attempt to connect to the next, with another address of the host, while the earlier ones go on
/// (RFC 8305 has this number).
pub const STAGGER: Duration = Duration::from_millis(250);

/// After this time without a received byte the system asks the daemon's host for a sign of life.
const IDLE: Duration = Duration::from_secs(10);
/// The time from one question without an answer to the next.
const AGAIN: Duration = Duration::from_secs(5);
/// After this number of questions without an answer the connection is lost.
const QUESTIONS: u32 = 4;
/// The time for which sent bytes may be without an acknowledgement, in milliseconds: as long as all these questions
/// take.
const UNANSWERED_MS: u32 = 30_000;

/// The bytes that the daemon's host buffers for sure, even if the daemon reads nothing at all.
const FIT_BYTES: u64 = 32 << 10;

/// Sets the options of a new connection: it writes at once, since writes are gathered already, and it is lost half a
/// minute after the daemon's host has vanished.
pub fn prepare(socket: impl AsFd) -> io::Result<()> {
    set_tcp_nodelay(&socket, true)?;
    set_tcp_keepidle(&socket, IDLE)?;
    set_tcp_keepintvl(&socket, AGAIN)?;
    set_tcp_keepcnt(&socket, QUESTIONS)?;
    set_socket_keepalive(&socket, true)?;
    set_patience(socket, false)
}

fn set_patience(socket: impl AsFd, patient: bool) -> io::Result<()> {
    let most = if patient { 0 } else { UNANSWERED_MS };
    Ok(set_tcp_user_timeout(socket, most)?)
}

/// Whether sent bytes may be without an acknowledgement for as long as the system likes.
///
/// The system does not tell a host that is silent from one that has no room. A daemon that reads nothing for a while,
/// as without a majority, must not look dead: so while more bytes are on the way than fit there, this side is patient.
/// On an idle connection the questions go on.
#[derive(Default, Debug)]
pub struct Patience(AtomicBool);

impl Patience {
    /// Sets the patience for this number of bytes of messages on the way. Only one thread at a time may call this.
    pub fn mind(&self, socket: impl AsFd, bytes: u64) {
        let patient = bytes > FIT_BYTES;
        // A socket that has failed does not need the option.
        if self.0.load(Relaxed) != patient && set_patience(socket, patient).is_ok() {
            self.0.store(patient, Relaxed);
        }
    }
}

/// The addresses to try, one behind the other: of both versions in turns, as the system prefers them. Only addresses of
/// this machine, unless `insecure` allows others.
pub fn to_try(
    found: impl Iterator<Item = SocketAddr>,
    insecure: bool,
) -> Result<Vec<SocketAddr>, ConnectError> {
    let (here, others): (Vec<_>, Vec<_>) =
        found.partition(|one| insecure || one.ip().is_loopback());
    match others.first() {
        Some(other) if here.is_empty() => Err(ConnectError::Insecure(*other)),
        _ => Ok(in_turns(here)),
    }
}

fn in_turns(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let Some(first) = addresses.first().map(SocketAddr::is_ipv6) else {
        return addresses;
    };
    let count = addresses.len();
    let (preferred, others): (Vec<_>, Vec<_>) = addresses
        .into_iter()
        .partition(|one| one.is_ipv6() == first);
    let (mut preferred, mut others) = (preferred.into_iter(), others.into_iter());
    let mut turns = Vec::with_capacity(count);
    while turns.len() < count {
        turns.extend(preferred.next());
        turns.extend(others.next());
    }
    turns
}

/// The error for a host without any address.
pub fn no_address() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the host has no address")
}

#[cfg(test)]
pub mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::OwnedFd;

    use rustix::net::sockopt::{
        socket_keepalive, tcp_keepcnt, tcp_keepidle, tcp_keepintvl, tcp_user_timeout,
    };

    use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};

    use super::*;

    /// An address of this machine at which nothing answers: as many wait there as may.
    #[derive(Debug)]
    pub struct BlackHole {
        pub address: SocketAddr,
        _kept: (OwnedFd, TcpStream),
    }

    impl BlackHole {
        pub fn new() -> Self {
            let listener = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
            let any = SocketAddr::from(([127, 0, 0, 1], 0));
            bind(&listener, &any).expect("a port");
            listen(&listener, 0).expect("a socket");
            let address = getsockname(&listener).expect("its address");
            let address = address.try_into().expect("an internet address");
            let waits = TcpStream::connect(address).expect("one may wait");
            Self {
                address,
                _kept: (listener, waits),
            }
        }
    }

    pub fn open_port() -> TcpListener {
        TcpListener::bind("127.0.0.1:0").expect("a port")
    }

    /// A port at which connections are refused.
    pub fn closed_port() -> SocketAddr {
        open_port().local_addr().expect("its address")
    }

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        let parse = |text: &&str| text.parse().expect("an address");
        texts.iter().map(parse).collect()
    }

    #[test]
    fn a_host_that_vanishes_is_noticed_in_half_a_minute_unless_much_is_on_the_way() {
        let listener = open_port();
        let address = listener.local_addr().expect("its address");
        let socket = TcpStream::connect(address).expect("connected");
        prepare(&socket).expect("a connected socket");
        assert!(socket_keepalive(&socket).expect("a socket"));
        let asked = tcp_keepidle(&socket).expect("a socket")
            + tcp_keepcnt(&socket).expect("a socket") * tcp_keepintvl(&socket).expect("a socket");
        assert_eq!(asked, Duration::from_secs(30));
        let limit = || tcp_user_timeout(&socket).expect("a socket");
        assert_eq!(limit(), UNANSWERED_MS);
        let patience = Patience::default();
        for (bytes, expected) in [
            (FIT_BYTES, UNANSWERED_MS),
            (FIT_BYTES + 1, 0),
            (0, UNANSWERED_MS),
        ] {
            patience.mind(&socket, bytes);
            assert_eq!(limit(), expected, "{bytes} bytes");
        }
    }

    #[test]
    fn both_versions_are_tried_in_turns() {
        let found = addresses(&["[::1]:1", "[::2]:1", "[::3]:1", "1.0.0.1:1"]);
        let tried = to_try(found.into_iter(), true).expect("some");
        assert_eq!(
            tried,
            addresses(&["[::1]:1", "1.0.0.1:1", "[::2]:1", "[::3]:1"])
        );
        assert!(to_try([].into_iter(), true).expect("none").is_empty());
    }

    #[test]
    fn only_what_is_of_this_machine_is_tried_where_it_may_not_be_left() {
        let found = addresses(&["10.0.0.1:1", "127.0.0.1:1"]);
        let tried = to_try(found.into_iter(), false).expect("one");
        assert_eq!(tried, addresses(&["127.0.0.1:1"]));
        let found = addresses(&["10.0.0.1:1"]);
        let refused = to_try(found.into_iter(), false).expect_err("it is of another");
        assert!(matches!(refused, ConnectError::Insecure(_)));
    }
}

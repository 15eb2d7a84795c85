//! The listeners for clients by TLS, and at which of them some may wait.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};

use super::door::NotOpen;
use crate::descriptors::has_one_for_a_client;
use crate::door::listen_at;

/// The next one at a listener.
#[derive(Debug)]
pub(super) enum Next {
    Client(TcpStream, SocketAddr),
    /// One that has gone already: nobody's error.
    Gone,
    Nobody,
    /// Some may wait that cannot be let in just now: most often there are no descriptors left. It is tried again soon.
    NotNow(io::Error),
}

/// The listeners, by their places.
#[derive(Debug)]
pub(super) struct Listening {
    all: Vec<TcpListener>,
    /// A client waits that could not be let in.
    is_waiting: bool,
    /// Places where more may wait than were let in at once.
    crowded: Vec<usize>,
}

impl Listening {
    /// Listens at these addresses; the tokens count from `first` on.
    pub fn open(
        addresses: &[SocketAddr],
        registry: &Registry,
        first: usize,
    ) -> Result<Self, NotOpen> {
        let mut all = Vec::new();
        for (at, &address) in addresses.iter().enumerate() {
            let here = |error| (Some(address), error);
            let mut listener = listen_at(address, addresses).map_err(here)?;
            let registered =
                registry.register(&mut listener, Token(first + at), Interest::READABLE);
            registered.map_err(here)?;
            all.push(listener);
        }
        Ok(Self {
            all,
            is_waiting: false,
            crowded: Vec::new(),
        })
    }

    /// The next one at a place.
    pub fn accept(&mut self, place: usize) -> Next {
        let Some(listener) = self.all.get(place) else {
            return Next::Nobody;
        };
        match has_one_for_a_client(listener).and_then(|()| listener.accept()) {
            Ok((socket, address)) => Next::Client(socket, address),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Next::Nobody,
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => Next::Gone,
            Err(error) => {
                self.is_waiting = true;
                Next::NotNow(error)
            }
        }
    }

    /// More may wait at a place than were let in at once.
    pub fn crowd(&mut self, place: usize) {
        if !self.crowded.contains(&place) {
            self.crowded.push(place);
        }
    }

    /// Whether there are such places.
    pub const fn is_crowded(&self) -> bool {
        !self.crowded.is_empty()
    }

    pub fn take_crowded(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.crowded)
    }

    /// Somebody waits that could not be let in, or the kernel's readiness may be lost: all places are tried soon.
    pub const fn try_later(&mut self) {
        self.is_waiting = true;
    }

    /// Whether all places are to be tried soon.
    pub const fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    pub const fn take_waiting(&mut self) -> bool {
        std::mem::replace(&mut self.is_waiting, false)
    }

    /// The number of places.
    pub const fn len(&self) -> usize {
        self.all.len()
    }

    /// Nobody is let in any more.
    pub fn close(&mut self) {
        self.all.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpStream as StdTcpStream};

    use mio::Poll;

    use super::*;

    #[test]
    fn who_waits_is_accepted_and_nobody_is_once_it_is_closed() {
        let poll = Poll::new().expect("descriptors");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut listening = Listening::open(&[address], poll.registry(), 7).expect("a port");
        assert!(matches!(listening.accept(0), Next::Nobody));
        let address = listening.all[0].local_addr().expect("it is bound");
        let _client = StdTcpStream::connect(address).expect("it listens");
        assert!(matches!(listening.accept(0), Next::Client(..)));
        listening.close();
        assert!(matches!(listening.accept(0), Next::Nobody));
        assert!(!listening.is_waiting());
    }
}

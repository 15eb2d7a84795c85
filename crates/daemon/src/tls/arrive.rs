//! The admission of clients by TLS.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Instant;

use mio::net::TcpStream;
use mio::{Interest, Token};
use rustls::ServerConnection;

use super::link::Link;
use super::thread::Relays;
use crate::descriptors::has_one_for_a_client;
use crate::door::keep_alive;
use crate::seats::owner_at;

/// Connections that are accepted before those that are there have their turn.
const ACCEPTS: usize = 64;

impl Relays {
    /// Lets in who waits at a listener. If there are many, the others have their turn when the clients that are there
    /// have had theirs: connections may come as fast as they are accepted.
    pub(super) fn accept(&mut self, place: usize) {
        for _ in 0..ACCEPTS {
            let Some(listener) = self.listeners.get(place) else {
                return;
            };
            let next = has_one_for_a_client(listener).and_then(|()| listener.accept());
            match next {
                Ok((socket, address)) => self.greet(socket, address),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // A client that has gone already is nobody's error.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    // Most often there are no descriptors left: it is tried again soon.
                    self.complaints
                        .say("a TLS client cannot be let in", &error, &"");
                    self.waiting = true;
                    self.has_deadlines = true;
                    return;
                }
            }
        }
        if !self.crowded.contains(&place) {
            self.crowded.push(place);
        }
    }

    /// Goes on where more waited than were let in at once.
    pub(super) fn accept_more(&mut self) {
        for place in std::mem::take(&mut self.crowded) {
            self.accept(place);
        }
    }

    fn greet(&mut self, mut socket: TcpStream, address: SocketAddr) {
        let address = address.ip().to_canonical();
        let Some(seat) = self.seats.take(owner_at(address)) else {
            let reason =
                "a TLS client is turned away: its address has as many connections as it may";
            self.complaints.say(reason, &address, &"");
            return;
        };
        if self.links.len() >= self.terms.most {
            let reason = "a TLS client is turned away: there are as many clients as may be";
            self.complaints.say(reason, &address, &"");
            return;
        }
        self.make_room();
        let Ok(mut tls) = ServerConnection::new(self.certificates()) else {
            return;
        };
        tls.set_buffer_limit(None);
        // Without it messages would wait for each other; a socket that is gone has no use for it.
        let _ = socket.set_nodelay(true);
        keep_alive(&socket);
        let entry = self.links.vacant_entry();
        let key = entry.key();
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registry = self.poll.registry();
        if let Err(error) = registry.register(&mut socket, Token(2 * key), interest) {
            self.complaints
                .say("a TLS client cannot be let in", &error, &"");
            return;
        }
        self.newest += 1;
        let deadline = Instant::now() + self.terms.patience;
        entry.insert(Link::new(
            socket,
            tls,
            (address, seat),
            (self.newest, self.newest_terms),
            deadline,
        ));
        self.handshakes.push_back((key, self.newest));
        self.has_deadlines = true;
        self.schedule(key);
    }

    /// One more, and the oldest that has not shown who it is has to go.
    fn make_room(&mut self) {
        if self.handshakes.len() < self.terms.handshakes {
            return;
        }
        let links = &self.links;
        let is_open = |(key, number): &(usize, u64)| {
            let link = links.get(*key);
            link.is_some_and(|link| link.number == *number && link.pair.is_none())
        };
        self.handshakes.retain(is_open);
        if self.handshakes.len() >= self.terms.handshakes
            && let Some((key, _)) = self.handshakes.pop_front()
        {
            self.too_slow(key);
        }
    }
}

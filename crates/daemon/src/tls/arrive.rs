//! The admission of clients by TLS.

use std::net::SocketAddr;
use std::time::Instant;

use mio::net::TcpStream;
use mio::{Interest, Token};
use rustls::ServerConnection;
use rustls::pki_types::UnixTime;

use super::link::{Caller, Link};
use super::listening::Next;
use super::thread::Relays;
use crate::door::keep_alive;
use crate::seats::owner_at;

/// Connections that are accepted before those that are there have their turn.
const ACCEPTS: usize = 64;

impl Relays {
    /// Lets in who waits at a listener. If there are many, the others have their turn when the clients that are there
    /// have had theirs: connections may come as fast as they are accepted.
    pub(super) fn accept(&mut self, place: usize) {
        for _ in 0..ACCEPTS {
            match self.listening.accept(place) {
                Next::Client(socket, address) => self.greet(socket, address),
                Next::Gone => {}
                Next::Nobody => return,
                Next::NotNow(error) => {
                    self.complaints
                        .say("a TLS client cannot be let in", &error, &"");
                    return;
                }
            }
        }
        self.listening.crowd(place);
    }

    /// Goes on where more waited than were let in at once.
    pub(super) fn accept_more(&mut self) {
        for place in self.listening.take_crowded() {
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
        if self.links.len() >= self.terms.most() {
            let reason = "a TLS client is turned away: there are as many clients as may be";
            self.complaints.say(reason, &address, &"");
            return;
        }
        // One more, and the oldest that has not shown who it is has to go.
        let most = self.terms.handshakes();
        if let Some(oldest) = self.links.oldest_handshake(most) {
            self.too_slow(oldest);
        }
        let Ok(mut tls) = ServerConnection::new(self.certificates()) else {
            return;
        };
        tls.set_buffer_limit(None);
        // Without it messages would wait for each other; a socket that is gone has no use for it.
        let _ = socket.set_nodelay(true);
        keep_alive(&socket);
        let token = Token(2 * self.links.vacant_key());
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registry = self.poll.registry();
        if let Err(error) = registry.register(&mut socket, token, interest) {
            self.complaints
                .say("a TLS client cannot be let in", &error, &"");
            return;
        }
        let terms = self.terms.number();
        let deadline = Instant::now() + self.terms.patience();
        self.links.insert(|number| {
            let caller = Caller {
                address,
                number,
                terms,
                since: UnixTime::now(),
                _seat: seat,
            };
            Link::new(socket, tls, caller, deadline)
        });
    }
}

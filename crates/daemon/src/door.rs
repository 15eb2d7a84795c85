//! The listeners, and the sockets that are ready.

mod source;

use std::collections::VecDeque;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mio::{Events, Interest, Poll, Registry, Token, Waker};

use crate::access::{Access, Peer};
use crate::config::Allow;
use crate::seats::{ConnectionLimits, Seat};
use crate::speech;
use crate::stream::Stream;
use crate::tls::{Arrival, News, NotOpen, Terms, TlsDoor};
use rota_net::Complaints;
use source::{Source, Waited, mode, set_mode};

pub(crate) use source::{keep_alive, listen_at, listen_for_owner};

/// Notices taken from the kernel at once.
const EVENTS: usize = 1024;

/// Sockets have tokens below, listeners from here on.
const FIRST_LISTENER: usize = usize::MAX / 2;

/// The token of the waker: clients have come by TLS, or another thread wants something.
const WAKER: Token = Token(usize::MAX);

/// The protocol of a listener.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Port {
    /// Rota's own.
    Native,
    /// Spread's.
    Spread,
    /// None: a peer that connects gets the status of the daemon.
    Admin,
}

/// A client that comes in.
#[derive(Debug)]
pub(crate) struct Comer {
    pub port: Port,
    pub stream: Stream,
    pub peer: Peer,
    /// The client's place among the connections of its owner.
    pub seat: Option<Seat>,
    /// Distinguishes the client from others that came by TLS.
    pub tls: Option<u64>,
}

impl From<Arrival> for Comer {
    fn from(arrival: Arrival) -> Self {
        Self {
            port: Port::Native,
            stream: Stream::Unix(arrival.stream, None),
            peer: arrival.peer,
            // The thread it comes from keeps that.
            seat: None,
            tls: Some(arrival.number),
        }
    }
}

/// The outcome for the next client that waited.
#[derive(Debug)]
pub(crate) enum Accepted {
    Nobody,
    /// A client may wait that cannot be let in just now: most often there are no descriptors left.
    NotNow,
    /// The client may not come in, and has been told so.
    Refused,
    /// The certificate of the client with this number was revoked, after it came in by TLS.
    Revoked(u64),
    Comes(Comer),
}

/// A socket that clients connect to.
#[derive(Debug)]
struct Listener {
    port: Port,
    source: Source,
    /// The kernel has reported a waiting client, and the queue has not been found empty since.
    ready: bool,
}

/// A socket that has something to read or room to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Notice {
    pub key: usize,
    pub readable: bool,
    pub writable: bool,
    /// The other side writes no more.
    pub closed: bool,
}

/// All sockets of clients, and how new ones come in.
#[derive(Debug)]
pub(crate) struct Door {
    poll: Poll,
    waker: Arc<Waker>,
    events: Events,
    listeners: Vec<Listener>,
    /// The listener that accepts next.
    turn: usize,
    notices: VecDeque<Notice>,
    /// Clients that were turned away because of their network.
    turned_away: u64,
    seats: ConnectionLimits,
    tls: Option<TlsDoor>,
    /// Clients that came by TLS, and are not let in yet.
    arrived: VecDeque<News>,
    complaints: Complaints,
}

impl Door {
    /// A door with these limits of connections for each address and user.
    pub fn new(seats: ConnectionLimits) -> io::Result<Self> {
        let poll = Poll::new()?;
        Ok(Self {
            waker: Arc::new(Waker::new(poll.registry(), WAKER)?),
            poll,
            events: Events::with_capacity(EVENTS),
            listeners: Vec::new(),
            turn: 0,
            notices: VecDeque::new(),
            turned_away: 0,
            seats,
            tls: None,
            arrived: VecDeque::new(),
            complaints: Complaints::default(),
        })
    }

    /// The waker that ends a wait for clients' sockets, for any thread.
    pub fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    /// Sets the networks whose clients may connect by TCP.
    pub fn allow(&mut self, port: Port, allow: &Allow) {
        for listener in &mut self.listeners {
            if let Source::Tcp(_, allowed) = &mut listener.source
                && listener.port == port
            {
                allowed.clone_from(allow);
            }
        }
    }

    pub fn registry(&self) -> &Registry {
        self.poll.registry()
    }

    /// Readable when a socket has become ready.
    pub fn fd(&self) -> RawFd {
        self.poll.as_raw_fd()
    }

    fn add(&mut self, port: Port, mut source: Source) -> io::Result<()> {
        let token = Token(FIRST_LISTENER + self.listeners.len());
        let registry = self.poll.registry();
        match &mut source {
            Source::Unix(listener, _) => registry.register(listener, token, Interest::READABLE)?,
            Source::Tcp(listener, _) => registry.register(listener, token, Interest::READABLE)?,
        }
        self.listeners.push(Listener {
            port,
            source,
            ready: true,
        });
        Ok(())
    }

    /// Listens at a path. Removes a socket that an earlier daemon left there, but not one at which a process listens.
    pub fn listen_unix(&mut self, port: Port, path: &Path, access: &Access) -> io::Result<()> {
        self.add(port, Source::unix(path, mode(port, access))?)
    }

    /// Listens at one of these addresses, for those whom the configuration allows.
    pub fn listen_tcp(
        &mut self,
        port: Port,
        (address, all): (SocketAddr, &[SocketAddr]),
        allow: &Allow,
    ) -> io::Result<()> {
        let listener = listen_at(address, all)?;
        self.add(port, Source::Tcp(listener, allow.clone()))
    }

    /// Listens at these addresses for clients that speak TLS.
    pub fn listen_tls(&mut self, addresses: &[SocketAddr], terms: Terms) -> Result<(), NotOpen> {
        let seats = self.seats.clone();
        self.tls = Some(TlsDoor::open(addresses, terms, seats, self.waker())?);
        Ok(())
    }

    /// Sets the terms for clients that come by TLS from now on.
    pub fn change_tls(&self, terms: Terms) {
        if let Some(tls) = &self.tls {
            tls.change(terms);
        }
    }

    /// Sets the modes of the Unix sockets for the new rules. A socket whose mode is the same by both keeps its mode,
    /// even one that an operator has set by hand.
    pub fn open_as(&self, before: &Access, access: &Access) {
        for Listener { port, source, .. } in &self.listeners {
            if let Source::Unix(_, path) = source
                && mode(*port, before) != mode(*port, access)
                && let Err(error) = set_mode(path, mode(*port, access))
            {
                let path = path.display();
                tracing::error!(%path, %error, "who may open a socket cannot be changed");
            }
        }
    }

    /// The counters of the thread of TLS clients.
    pub fn tls_counters(&self) -> Vec<(&'static str, u64)> {
        let Some(tls) = &self.tls else {
            return Vec::new();
        };
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        vec![
            ("tls_shown", value(&tls.counters.shown)),
            ("tls_refused", value(&tls.counters.refused)),
            ("tls_silent", value(&tls.counters.silent)),
            ("tls_revoked", value(&tls.counters.revoked)),
            ("tls_crl_expires", value(&tls.counters.lists_end)),
            ("tls_certificate_expires", value(&tls.counters.end)),
        ]
    }

    /// Asks the kernel, without waiting, which sockets are ready.
    pub fn look(&mut self) -> io::Result<()> {
        if let Err(error) = self.poll.poll(&mut self.events, Some(Duration::ZERO))
            && error.kind() != ErrorKind::Interrupted
        {
            return Err(error);
        }
        for event in &self.events {
            let Token(token) = event.token();
            if event.token() == WAKER {
                if let Some(tls) = &self.tls {
                    tls.take(&mut self.arrived)?;
                }
                continue;
            }
            match token.checked_sub(FIRST_LISTENER) {
                Some(place) => self.listeners[place].ready = true,
                None => self.notices.push_back(Notice {
                    key: token,
                    readable: event.is_readable() || event.is_read_closed() || event.is_error(),
                    writable: event.is_writable() || event.is_write_closed() || event.is_error(),
                    closed: event.is_read_closed() || event.is_error(),
                }),
            }
        }
        Ok(())
    }

    /// True if notices, arrivals or ready listeners are left from earlier looks; the last two count only while clients
    /// are let in.
    pub fn has_work(&self, lets_in: bool) -> bool {
        let waits = || self.listeners.iter().any(|listener| listener.ready);
        !self.notices.is_empty() || lets_in && (!self.arrived.is_empty() || waits())
    }

    /// The next notice of the last looks.
    pub fn next_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// Clients that were turned away because of their network.
    pub const fn turned_away(&self) -> u64 {
        self.turned_away
    }

    /// Clients that were turned away because their address or user has as many connections as it may.
    pub fn crowded(&self) -> u64 {
        self.seats.refused()
    }

    /// Looks for clients that wait, though the kernel has said nothing new.
    pub fn try_again(&mut self) {
        for listener in &mut self.listeners {
            listener.ready = true;
        }
    }

    /// The next client that waits to come in: the listeners take turns, so that a flood at one of them does not hold up
    /// clients at another.
    pub fn accept(&mut self) -> Accepted {
        match self.arrived.pop_front() {
            Some(News::Arrival(arrival)) => return Accepted::Comes(arrival.into()),
            Some(News::Revoked(number)) => return Accepted::Revoked(number),
            None => {}
        }
        let count = self.listeners.len();
        let places = (self.turn..self.turn + count).map(|place| place % count);
        for place in places {
            let listener = &mut self.listeners[place];
            while listener.ready {
                let clients = listener.port != Port::Admin;
                match listener.source.accept(clients.then_some(&self.seats)) {
                    Ok(waited) => {
                        let port = listener.port;
                        self.turn = place + 1;
                        return self.receive(port, waited);
                    }
                    // A client that has gone already is nobody's error.
                    Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => listener.ready = false,
                    Err(error) => {
                        // The others have their turn first, next time.
                        self.turn = place + 1;
                        let what = "a client cannot be let in";
                        self.complaints.say(what, &"the daemon", &error);
                        return Accepted::NotNow;
                    }
                }
            }
        }
        Accepted::Nobody
    }

    fn receive(&mut self, port: Port, waited: Waited) -> Accepted {
        match waited {
            Waited::Comes(stream, peer, seat) => {
                return Accepted::Comes(Comer {
                    port,
                    stream,
                    peer,
                    seat,
                    tls: None,
                });
            }
            Waited::Crowded(mut stream, peer) => {
                let reason = match peer {
                    Peer::Local { .. } => {
                        "a client is turned away: its user has as many connections as it may"
                    }
                    Peer::Remote { .. } => {
                        "a client is turned away: its address has as many connections as it may"
                    }
                };
                self.complaints.say(reason, &peer, &"");
                // The farewell is written only as far as a new socket takes it: the loop does not wait for this client.
                let _ = stream.write(&speech::crowded(port));
            }
            Waited::Stranger(peer) => {
                self.turned_away += 1;
                let reason = "a client is turned away: its network is not allowed";
                self.complaints.say(reason, &peer, &"");
            }
        }
        Accepted::Refused
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        for listener in &self.listeners {
            if let Source::Unix(_, path) = &listener.source {
                let _ = fs::remove_file(path);
            }
        }
    }
}

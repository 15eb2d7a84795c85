//! The ring's side of the TLS thread, and the channels between the two.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use mio::Waker;
use mio::net::UnixStream;

use super::Certificates;
use super::thread::Relays;
use crate::access::Peer;
use crate::config::DaemonConfig;
use crate::seats::ConnectionLimits;

/// The reason why the listeners do not open, and the address of the one that failed.
pub(crate) type NotOpen = (Option<SocketAddr>, io::Error);

/// The news of the TLS thread for the ring's thread.
#[derive(Debug)]
pub(crate) enum News {
    Arrival(Arrival),
    /// The certificate of the client with this number has been revoked.
    Revoked(u64),
}

/// A client that has shown who it is.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub stream: UnixStream,
    pub peer: Peer,
    /// Tells it from others that came by TLS.
    pub number: u64,
}

/// Counters, for people.
#[derive(Debug, Default)]
pub(crate) struct TlsCounters {
    /// Clients that have shown who they are.
    pub shown: AtomicU64,
    /// Clients whose certificate is refused, or who do not speak TLS.
    pub refused: AtomicU64,
    /// Clients that took too long to show who they are.
    pub silent: AtomicU64,
    /// Clients whose certificate is revoked, refused or disconnected.
    pub revoked: AtomicU64,
    /// The time at which the first list of revoked certificates expires, in seconds since 1970; 0 if there are none.
    pub lists_end: AtomicU64,
    /// The time at which the first certificate of the daemon's chain expires, in seconds since 1970; 0 if it is
    /// unknown.
    pub end: AtomicU64,
}

/// The ring's side of the thread.
#[derive(Debug)]
pub(crate) struct TlsDoor {
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
    waker: Waker,
    arrivals: Receiver<News>,
    pub counters: Arc<TlsCounters>,
}

/// The messages to the TLS thread while it runs.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub stop: AtomicBool,
    terms: Mutex<Option<Terms>>,
}

impl Shared {
    /// Other terms, if there are any since the last call.
    pub fn take_terms(&self) -> Option<Terms> {
        let terms = self.terms.lock();
        terms.unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The terms on which clients are let in.
#[derive(Debug)]
pub(crate) struct Terms {
    pub certificates: Certificates,
    /// The time that a handshake may take.
    pub patience: Duration,
    /// Handshakes at once.
    pub handshakes: usize,
    /// Clients at once, with those whose handshake is not done.
    pub most: usize,
}

impl Terms {
    pub const fn new(daemon: &DaemonConfig, certificates: Certificates) -> Self {
        Self {
            certificates,
            patience: Duration::from_millis(daemon.handshake_ms),
            handshakes: daemon.handshakes,
            most: daemon.clients.saturating_add(daemon.handshakes),
        }
    }
}

impl TlsDoor {
    /// Listens at these addresses, in a thread of its own that wakes `ring` when a client has come.
    pub fn open(
        listen: &[SocketAddr],
        terms: Terms,
        seats: ConnectionLimits,
        ring: Arc<Waker>,
    ) -> Result<Self, NotOpen> {
        let system = |error| (None, error);
        let (sender, arrivals) = channel();
        let (shared, counters) = (Arc::<Shared>::default(), Arc::<TlsCounters>::default());
        let out = Out {
            sender: Some(sender),
            ring,
        };
        let common = (Arc::clone(&counters), Arc::clone(&shared));
        let (relays, waker) = Relays::open(listen, (terms, seats), common, out)?;
        let thread = std::thread::Builder::new().name("rota-tls".to_owned());
        let thread = thread.spawn(move || relays.serve());
        Ok(Self {
            thread: Some(thread.map_err(system)?),
            shared,
            waker,
            arrivals,
            counters,
        })
    }

    /// Sets the terms for clients that come from now on.
    pub fn change(&self, terms: Terms) {
        let slot = self.shared.terms.lock();
        *slot.unwrap_or_else(PoisonError::into_inner) = Some(terms);
        // A thread that has ended lets no client in.
        let _ = self.waker.wake();
    }

    /// Takes the news since the last call.
    ///
    /// # Errors
    /// The thread has ended.
    pub fn take(&self, into: &mut VecDeque<News>) -> io::Result<()> {
        loop {
            match self.arrivals.try_recv() {
                Ok(news) => into.push_back(news),
                Err(TryRecvError::Empty) => return Ok(()),
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }
}

impl Drop for TlsDoor {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        // A thread that is gone needs no waking.
        let _ = self.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The way to the ring's thread. It is told also when this one ends.
#[derive(Debug)]
pub(super) struct Out {
    sender: Option<Sender<News>>,
    ring: Arc<Waker>,
}

impl Out {
    pub fn send(&self, news: News) {
        if let Some(sender) = &self.sender {
            // The ring's thread stops, so no client is let in.
            let _ = sender.send(news);
        }
        let _ = self.ring.wake();
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        self.sender = None;
        let _ = self.ring.wake();
    }
}

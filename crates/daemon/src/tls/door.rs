//! The ring's side of the thread, and the way from there to here.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use mio::Waker;
use mio::net::UnixStream;

use super::Certificates;
use super::thread::Relays;
use crate::access::Peer;
use crate::seats::Seats;

/// Why the listeners do not open, and at which address.
pub(crate) type NotOpen = (Option<SocketAddr>, io::Error);

/// A client that has shown who it is.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub stream: UnixStream,
    pub peer: Peer,
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
}

/// The ring's side of the thread.
#[derive(Debug)]
pub(crate) struct TlsDoor {
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    waker: Waker,
    arrivals: Receiver<Arrival>,
    pub counters: Arc<TlsCounters>,
}

/// What the thread is told when it starts.
#[derive(Debug)]
pub(crate) struct Terms {
    pub certificates: Certificates,
    pub seats: Seats,
    /// How long a handshake may take.
    pub patience: Duration,
    /// Handshakes at once.
    pub handshakes: usize,
    /// Clients at once, with those whose handshake is not done.
    pub most: usize,
}

impl TlsDoor {
    /// Listens at these addresses, in a thread of its own that wakes `ring` when somebody has come.
    pub fn open(listen: &[SocketAddr], terms: Terms, ring: Arc<Waker>) -> Result<Self, NotOpen> {
        let system = |error| (None, error);
        let (sender, arrivals) = channel();
        let (stop, counters) = (Arc::<AtomicBool>::default(), Arc::<TlsCounters>::default());
        let out = Out {
            sender: Some(sender),
            ring,
        };
        let shared = (Arc::clone(&counters), Arc::clone(&stop));
        let (relays, waker) = Relays::open(listen, terms, shared, out)?;
        let thread = std::thread::Builder::new().name("rota-tls".to_owned());
        let thread = thread.spawn(move || relays.serve());
        Ok(Self {
            thread: Some(thread.map_err(system)?),
            stop,
            waker,
            arrivals,
            counters,
        })
    }

    /// Who has come since the last call.
    ///
    /// # Errors
    /// The thread has ended.
    pub fn take(&self, into: &mut VecDeque<Arrival>) -> io::Result<()> {
        loop {
            match self.arrivals.try_recv() {
                Ok(arrival) => into.push_back(arrival),
                Err(TryRecvError::Empty) => return Ok(()),
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }
}

impl Drop for TlsDoor {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
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
    sender: Option<Sender<Arrival>>,
    ring: Arc<Waker>,
}

impl Out {
    pub fn send(&self, arrival: Arrival) {
        if let Some(sender) = &self.sender {
            // It stops: then nobody is let in.
            let _ = sender.send(arrival);
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

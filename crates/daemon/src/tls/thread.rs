//! The TLS thread, with its listeners and all TLS clients.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, UnixStream};
use mio::{Events, Interest, Poll, Token, Waker};
use slab::Slab;

use super::door::{Arrival, News, NotOpen, Out, Shared, Terms, TlsCounters};
use super::judged::{is_revoked, names_of, reason_of};
use super::link::{Link, Ready, Standing};
use crate::access::Peer;
use crate::descriptors::has_one_for_a_client;
use crate::door::listen_at;
use crate::seats::ConnectionLimits;
use rota_net::Complaints;

const EVENTS: usize = 1024;

/// Clients have two tokens each below, listeners have theirs from here on.
const FIRST_LISTENER: usize = usize::MAX / 2;

const WAKER: Token = Token(usize::MAX);

/// The bytes that are read of a client's pair at once.
const SCRATCH_BYTES: usize = 64 << 10;

/// The time between two sweeps for clients that take too long.
const SWEEP: Duration = Duration::from_millis(250);

/// The time that clients have, when the daemon stops, to take their last frames.
const FAREWELL: Duration = Duration::from_secs(1);

/// The state of the thread.
#[derive(Debug)]
pub(super) struct Relays {
    pub(super) poll: Poll,
    pub(super) listeners: Vec<TcpListener>,
    pub(super) links: Slab<Link>,
    /// Links that have their turn next.
    work: VecDeque<usize>,
    /// Links whose clients have not shown who they are, oldest first.
    pub(super) handshakes: VecDeque<(usize, u64)>,
    pub(super) newest: u64,
    /// A handshake may take too long, or a client could not be let in.
    pub(super) has_deadlines: bool,
    /// A client waits at a listener that could not be let in.
    pub(super) waiting: bool,
    /// Listeners where more may wait than were let in at once.
    pub(super) crowded: Vec<usize>,
    scratch: Vec<u8>,
    /// Links whose clients' certificates may have been revoked.
    pub(super) rechecks: VecDeque<(usize, u64)>,
    pub(super) complaints: Complaints,
    pub(super) counters: Arc<TlsCounters>,
    pub(super) shared: Arc<Shared>,
    pub(super) out: Out,
    pub(super) terms: Terms,
    /// The number of times that certificates were adopted.
    pub(super) newest_terms: u64,
    pub(super) seats: ConnectionLimits,
}

impl Relays {
    /// Listens at these addresses. The waker is for the caller that has set `stop`.
    pub fn open(
        listen: &[SocketAddr],
        (terms, seats): (Terms, ConnectionLimits),
        (counters, shared): (Arc<TlsCounters>, Arc<Shared>),
        out: Out,
    ) -> Result<(Self, Waker), NotOpen> {
        let system = |error| (None, error);
        let poll = Poll::new().map_err(system)?;
        let waker = Waker::new(poll.registry(), WAKER).map_err(system)?;
        let mut listeners = Vec::new();
        for (at, &address) in listen.iter().enumerate() {
            let here = |error| (Some(address), error);
            let mut listener = listen_at(address, listen).map_err(here)?;
            let token = Token(FIRST_LISTENER + at);
            let registry = poll.registry();
            let registered = registry.register(&mut listener, token, Interest::READABLE);
            registered.map_err(here)?;
            listeners.push(listener);
        }
        let mut relays = Self {
            poll,
            listeners,
            links: Slab::new(),
            work: VecDeque::new(),
            handshakes: VecDeque::new(),
            newest: 0,
            has_deadlines: false,
            waiting: false,
            crowded: Vec::new(),
            scratch: vec![0; SCRATCH_BYTES],
            rechecks: VecDeque::new(),
            complaints: Complaints::default(),
            counters,
            shared,
            out,
            terms,
            newest_terms: 0,
            seats,
        };
        relays.adopt();
        Ok((relays, waker))
    }

    /// Runs until it is told to stop. A mistake here costs the clients of this thread their connections, and
    /// nobody else anything.
    pub fn serve(mut self) {
        while catch_unwind(AssertUnwindSafe(|| self.run_to_end())).is_err() {
            tracing::error!("clients that came by TLS are disconnected: a mistake in the daemon");
            self.start_again();
        }
    }

    fn run_to_end(&mut self) {
        if let Err(error) = self.run() {
            tracing::error!(%error, "clients cannot be served by TLS any more");
        }
    }

    /// Without the clients there were.
    fn start_again(&mut self) {
        self.links = Slab::new();
        self.work.clear();
        self.handshakes.clear();
        // The kernel's readiness of listeners may be lost.
        self.waiting = true;
        self.has_deadlines = true;
    }

    fn run(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS);
        let mut over_at = None;
        let mut sweep_at = Instant::now() + SWEEP;
        loop {
            let rests = self.work.is_empty() && self.rechecks.is_empty();
            let timeout = if rests && self.crowded.is_empty() {
                (self.has_deadlines || over_at.is_some()).then_some(SWEEP)
            } else {
                Some(Duration::ZERO)
            };
            match self.poll.poll(&mut events, timeout) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            self.take_terms();
            for event in &events {
                self.notice(event);
            }
            self.recheck_some();
            self.accept_more();
            for _ in 0..self.work.len() {
                if let Some(key) = self.work.pop_front() {
                    self.turn(key);
                }
            }
            let now = Instant::now();
            if now >= sweep_at {
                sweep_at = now + SWEEP;
                self.sweep(now);
            }
            if over_at.is_none() && self.shared.stop.load(Ordering::Relaxed) {
                over_at = Some(now + FAREWELL);
                self.listeners.clear();
            }
            let silent = |link: &Link| link.pair.is_none();
            if let Some(over_at) = over_at
                && (now >= over_at || self.links.iter().all(|(_, link)| silent(link)))
            {
                return Ok(());
            }
        }
    }

    fn notice(&mut self, event: &mio::event::Event) {
        let Token(token) = event.token();
        if event.token() == WAKER {
            return;
        }
        if let Some(place) = token.checked_sub(FIRST_LISTENER) {
            self.accept(place);
            return;
        }
        let Some(link) = self.links.get_mut(token / 2) else {
            return;
        };
        let ready = if token % 2 == 0 {
            &mut link.socket_ready
        } else {
            link.abandoned |= event.is_write_closed();
            &mut link.pair_ready
        };
        ready.read |= event.is_readable() || event.is_read_closed() || event.is_error();
        ready.write |= event.is_writable() || event.is_write_closed() || event.is_error();
        self.schedule(token / 2);
    }

    pub(super) fn schedule(&mut self, key: usize) {
        if let Some(link) = self.links.get_mut(key)
            && !std::mem::replace(&mut link.scheduled, true)
        {
            self.work.push_back(key);
        }
    }

    pub(super) fn too_slow(&mut self, key: usize) {
        if let Some(link) = self.links.try_remove(key)
            && link.pair.is_none()
            && !link.refused
        {
            self.counters.silent.fetch_add(1, Ordering::Relaxed);
            let reason = "a TLS client is dropped: it took too long to show who it is";
            self.complaints.say(reason, &link.address, &"");
        }
    }

    /// Ends the links whose deadline has passed.
    fn sweep(&mut self, now: Instant) {
        let late = |(key, link): (usize, &Link)| {
            link.deadline
                .is_some_and(|deadline| deadline <= now)
                .then_some(key)
        };
        let late: Vec<usize> = self.links.iter().filter_map(late).collect();
        for key in late {
            self.too_slow(key);
        }
        self.has_deadlines = self.links.iter().any(|(_, link)| link.deadline.is_some());
        if std::mem::take(&mut self.waiting) {
            let shown = |(key, link): (usize, &Link)| link.is_shown().then_some(key);
            let shown: Vec<usize> = self.links.iter().filter_map(shown).collect();
            // Before newcomers take the descriptors that there are again.
            shown.into_iter().for_each(|key| self.turn(key));
            for place in 0..self.listeners.len() {
                self.accept(place);
            }
        }
    }

    fn turn(&mut self, key: usize) {
        let Some(link) = self.links.get_mut(key) else {
            return;
        };
        link.scheduled = false;
        match link.turn(&mut self.scratch) {
            Standing::Waits => {
                if link.is_ending() && link.deadline.is_none() {
                    link.deadline = Some(Instant::now() + self.terms.patience);
                    self.has_deadlines = true;
                }
            }
            Standing::More => self.schedule(key),
            Standing::Shown => self.hand_over(key),
            Standing::Over => drop(self.links.try_remove(key)),
            Standing::Refused(error) => {
                self.counters.refused.fetch_add(1, Ordering::Relaxed);
                let revoked = u64::from(is_revoked(&error));
                self.counters.revoked.fetch_add(revoked, Ordering::Relaxed);
                let over_at = Instant::now() + self.terms.patience;
                link.deadline.get_or_insert(over_at);
                self.has_deadlines = true;
                let address = link.address;
                self.complaints.say(reason_of(&error), &address, &error);
                self.schedule(key);
            }
        }
    }

    /// The ring's thread gets the client.
    fn hand_over(&mut self, key: usize) {
        // The handshake may have begun with other certificates.
        if self.links[key].terms < self.newest_terms && self.is_revoked(key) {
            return drop(self.links.try_remove(key));
        }
        let link = &mut self.links[key];
        let names = names_of(link.tls.peer_certificates());
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registry = self.poll.registry();
        let room = has_one_for_a_client(&link.socket);
        let pair = room.and_then(|()| UnixStream::pair());
        let pair = pair.and_then(|(mut mine, theirs)| {
            registry.register(&mut mine, Token(2 * key + 1), interest)?;
            Ok((mine, theirs))
        });
        let (mine, stream) = match pair {
            Ok(pair) => pair,
            Err(error) => {
                // Most often there are no descriptors left: it is tried again soon.
                self.complaints
                    .say("a TLS client cannot be let in", &error, &"");
                // The client is not at fault, so its time begins anew.
                link.deadline = Some(Instant::now() + self.terms.patience);
                self.waiting = true;
                return;
            }
        };
        link.pair = Some(mine);
        link.pair_ready = Ready {
            read: true,
            write: true,
        };
        link.deadline = None;
        let address = link.address;
        let peer = Peer::Remote { address, names };
        self.counters.shown.fetch_add(1, Ordering::Relaxed);
        let number = link.number;
        let arrival = Arrival {
            stream,
            peer,
            number,
        };
        self.out.send(News::Arrival(arrival));
        self.schedule(key);
    }
}

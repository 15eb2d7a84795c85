//! The TLS thread, with its listeners and all TLS clients.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::net::UnixStream;
use mio::{Events, Interest, Poll, Token, Waker};

use super::door::{Arrival, News, NotOpen, Out, Shared, Terms, TlsCounters};
use super::judged::{is_revoked, names_of, reason_of};
use super::link::Standing;
use super::links::Links;
use super::listening::Listening;
use super::terms::InForce;
use crate::access::Peer;
use crate::descriptors::has_one_for_a_client;
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
    pub(super) listening: Listening,
    pub(super) links: Links,
    pub(super) terms: InForce,
    scratch: Vec<u8>,
    pub(super) complaints: Complaints,
    pub(super) counters: Arc<TlsCounters>,
    pub(super) shared: Arc<Shared>,
    pub(super) out: Out,
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
        let mut relays = Self {
            listening: Listening::open(listen, poll.registry(), FIRST_LISTENER)?,
            poll,
            links: Links::default(),
            terms: InForce::new(terms),
            scratch: vec![0; SCRATCH_BYTES],
            complaints: Complaints::default(),
            counters,
            shared,
            out,
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
        self.links.clear();
        self.listening.try_later();
    }

    fn run(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS);
        let mut over_at = None;
        let mut sweep_at = Instant::now() + SWEEP;
        loop {
            let works = self.links.turns() > 0 || self.terms.has_rechecks();
            let timeout = if works || self.listening.is_crowded() {
                Some(Duration::ZERO)
            } else {
                let waits = self.links.has_deadlines() || self.listening.is_waiting();
                (waits || over_at.is_some()).then_some(SWEEP)
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
            for _ in 0..self.links.turns() {
                if let Some(key) = self.links.next_turn() {
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
                self.listening.close();
            }
            if cfg!(debug_assertions) {
                self.links.check();
            }
            if let Some(over_at) = over_at
                && (now >= over_at || self.links.all_shown().next().is_none())
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
        match token % 2 {
            0 => link.notice_client(event),
            _ => link.notice_ring(event),
        }
        self.links.schedule(token / 2);
    }

    pub(super) fn too_slow(&mut self, key: usize) {
        if let Some(link) = self.links.remove(key)
            && link.is_awaited()
        {
            self.counters.silent.fetch_add(1, Ordering::Relaxed);
            let reason = "a TLS client is dropped: it took too long to show who it is";
            self.complaints.say(reason, &link.caller().address, &"");
        }
    }

    /// Ends the links whose deadline has passed.
    fn sweep(&mut self, now: Instant) {
        for key in self.links.late(now) {
            self.too_slow(key);
        }
        if self.listening.take_waiting() {
            // Before newcomers take the descriptors that there are again.
            for key in self.links.all_waiting() {
                self.turn(key);
            }
            for place in 0..self.listening.len() {
                self.accept(place);
            }
        }
    }

    fn turn(&mut self, key: usize) {
        let Some(link) = self.links.get_mut(key) else {
            return;
        };
        match link.turn(&mut self.scratch) {
            Standing::Waits => {
                if link.is_ending() {
                    let over_at = Instant::now() + self.terms.patience();
                    self.links.end_by(key, over_at);
                }
            }
            Standing::More => self.links.schedule(key),
            Standing::Shown => self.hand_over(key),
            Standing::Over => drop(self.links.remove(key)),
            Standing::Refused(error) => {
                self.counters.refused.fetch_add(1, Ordering::Relaxed);
                let revoked = u64::from(is_revoked(&error));
                self.counters.revoked.fetch_add(revoked, Ordering::Relaxed);
                let address = link.caller().address;
                let over_at = Instant::now() + self.terms.patience();
                self.links.end_by(key, over_at);
                self.complaints.say(reason_of(&error), &address, &error);
                self.links.schedule(key);
            }
        }
    }

    /// The ring's thread gets the client.
    fn hand_over(&mut self, key: usize) {
        let Some(link) = self.links.get_mut(key) else {
            return;
        };
        // The handshake may have begun with other certificates.
        if self.terms.are_newer_than(link.caller()) && self.terms.are_revoked(link) {
            self.note_revoked(key);
            return drop(self.links.remove(key));
        }
        let names = names_of(link.certificates());
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registry = self.poll.registry();
        let room = has_one_for_a_client(&link.descriptor());
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
                let over_at = Instant::now() + self.terms.patience();
                self.links.begin_anew(key, over_at);
                self.listening.try_later();
                return;
            }
        };
        link.hand_over(mine);
        let (address, number) = (link.caller().address, link.caller().number);
        let peer = Peer::Remote { address, names };
        self.counters.shown.fetch_add(1, Ordering::Relaxed);
        let arrival = Arrival {
            stream,
            peer,
            number,
        };
        self.out.send(News::Arrival(arrival));
        self.links.schedule(key);
    }
}

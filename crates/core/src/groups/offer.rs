//! What is handed to the engine, and the events that are taken.

use super::event::ClientEvent;
use super::machine::{Groups, Phase};
use crate::contract::{RingId, Service};
use crate::mutants::{self, Mutant};

/// What the engine is offered next.
enum Offer {
    /// What this daemon's set knows of groups.
    Piece,
    /// What it holds, ahead of what its clients ask for: their messages may be what is too much.
    Holding(RingId),
    /// What clients ask for, if there is anything.
    Request(RingId),
}

impl Groups {
    /// Requests of this daemon's clients that have not come back from the engine.
    pub fn waiting_requests(&self) -> usize {
        self.clients.waiting()
    }

    /// From now on so many clients may be connected; who is there stays.
    pub const fn limit_clients(&mut self, clients: usize) {
        self.clients.limits.clients = clients;
    }

    /// Nothing while this daemon is excluded: it would come too late for the view that it is for.
    fn offer(&self) -> Option<Offer> {
        if self.exclusion.out {
            return None;
        }
        if !self.telling.is_empty() {
            return Some(Offer::Piece);
        }
        let ring = self.ring.filter(|_| self.phase == Phase::Operational)?;
        if self.holds.is_due() {
            return Some(Offer::Holding(ring));
        }
        Some(Offer::Request(ring))
    }

    /// Whether there is something to submit to the engine.
    pub fn has_to_submit(&self) -> bool {
        match self.offer() {
            Some(Offer::Piece | Offer::Holding(_)) => true,
            Some(Offer::Request(_)) => self.clients.has_unsent(),
            None => false,
        }
    }

    /// What to submit to the engine next; ask again after [`Self::submitted`]. What the engine has no
    /// room for is asked for later.
    pub fn to_submit(&mut self) -> Option<(Service, &[u8])> {
        match self.offer()? {
            Offer::Piece => {
                let last = self.telling.len() == 1;
                let service = if last {
                    Service::Agreed
                } else {
                    Service::Reliable
                };
                let piece = self.telling.front()?;
                Some((service, piece))
            }
            Offer::Holding(ring) => Some((Service::Agreed, self.holds.unsent(ring))),
            Offer::Request(ring) => self.clients.unsent(ring),
        }
    }

    /// The engine has taken it, and counts it so ([`MessageId::counter`](crate::contract::MessageId)).
    pub fn submitted(&mut self, counter: u64) {
        match self.offer() {
            Some(Offer::Piece) => drop(self.telling.pop_front()),
            Some(Offer::Holding(_)) => self.holds.sent(true),
            Some(Offer::Request(_)) => self.clients.sent(counter),
            None => {}
        }
    }

    /// The engine will never take it.
    pub fn refused(&mut self) {
        self.counters.refused += 1;
        match self.offer() {
            Some(Offer::Piece) => drop(self.telling.pop_front()),
            Some(Offer::Holding(_)) => self.holds.sent(false),
            Some(Offer::Request(_)) => self.clients.refused(),
            None => {}
        }
    }

    /// The next event for clients of this daemon.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        if mutants::on(Mutant::G09) {
            return self.events.pop_back();
        }
        self.events.pop_front()
    }

    /// Whether [`Self::poll_event`] has one.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }
}

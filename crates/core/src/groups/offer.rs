//! The messages that the engine is offered, and the events that are taken.

use super::event::ClientEvent;
use super::machine::{Groups, Phase};
use crate::contract::{RingId, Service};
use crate::mutants::{self, Mutant};

/// The next message for the engine.
enum Offer {
    /// A piece of the knowledge of this daemon's set of groups.
    Piece,
    /// The holds of this daemon, ahead of the requests of its clients: their messages may be the reason.
    Holding(RingId),
    /// A request of a client, if there is any.
    Request(RingId),
}

impl Groups {
    /// Requests of this daemon's clients that have not come back from the engine.
    pub fn waiting_requests(&self) -> usize {
        self.clients.waiting()
    }

    /// From now on `clients` clients may be connected; clients beyond that number stay.
    pub const fn limit_clients(&mut self, clients: usize) {
        self.clients.limits.clients = clients;
    }

    /// Offers nothing while this daemon is excluded: a message would come too late for the view that it is for.
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

    /// The message to submit to the engine next; ask again after [`Self::submitted`]. A message for which the engine
    /// has no room is returned again later.
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

    /// The engine has taken the message, with this counter ([`MessageId::counter`](crate::contract::MessageId)).
    pub fn submitted(&mut self, counter: u64) {
        match self.offer() {
            Some(Offer::Piece) => drop(self.telling.pop_front()),
            Some(Offer::Holding(_)) => self.holds.sent(true),
            Some(Offer::Request(_)) => self.clients.sent(counter),
            None => {}
        }
    }

    /// The engine will never take the message.
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

    /// Whether [`Self::poll_event`] has an event.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }
}

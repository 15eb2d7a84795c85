//! The requests of clients, the messages that the engine is offered for them, and the events that are taken.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;

use super::event::{ClientEvent, Connection, Member, Received};
use super::hold::{Hold, HoldFor};
use super::limits::{Owner, RequestError};
use super::machine::{Groups, Phase};
use super::message::{MOST_DESTINATIONS, Request};
use super::name::{ClientName, Destination, GroupName};
use crate::contract::{RingId, Service, Time};
use crate::mutants::{self, Mutant};

impl Groups {
    /// A client connects under a name that no other client of this daemon has now.
    pub fn connect(&mut self, name: ClientName) -> Result<Connection, RequestError> {
        self.connect_of(None, name)
    }

    /// The same for a client of an owner, whose clients share limits.
    pub fn connect_of(
        &mut self,
        owner: Option<Owner>,
        name: ClientName,
    ) -> Result<Connection, RequestError> {
        self.routes.clear();
        let connection = self.clients.connect(owner, name)?;
        self.greet(connection);
        Ok(connection)
    }

    /// The client as others see it.
    pub fn member(&self, connection: Connection) -> Result<Member, RequestError> {
        self.clients.member(connection)
    }

    /// The client wants to be in a group; the view that it then gets is the answer.
    pub fn join(&mut self, connection: Connection, group: GroupName) -> Result<(), RequestError> {
        self.clients.join(connection, group)
    }

    /// The client wants to leave a group; the self-leave that it then gets is the answer.
    pub fn leave(&mut self, connection: Connection, group: GroupName) -> Result<(), RequestError> {
        self.clients.leave(connection, group)
    }

    /// Whether the client is in a group, or has asked to be.
    pub fn wants(&self, connection: Connection, group: GroupName) -> bool {
        self.clients.wants(connection, group)
    }

    /// The client has gone, or is made to go. Events that have not been polled yet may still name it, and
    /// are not for it any more.
    pub fn disconnect(&mut self, connection: Connection) {
        self.routes.clear();
        self.clients.disconnect(connection);
    }

    /// The client has to miss events, and counts as having disconnected and joined its groups again; its requests
    /// belong to the new connection from here on. It misses the events for the earlier connection: they end where its
    /// disconnect is ordered, and until then [`Self::member`] still knows that connection. `None` if there is no such
    /// connection, or if the disconnect of the last time has not been ordered yet.
    pub fn restart(&mut self, connection: Connection) -> Option<Connection> {
        self.routes.clear();
        let next = self.clients.restart(connection)?;
        self.greet(next);
        Some(next)
    }

    /// The groups that the client has asked to be in, ascending.
    pub fn wanted(&self, connection: Connection) -> Vec<GroupName> {
        self.clients.wanted(connection)
    }

    /// Whether the client has asked to be in this group.
    pub fn is_wanted(&self, connection: Connection, group: GroupName) -> bool {
        self.clients.wants(connection, group)
    }

    /// Whether a request of the client with a payload of `payload` bytes would be taken, and not refused as
    /// [`RequestError::Full`]. A large message for which there is no room now comes before those of others that were
    /// asked for later.
    pub fn has_room(
        &mut self,
        connection: Connection,
        payload: usize,
    ) -> Result<bool, RequestError> {
        self.clients.has_room(connection, payload)
    }

    /// The client sends a message.
    pub fn send(&mut self, connection: Connection, send: Send) -> Result<(), RequestError> {
        let sender = self.clients.member(connection)?;
        if !(1..=MOST_DESTINATIONS).contains(&send.to.len()) {
            return Err(RequestError::Destinations);
        }
        let limit = self.clients.limits.payload_bytes;
        if send.payload.len() > limit {
            return Err(RequestError::TooLarge { limit });
        }
        let ordered = match send.service {
            Service::Safe => Service::Safe,
            _ => Service::Agreed,
        };
        let received = Received {
            sender,
            to: send.to.into(),
            service: send.service,
            self_discard: send.self_discard,
            kind: send.kind,
            big_endian: send.big_endian,
            number: send.number,
            payload: send.payload,
        };
        let request = Request::Data(received, send.self_discard);
        self.clients.ask(sender, ordered, &request)
    }

    /// Messages to these destinations are to wait at all daemons, for clients of this one that read too slowly, and no
    /// sender longer than `most_ms` milliseconds. A call takes the place of the one before; an empty map holds nothing.
    /// Of more than [`MOST_HELD`](super::MOST_HELD) destinations the last are left out, and times are at most
    /// [`MOST_HOLD_MS`](super::MOST_HOLD_MS).
    pub fn hold(&mut self, to: HoldFor, most_ms: u32) {
        self.holds.want(to, most_ms);
    }

    /// The reason for which a message to these destinations is to wait, as far as its place in the order goes; the
    /// caller keeps the message and asks again later. Time counts from the first question about a destination on: it
    /// only bounds how long a sender waits. No client waits for itself.
    pub fn waits(&mut self, connection: Connection, to: &[Destination], now: Time) -> Option<Hold> {
        let name = self.clients.member(connection).ok()?.name;
        self.holds.waits((self.me, name), to, now)
    }

    /// All holds, by the daemons that want them.
    pub fn holds(&self) -> impl Iterator<Item = Hold> {
        self.holds.all()
    }

    /// Whether the held destinations have changed since the last call: waiting senders may ask again.
    pub const fn holds_changed(&mut self) -> bool {
        self.holds.take_changed()
    }

    /// All groups that this daemon knows of, and the number of members of each.
    pub fn list_groups(&self) -> BTreeMap<GroupName, usize> {
        self.knowledge.list_groups()
    }

    /// The number of groups that [`Self::list_groups`] lists.
    pub fn count_groups(&self) -> usize {
        self.knowledge.count_groups()
    }

    /// The members of a group, as far as this daemon knows, ascending.
    pub fn list_members(&self, group: &GroupName) -> Vec<Member> {
        self.knowledge.list_members(group)
    }

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
        if self.exclusion.is_out() {
            return None;
        }
        if self.gather.next_piece().is_some() {
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
                let (piece, last) = self.gather.next_piece()?;
                let service = if last {
                    Service::Agreed
                } else {
                    Service::Reliable
                };
                Some((service, piece))
            }
            Offer::Holding(ring) => Some((Service::Agreed, self.holds.unsent(ring))),
            Offer::Request(ring) => self.clients.unsent(ring),
        }
    }

    /// The engine has taken the message, with this counter ([`MessageId::counter`](crate::contract::MessageId)).
    pub fn submitted(&mut self, counter: u64) {
        match self.offer() {
            Some(Offer::Piece) => self.gather.on_piece_done(),
            Some(Offer::Holding(_)) => self.holds.sent(true),
            Some(Offer::Request(_)) => self.clients.sent(counter),
            None => {}
        }
    }

    /// The engine will never take the message.
    pub fn refused(&mut self) {
        self.counters.refused += 1;
        match self.offer() {
            Some(Offer::Piece) => self.gather.on_piece_done(),
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

/// The next message for the engine.
enum Offer {
    /// A piece of the knowledge of this daemon's set of groups.
    Piece,
    /// The holds of this daemon, ahead of the requests of its clients: their messages may be the reason.
    Holding(RingId),
    /// A request of a client, if there is any.
    Request(RingId),
}

/// A message that a client sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Send {
    /// The guarantee it asks for.
    pub service: Service,
    /// The sender does not want the message back.
    pub self_discard: bool,
    /// The application's number for this kind of message.
    pub kind: u16,
    /// The sender writes numbers with the most significant byte first; receivers are told.
    pub big_endian: bool,
    /// Its number among the messages of this daemon's clients, if somebody keeps count, as a trace does: then receivers
    /// are told.
    pub number: Option<u64>,
    /// The destinations.
    pub to: Vec<Destination>,
    /// The application's bytes.
    pub payload: Bytes,
}

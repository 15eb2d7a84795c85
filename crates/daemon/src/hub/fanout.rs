//! The events of groups on their way to clients: encoded once for all receivers of a protocol, and then in the queues of
//! these, until their sockets are offered what waits.

use rota_core::groups::{Connection, Event};

use crate::keys::KeyQueue;
use crate::names::Names;
use crate::session::{Session, Told};
use crate::speech::Encoded;

/// Bytes for clients that are offered to their sockets before the loop rests.
const MUCH_BYTES: usize = 64 << 10;

/// With this many bytes that were not offered to clients, no client is told anything more, and this many are offered at
/// once: about a millisecond's work, for which the ring waits each time that it goes round.
pub(super) const MOST_BYTES: usize = 1 << 20;

/// The bytes that were told to clients and not offered to their sockets.
#[derive(Debug, Default)]
pub(super) struct Fanout {
    /// The event that clients are told, in their protocols.
    encoded: Encoded,
    /// Sessions with bytes that were not offered to their sockets.
    unoffered: KeyQueue,
    /// The bytes of the ordered stream that these sessions have for their sockets.
    bytes: usize,
    /// Some of them wait since before the last turn of the clients.
    is_late: bool,
}

impl Fanout {
    /// Another event is told.
    pub fn begin(&mut self) {
        self.encoded.clear();
    }

    /// Tells a session the event, for this connection of its client.
    pub fn tell(
        &mut self,
        (key, session): (usize, &mut Session),
        to: Connection,
        event: &Event,
        names: &mut Names,
    ) -> Option<Told> {
        let told = session.tell(to, event, &mut self.encoded, names);
        self.bytes += told.map_or(0, |told| told.bytes);
        self.offer(key, session);
        told
    }

    /// The bytes of a session, if any wait, are offered to its socket soon.
    pub fn offer(&mut self, key: usize, session: &Session) {
        if session.speech().backlog() > 0 {
            self.unoffered.push(key);
        }
    }

    /// What was told to this session counts no more: its socket is offered it now, or the session is over.
    pub const fn withdraw(&mut self, session: &mut Session) {
        self.bytes -= session.take_fresh();
    }

    /// The number of sessions whose bytes were not offered.
    pub fn len(&self) -> usize {
        self.unoffered.len()
    }

    /// The session whose bytes have waited longest.
    pub fn next(&mut self) -> Option<usize> {
        self.unoffered.pop()
    }

    /// Whether there is something to offer.
    pub fn has_work(&self) -> bool {
        !self.unoffered.is_empty()
    }

    /// What waits from here on, waits longer than a turn.
    pub fn age(&mut self) {
        self.is_late = self.has_work();
    }

    /// Something has waited longer than a turn.
    pub const fn is_late(&self) -> bool {
        self.is_late
    }

    /// Much waits, or something has waited longer than a turn.
    pub const fn is_due(&self) -> bool {
        self.is_late || self.bytes >= MUCH_BYTES
    }

    /// Whether clients may be told more: the waiting bytes have to be offered before. A client that reads must not be
    /// taken for one that does not, and the ring must not wait for long.
    pub const fn has_room(&self) -> bool {
        self.bytes < MOST_BYTES
    }

    #[cfg(test)]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// What holds between inputs: `fresh` are the bytes that sessions were told and not offered.
    pub fn check(&self, fresh: usize) {
        self.unoffered.check();
        debug_assert_eq!(self.bytes, fresh);
    }
}

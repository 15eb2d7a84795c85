//! The room that each client has for requests on their way.

use super::{Clients, MOST_GONE, REQUEST_BYTES};
use crate::groups::event::{Connection, Member};
use crate::groups::limits::RequestError;

impl Clients {
    /// Whether this client's requests leave room for one with a payload of `payload` bytes. A large message that finds
    /// no room has the next room there is, if its client asks again.
    pub fn has_room(
        &mut self,
        connection: Connection,
        payload: usize,
    ) -> Result<bool, RequestError> {
        let client = self.connected.get(&connection);
        let client = client.ok_or(RequestError::NotConnected)?;
        let backlog = client.backlog;
        if !self.is_large(payload) {
            return Ok(
                backlog == 0 || backlog + payload + REQUEST_BYTES <= self.limits.backlog_bytes
            );
        }
        // Its parts would overtake waiting requests of an earlier client of that name.
        if backlog > 0 || client.follows.is_some() || self.gone.has(client.name) {
            return Ok(false);
        }
        let next = *self.next_large.get_or_insert(connection);
        let room = self.large.has_room(payload, self.limits.payload_bytes);
        if next != connection || !room {
            return Ok(false);
        }
        self.next_large = None;
        Ok(true)
    }

    /// Whether the requests of gone clients take too much: a client that comes, asks and goes, again and again, must
    /// not fill all memory.
    pub(super) fn is_crowded(&self) -> bool {
        // Large messages have a bound of their own.
        let gone = self.gone.bytes().saturating_sub(self.large.bytes());
        let most = self.limits.backlog_bytes.saturating_mul(MOST_GONE);
        self.gone.len() >= self.limits.clients || gone > most
    }

    /// Whether a message is sent in parts. Its client has nothing else on its way.
    pub(super) const fn is_large(&self, payload: usize) -> bool {
        payload + REQUEST_BYTES > self.limits.backlog_bytes
    }

    pub(super) fn owe(&mut self, member: &Member, bytes: usize) {
        let bytes = bytes + REQUEST_BYTES;
        match self.connected.get_mut(&member.connection) {
            Some(client) => {
                self.busy += usize::from(client.backlog == 0);
                client.backlog += bytes;
            }
            None => self.gone.owes(member.connection, member.name, bytes),
        }
    }

    pub(super) fn repay(&mut self, connection: Connection, bytes: usize) {
        let bytes = bytes + REQUEST_BYTES;
        match self.connected.get_mut(&connection) {
            Some(client) => {
                client.backlog -= bytes;
                self.busy -= usize::from(client.backlog == 0);
            }
            None => self.gone.repays(connection, bytes),
        }
    }
}

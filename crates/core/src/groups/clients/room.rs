//! How much of a client may be on its way.

use super::{Clients, REQUEST_BYTES};
use crate::groups::event::Connection;
use crate::groups::limits::RequestError;

impl Clients {
    /// Whether this client's requests leave room for one with so large a payload. A large message for which
    /// there is none has the next room there is, if its client asks again.
    pub fn has_room(
        &mut self,
        connection: Connection,
        payload: usize,
    ) -> Result<bool, RequestError> {
        let client = self.connected.get(&connection);
        let backlog = client.ok_or(RequestError::NotConnected)?.backlog;
        if self.is_large(payload) {
            if backlog > 0 {
                return Ok(false);
            }
            let next = *self.next_large.get_or_insert(connection);
            let room = self.large.has_room(payload, self.limits.payload_bytes);
            if next != connection || !room {
                return Ok(false);
            }
            self.next_large = None;
            return Ok(true);
        }
        Ok(backlog == 0 || backlog + payload + REQUEST_BYTES <= self.limits.backlog_bytes)
    }

    /// Whether a message is sent in parts. Its client has nothing else on its way.
    pub(super) const fn is_large(&self, payload: usize) -> bool {
        payload + REQUEST_BYTES > self.limits.backlog_bytes
    }

    pub(super) fn owe(&mut self, connection: Connection, bytes: usize) {
        if let Some(client) = self.connected.get_mut(&connection) {
            self.busy += usize::from(client.backlog == 0);
            client.backlog += bytes + REQUEST_BYTES;
        }
    }

    pub(super) fn repay(&mut self, connection: Connection, bytes: usize) {
        if let Some(client) = self.connected.get_mut(&connection) {
            client.backlog -= bytes + REQUEST_BYTES;
            self.busy -= usize::from(client.backlog == 0);
        }
    }
}

//! The sending half: messages and requests as bytes.

use rota_core::contract::Service;

use super::OutstandingRequests;
use crate::envelope::Envelope;
use crate::error::{ConnectionLost, SendError};
use crate::protocol::{EncodeError, Request, SendHead, Welcome};

/// Fed messages are written when this many bytes wait. System calls for some dozens of small messages at once cost a
/// twentieth of one for each; a larger bound gains little, and the daemon could have begun.
const FLUSH_BYTES: usize = 32 << 10;

/// Room that an empty buffer keeps, in bytes.
const KEPT_BYTES: usize = 4 * FLUSH_BYTES;

/// The sending half: bytes that wait to be written. Bounded by the credit, and one message.
#[derive(Debug)]
pub struct Outgoing {
    bytes: Vec<u8>,
    /// The number of these bytes that have been written.
    written: usize,
    largest_payload: usize,
    service: Service,
}

impl Outgoing {
    pub const fn new(welcome: &Welcome, service: Service) -> Self {
        Self {
            bytes: Vec::new(),
            written: 0,
            largest_payload: welcome.largest_payload as usize,
            service,
        }
    }

    /// Takes a message if there is credit for it; whether there was.
    pub fn put(
        &mut self,
        account: &mut OutstandingRequests,
        envelope: &Envelope,
        payload: &[u8],
    ) -> Result<bool, SendError> {
        account.standing()?;
        let limit = self.largest_payload;
        if payload.len() > limit {
            return Err(SendError::TooLarge { limit });
        }
        let head = SendHead {
            service: envelope.service.unwrap_or(self.service),
            self_discard: envelope.self_discard,
            kind: envelope.kind,
            to: envelope.destinations(),
        };
        let bytes = head.frame_bytes(payload.len());
        if !account.credit.allows(bytes) || !self.has_room(bytes, account.credit.limit()) {
            return Ok(false);
        }
        head.encode(payload, &mut self.bytes)
            .map_err(|error| match error {
                EncodeError::TooLong => SendError::TooLarge { limit },
                _ => SendError::Destinations,
            })?;
        // The credit has allowed this already.
        let _ = account.credit.spend(bytes);
        Ok(true)
    }

    /// Whether so many bytes more may wait to be written. All of them are no more than the credit, or one message: a daemon
    /// may give credit back without having read anything.
    fn has_room(&self, bytes: usize, limit: u64) -> bool {
        let pending = self.pending().len();
        pending == 0 || pending.saturating_add(bytes) as u64 <= limit
    }

    /// Takes a request that has this number.
    pub fn ask(
        &mut self,
        account: &OutstandingRequests,
        request: &Request,
    ) -> Result<(), ConnectionLost> {
        account.standing()?;
        request.encode(&mut self.bytes).expect("it always fits");
        Ok(())
    }

    /// The bytes that are still to be written.
    pub fn pending(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    /// Whether there is enough for a system call of its own.
    pub fn is_due(&self) -> bool {
        self.pending().len() >= FLUSH_BYTES
    }

    /// Notes that the socket has taken this many bytes.
    pub fn wrote(&mut self, bytes: usize) {
        self.written += bytes;
        if self.written == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_BYTES);
            self.written = 0;
        } else if self.written >= FLUSH_BYTES.max(self.bytes.len() / 2) {
            // Each byte is moved once at most, however large a message is.
            self.bytes.drain(..self.written);
            self.written = 0;
        }
    }

    /// The most bytes of one payload.
    pub const fn largest_payload(&self) -> usize {
        self.largest_payload
    }
}

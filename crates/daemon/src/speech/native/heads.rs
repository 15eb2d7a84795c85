//! Heads of messages that were encoded before: most messages have the head of an earlier one.

use std::sync::Arc;

use rota_client::protocol::{EncodeError, Reply, set_payload_bytes};
use rota_core::contract::Service;
use rota_core::groups::{Destination, Member, Received};

/// Heads that are kept. A sender's newest is, unless another one has its place.
const SLOTS: usize = 64;

/// A longer one is not worth its memory.
const MOST_BYTES: usize = 1024;

/// All that a head says, but for how long the payload is.
#[derive(Debug)]
struct Head {
    sender: Member,
    to: Arc<[Destination]>,
    service: Service,
    self_discard: bool,
    kind: u16,
    bytes: Vec<u8>,
}

impl Head {
    /// Whether it is the message's. Destinations are the same only if they are the very same ones: those of
    /// messages whose heads were the same on the ring are.
    fn is_of(&self, message: &Received) -> bool {
        Arc::ptr_eq(&self.to, &message.to)
            && self.sender == message.sender
            && self.service == message.service
            && self.self_discard == message.self_discard
            && self.kind == message.kind
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Heads(Vec<Option<Head>>);

impl Heads {
    /// Appends the message's head; `reply` makes the whole of it if it is not known.
    pub fn encode(
        &mut self,
        message: &Received,
        reply: impl FnOnce() -> Reply,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        if self.0.is_empty() {
            self.0.resize_with(SLOTS, || None);
        }
        let sender = message.sender.connection.0 ^ u64::from(message.sender.daemon.node.get()) << 3;
        let slot = &mut self.0[(sender % SLOTS as u64) as usize];
        if let Some(head) = slot.as_ref().filter(|head| head.is_of(message)) {
            let start = out.len();
            out.extend_from_slice(&head.bytes);
            return set_payload_bytes(&mut out[start..], message.payload.len());
        }
        let start = out.len();
        reply().encode_head(out)?;
        let written = &out[start..];
        *slot = (written.len() <= MOST_BYTES).then(|| Head {
            sender: message.sender,
            to: Arc::clone(&message.to),
            service: message.service,
            self_discard: message.self_discard,
            kind: message.kind,
            bytes: written.to_vec(),
        });
        Ok(())
    }
}

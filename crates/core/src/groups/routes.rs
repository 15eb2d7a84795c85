//! Routes of messages whose head repeats an earlier one, as most do: such a head need not be read again, and the
//! receivers among this daemon's clients need not be looked up.

use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

use super::event::{Connection, Received};
use super::message::RING;
use crate::contract::Process;
use crate::mutants::{self, Mutant};

/// The most heads that are known at once. A sender's newest head is known, unless another one has its place.
const SLOTS: usize = 64;

/// The bytes before a message's number, if it has one, apart from the sender's name: the connection of its sender, the
/// length of the sender's name and, behind that, service and flags.
const NUMBER_BEHIND_NAME: usize = 8 + 1 + 1 + 1;

/// A longer head is not worth its memory.
const MOST_BYTES: usize = 1024;

/// The route of all messages of a daemon that have this head.
#[derive(Debug)]
struct Route {
    from: Process,
    /// The head without the ring that the message is for.
    head: Vec<u8>,
    /// The place in it of the number that each message has for itself, if they have one.
    number_at: Option<usize>,
    /// The message without a payload.
    received: Received,
    /// The clients of this daemon that get it, ascending.
    to: Arc<[Connection]>,
}

impl Route {
    fn is_head_of(&self, message: &[u8]) -> bool {
        let Some(at) = self.number_at else {
            return message.starts_with(&self.head);
        };
        let Some(head) = message.get(..self.head.len()) else {
            return false;
        };
        head[..at] == self.head[..at] && head[at + 8..] == self.head[at + 8..]
    }
}

/// The known routes: see the module. They hold until a client or a daemon comes or goes.
#[derive(Default, Debug)]
pub(super) struct Routes {
    /// Empty while no route is known.
    slots: Vec<Option<Route>>,
}

impl Routes {
    /// The message that these bytes are, and its receivers.
    pub fn find(&self, from: Process, message: &Bytes) -> Option<(Arc<[Connection]>, Received)> {
        let rest = message.get(RING.end..)?;
        let route = self.slots.get(slot(from, rest)?)?.as_ref()?;
        if route.from != from || !route.is_head_of(rest) {
            return None;
        }
        let received = Received {
            number: route.number_at.and_then(|at| number(rest, at)),
            payload: message.slice(RING.end + route.head.len()..),
            ..route.received.clone()
        };
        Some((Arc::clone(&route.to), received))
    }

    /// Keeps the head of this message from now on.
    pub fn keep(
        &mut self,
        from: Process,
        message: &[u8],
        received: &Received,
        to: &Arc<[Connection]>,
    ) {
        let end = message.len().saturating_sub(received.payload.len());
        let Some(head) = message.get(RING.end..end) else {
            return;
        };
        let Some(slot) = slot(from, head).filter(|_| head.len() <= MOST_BYTES) else {
            return;
        };
        if self.slots.is_empty() {
            self.slots.resize_with(SLOTS, || None);
        }
        self.slots[slot] = Some(Route {
            from,
            head: head.to_vec(),
            number_at: received
                .number
                .map(|_| NUMBER_BEHIND_NAME + usize::from(head[8])),
            received: Received {
                payload: Bytes::new(),
                ..received.clone()
            },
            to: Arc::clone(to),
        });
    }

    /// A client or a daemon has come or gone.
    pub fn clear(&mut self) {
        if !mutants::on(Mutant::G22) {
            self.slots.clear();
        }
    }
}

fn number(message: &[u8], at: usize) -> Option<u64> {
    let bytes = message.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}

/// A head begins with the connection of its sender.
fn slot(from: Process, message: &[u8]) -> Option<usize> {
    let connection = u64::from_le_bytes(*message.first_chunk()?);
    let mixed = connection ^ u64::from(from.node.get()).rotate_left(3);
    Some((mixed % SLOTS as u64) as usize)
}

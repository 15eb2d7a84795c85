//! Where messages go whose head is that of an earlier one, as most are: what such a head says need not be read
//! again, nor looked up who of this daemon's clients gets them.

use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

use super::event::{Connection, Event, Received};
use super::machine::Groups;
use super::message::{Request, Told, divide_data, parse};
use crate::contract::Process;

/// Heads that are known at once. A sender's newest is known, unless another one has its place.
const SLOTS: usize = 64;

/// A longer head is not worth its memory.
const MOST_BYTES: usize = 1024;

/// All messages of a daemon that have this head.
#[derive(Debug)]
struct Route {
    from: Process,
    /// Without the ring that the message is for.
    head: Vec<u8>,
    /// Without a payload.
    received: Received,
    /// The clients of this daemon that get it, ascending.
    to: Arc<[Connection]>,
}

/// See the module. They hold until somebody comes or goes.
#[derive(Default, Debug)]
pub(super) struct Routes {
    slots: Vec<Option<Route>>,
    known: usize,
}

impl Routes {
    /// The message that these bytes are, behind the ring; and who gets it.
    pub fn find(&self, from: Process, message: &Bytes) -> Option<(Arc<[Connection]>, Received)> {
        let route = self.slots.get(slot(from, message)?)?.as_ref()?;
        if route.from != from || !message.starts_with(&route.head) {
            return None;
        }
        let received = Received {
            payload: message.slice(route.head.len()..),
            ..route.received.clone()
        };
        Some((Arc::clone(&route.to), received))
    }

    /// From now on this is known. `message` begins behind the ring.
    pub fn keep(
        &mut self,
        from: Process,
        message: &Bytes,
        received: &Received,
        to: &Arc<[Connection]>,
    ) {
        let Some(bytes) = message.len().checked_sub(received.payload.len()) else {
            return;
        };
        let Some(slot) = slot(from, message).filter(|_| bytes <= MOST_BYTES) else {
            return;
        };
        if self.slots.is_empty() {
            self.slots.resize_with(SLOTS, || None);
        }
        self.known += 1;
        self.slots[slot] = Some(Route {
            from,
            head: message[..bytes].to_vec(),
            received: Received {
                payload: Bytes::new(),
                ..received.clone()
            },
            to: Arc::clone(to),
        });
    }

    /// Somebody has come or gone.
    pub fn clear(&mut self) {
        if core::mem::take(&mut self.known) > 0 {
            self.slots.fill_with(|| None);
        }
    }
}

/// A head begins with the connection of its sender.
fn slot(from: Process, message: &[u8]) -> Option<usize> {
    let connection = u64::from_le_bytes(*message.first_chunk()?);
    let mixed = connection ^ u64::from(from.node.get()).rotate_left(3);
    Some((mixed % SLOTS as u64) as usize)
}

impl Groups {
    /// Takes a message whose head is known; whether it is one.
    pub(super) fn on_known(&mut self, from: Process, message: &Bytes) -> bool {
        let Some((ring, rest)) = divide_data(message) else {
            return false;
        };
        let Some((to, data)) = self.routes.find(from, &rest) else {
            return false;
        };
        debug_assert!(self.is_so(from, message, &to, &data), "a stale route");
        if self.has_its_place(from, self.ring == Some(ring)) {
            self.emit(to, Event::Message(data));
        }
        true
    }

    /// Whether one who does not know the head comes to the same.
    fn is_so(&self, from: Process, message: &Bytes, to: &[Connection], data: &Received) -> bool {
        match parse(from, message).map(|stamped| stamped.told) {
            Some(Told::Request(Request::Data(read, discard))) => {
                read == *data && *self.receivers(&read, discard) == *to
            }
            _ => false,
        }
    }

    /// A message whose head is known from now on.
    pub(super) fn on_unknown(
        &mut self,
        from: Process,
        message: &Bytes,
        data: Received,
        discard: bool,
    ) {
        let to = self.receivers(&data, discard);
        if let Some((_, rest)) = divide_data(message) {
            self.routes.keep(from, &rest, &data, &to);
        }
        self.emit(to, Event::Message(data));
    }
}

//! Large messages of clients, in parts: each message of daemons is small, so that the messages of others find their
//! places between the parts of a large one.
//!
//! A large message has the place of its last part in the order. All its parts are for one configuration: parts of an
//! incomplete message that were ordered when the configuration ends count for nobody, and its daemon begins anew in the
//! next one (membership R4, as for messages that the engine cuts). So every daemon that has been in the configuration
//! from its start has all parts of each message that is completed in it.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;

use super::clients::Waiting;
use super::event::{Connection, Member};
use super::message::{MOST_PART_BYTES, Part, part, stamp};
use super::name::ClientName;
use crate::contract::{Process, RingId, Service};
use crate::mutants::{self, Mutant};

/// Parts that are handed to the engine and have not come back, at most: messages of others wait behind these.
const WINDOW: usize = 16;

/// A large message on its way to the engine.
#[derive(Debug)]
struct Large {
    sender: Member,
    service: Service,
    /// The message without its payload, which is shared with its sender.
    head: Vec<u8>,
    payload: Bytes,
    /// The number of bytes of both that have been handed to the engine.
    cut: usize,
    /// The number of those that have come back.
    back: usize,
    /// The engine's counter of the last part that it was handed.
    counter: u64,
    /// The requests of clients of that name since.
    then: Vec<Waiting>,
}

impl Large {
    const fn len(&self) -> usize {
        self.head.len() + self.payload.len()
    }

    /// Appends `bytes` bytes from `at` on.
    fn copy(&self, at: usize, bytes: usize, into: &mut Vec<u8>) {
        let end = at + bytes;
        let head = self.head.len();
        into.extend_from_slice(&self.head[at.min(head)..end.min(head)]);
        into.extend_from_slice(&self.payload[at.max(head) - head..end.max(head) - head]);
    }
}

/// The large messages of a daemon's clients, one after the other.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    queue: VecDeque<Large>,
    /// The bytes of all of them.
    bytes: usize,
    part_bytes: usize,
    under_way: usize,
    /// The part that is offered to the engine.
    offered: Vec<u8>,
}

impl Outgoing {
    pub fn new(part_bytes: usize) -> Self {
        Self {
            part_bytes: part_bytes.clamp(1, MOST_PART_BYTES),
            ..Self::default()
        }
    }

    /// The bytes of one part, at most.
    pub const fn part_bytes(&self) -> usize {
        self.part_bytes
    }

    /// The bytes of all large messages.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of messages, and of the requests behind them, that have not come back.
    pub fn waiting(&self) -> usize {
        self.queue.iter().map(|large| 1 + large.then.len()).sum()
    }

    /// Whether a message with this payload would be taken, if no more than `room` bytes may wait.
    pub fn has_room(&self, payload: usize, room: usize) -> bool {
        self.queue.is_empty() || self.bytes + payload <= room
    }

    pub fn push(&mut self, sender: Member, service: Service, head: Vec<u8>, payload: Bytes) {
        let large = Large {
            sender,
            service,
            head,
            payload,
            cut: 0,
            back: 0,
            counter: 0,
            then: Vec::new(),
        };
        self.bytes += large.len();
        self.queue.push_back(large);
    }

    /// The queue in which requests of clients of that name wait until the large message of that name has its place;
    /// `None` if there is no such message. So a client that comes back under a name comes behind the end of its
    /// predecessor.
    pub fn behind(&mut self, name: ClientName) -> Option<&mut Vec<Waiting>> {
        let mut queue = self.queue.iter_mut().rev();
        let large = queue.find(|large| large.sender.name == name)?;
        Some(&mut large.then)
    }

    fn next(&self) -> Option<usize> {
        self.queue.iter().position(|large| large.cut < large.len())
    }

    pub fn has_unsent(&self) -> bool {
        self.under_way < WINDOW && self.next().is_some()
    }

    /// The next part for the engine, as a message for this ring.
    pub fn unsent(&mut self, ring: RingId) -> Option<(Service, &[u8])> {
        let at = self.next().filter(|_| self.under_way < WINDOW)?;
        let large = &mut self.queue[at];
        if large.cut == 0 {
            stamp(&mut large.head, ring);
        }
        let bytes = self.part_bytes.min(large.len() - large.cut);
        let last = large.cut + bytes == large.len();
        part(ring, large.cut, large.len(), &mut self.offered);
        large.copy(large.cut, bytes, &mut self.offered);
        let service = if last { large.service } else { Service::Agreed };
        Some((service, &self.offered))
    }

    pub fn sent(&mut self, counter: u64) {
        if let Some(at) = self.next() {
            let large = &mut self.queue[at];
            large.counter = counter;
            large.cut += self
                .part_bytes
                .min(large.head.len() + large.payload.len() - large.cut);
            self.under_way += 1;
        }
    }

    /// A part has come back. Returns of a message that has its place now its bytes, its connection, and the requests of
    /// that client since.
    pub fn returned(&mut self, bytes: usize) -> Option<(usize, Connection, Vec<Waiting>)> {
        self.under_way = self.under_way.saturating_sub(1);
        let first = self.queue.front_mut()?;
        first.back += bytes;
        if first.back < first.head.len() + first.payload.len() {
            return None;
        }
        self.pop()
    }

    /// Removes the first message, if the others have delivered all of it, and this daemon has not: parts up to counter
    /// `own` have been delivered. Returns the same of it.
    pub fn ordered_elsewhere(&mut self, own: u64) -> Option<(usize, Connection, Vec<Waiting>)> {
        let first = self.queue.front()?;
        if first.cut < first.len() || first.counter > own || mutants::on(Mutant::G28) {
            return None;
        }
        let unseen = (first.cut - first.back).div_ceil(self.part_bytes);
        self.under_way = self.under_way.saturating_sub(unseen);
        self.pop()
    }

    fn pop(&mut self) -> Option<(usize, Connection, Vec<Waiting>)> {
        let large = self.queue.pop_front()?;
        self.bytes -= large.len();
        Some((large.len(), large.sender.connection, large.then))
    }

    /// The engine will never take the next part: its message is given up.
    pub fn refused(&mut self) -> Option<(usize, Connection, Vec<Waiting>)> {
        let large = self.queue.remove(self.next()?)?;
        self.bytes -= large.len();
        Some((large.len(), large.sender.connection, large.then))
    }

    /// Parts that have come back count for nobody if their message is not whole by now. Returns the number of parts
    /// that were under way.
    pub fn send_again(&mut self) -> usize {
        for large in &mut self.queue {
            large.back = 0;
            if !mutants::on(Mutant::G17) {
                large.cut = 0;
            }
        }
        core::mem::take(&mut self.under_way)
    }
}

/// A message of which not all parts have come.
#[derive(Debug)]
struct Partial {
    total: usize,
    bytes: Vec<u8>,
}

impl Partial {
    /// A peer's word says how large the message is to be: memory grows with the bytes that have come, and never beyond
    /// that size.
    fn make_room(&mut self, bytes: usize) {
        let (len, capacity) = (self.bytes.len(), self.bytes.capacity());
        if len + bytes > capacity {
            let more = len.max(bytes).min(self.total - len);
            self.bytes.reserve_exact(more);
        }
    }
}

/// Incoming large messages: of each daemon one at most.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    partial: BTreeMap<Process, Partial>,
}

impl Incoming {
    /// Takes a part. Returns the message that it completes, if it does, or an error if the part made no sense.
    pub fn take(&mut self, from: Process, part: &Part) -> Result<Option<Bytes>, ()> {
        let partial = self.partial.entry(from).or_insert_with(|| Partial {
            total: part.total,
            bytes: Vec::new(),
        });
        if partial.total != part.total || partial.bytes.len() != part.offset {
            self.partial.remove(&from);
            return Err(());
        }
        partial.make_room(part.bytes.len());
        partial.bytes.extend_from_slice(&part.bytes);
        if partial.bytes.len() < partial.total {
            return Ok(None);
        }
        let whole = self.partial.remove(&from);
        Ok(whole.map(|partial| partial.bytes.into()))
    }

    /// The configuration has ended: so have the messages of which not all parts were ordered in it.
    pub fn clear(&mut self) {
        if !mutants::on(Mutant::G18) {
            self.partial.clear();
        }
    }

    /// Bytes that wait for the rest of their messages.
    pub fn bytes(&self) -> usize {
        self.partial
            .values()
            .map(|partial| partial.bytes.len())
            .sum()
    }
}

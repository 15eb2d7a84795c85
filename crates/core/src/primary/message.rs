//! The bytes of the layer: a number before each message of the application, its own messages, and its record on disk.
//! Decoding is total: there is an answer for all bytes, and no two encodings have the same meaning.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use bytes::Bytes;

use super::session::{Knowledge, Session};
use crate::contract::{Incarnation, NodeId, RingId};
use crate::wire::MAX_MEMBERS;

/// The layout of everything here but the number before a message.
const VERSION: u8 = 1;

/// Attempts that a node remembers at most. With so many unsettled ones it attempts no more, until some
/// are settled: at the latest when all their members meet.
pub(super) const MOST_ATTEMPTS: usize = 64;

/// The most bytes by which a message of the application grows.
pub const HEADER_BYTES: usize = 10;

const RING_BYTES: usize = 8 + 2 + 8;
const SESSION_BYTES: usize = 1 + RING_BYTES + 2 + 2 * MAX_MEMBERS;

/// The largest message of the layer's own: the ring has to take it.
pub const OWN_BYTES: usize = 3 + RING_BYTES + 1 + SESSION_BYTES + 1 + MOST_ATTEMPTS * SESSION_BYTES;

const VOTE: u8 = 1;
const ATTEMPT: u8 = 2;

/// A message of the layer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Own {
    /// The knowledge of its sender when the sender came to this ring.
    Vote(RingId, Knowledge),
    /// Its sender has made durable that it attempts to make this ring's configuration primary.
    Attempt(RingId),
}

/// The content of a payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Parsed {
    /// A message of the application, and the number of the layer's messages that its sender had before it.
    Application(u64, Bytes),
    Own(Own),
}

/// The application's message: one byte is all that it grows by as long as its sender has seen few
/// configurations.
pub(super) fn wrap(own_before: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(payload.len() + 2);
    put_number(&mut bytes, own_before.saturating_add(1));
    bytes.extend_from_slice(payload);
    bytes
}

pub(super) fn parse(payload: &Bytes) -> Option<Parsed> {
    let mut reader = Reader(payload);
    let number = reader.number()?;
    let Some(own_before) = number.checked_sub(1) else {
        return reader.own().map(Parsed::Own);
    };
    let header = payload.len() - reader.0.len();
    Some(Parsed::Application(own_before, payload.slice(header..)))
}

impl Own {
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Self::Vote(ring, known) => {
                bytes.extend([0, VERSION, VOTE]);
                put_ring(&mut bytes, *ring);
                put_knowledge(&mut bytes, known);
            }
            Self::Attempt(ring) => {
                bytes.extend([0, VERSION, ATTEMPT]);
                put_ring(&mut bytes, *ring);
            }
        }
        bytes
    }
}

impl Knowledge {
    /// The record on disk.
    pub fn to_record(&self) -> Vec<u8> {
        let mut bytes = Vec::from([VERSION]);
        put_knowledge(&mut bytes, self);
        bytes
    }

    /// Reads a record; `None` for bytes that this version did not write.
    pub fn from_record(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        (reader.byte()? == VERSION).then_some(())?;
        let known = reader.knowledge()?;
        reader.0.is_empty().then_some(known)
    }
}

/// Seven bits a byte, the lowest first; all but the last have the eighth.
fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn put_ring(bytes: &mut Vec<u8>, ring: RingId) {
    bytes.extend(ring.ring_seq.to_le_bytes());
    bytes.extend(ring.rep.get().to_le_bytes());
    bytes.extend(ring.incarnation.0.to_le_bytes());
}

fn put_session(bytes: &mut Vec<u8>, session: &Session) {
    put_ring(bytes, session.ring);
    let count = u16::try_from(session.members.len()).unwrap_or(u16::MAX);
    bytes.extend(count.to_le_bytes());
    for node in session.members.iter().take(count.into()) {
        bytes.extend(node.get().to_le_bytes());
    }
}

fn put_knowledge(bytes: &mut Vec<u8>, known: &Knowledge) {
    let carried = |session: &Session| u8::from(known.carried.contains(&session.ring));
    bytes.push(u8::from(known.last.is_some()));
    if let Some(last) = &known.last {
        bytes.push(carried(last));
        put_session(bytes, last);
    }
    bytes.push(known.attempts.len().min(MOST_ATTEMPTS) as u8);
    for attempt in known.attempts.iter().take(MOST_ATTEMPTS) {
        bytes.push(carried(attempt));
        put_session(bytes, attempt);
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take().map(|[byte]| byte)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for place in 0..10 {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            let shifted = bits << (7 * place);
            (shifted >> (7 * place) == bits).then_some(())?;
            number |= shifted;
            if byte & 0x80 == 0 {
                // Zeros at the end would be a second way to write it.
                return (byte > 0 || place == 0).then_some(number);
            }
        }
        None
    }

    fn own(&mut self) -> Option<Own> {
        (self.byte()? == VERSION).then_some(())?;
        let own = match self.byte()? {
            VOTE => Own::Vote(self.ring()?, self.knowledge()?),
            ATTEMPT => Own::Attempt(self.ring()?),
            _ => return None,
        };
        self.0.is_empty().then_some(own)
    }

    fn node(&mut self) -> Option<NodeId> {
        NodeId::new(u16::from_le_bytes(self.take()?))
    }

    fn ring(&mut self) -> Option<RingId> {
        let ring_seq = u64::from_le_bytes(self.take()?);
        let rep = self.node()?;
        let incarnation = Incarnation(u64::from_le_bytes(self.take()?));
        (incarnation.0 <= Incarnation::MAX).then_some(RingId {
            ring_seq,
            rep,
            incarnation,
        })
    }

    fn session(&mut self, carried: &mut BTreeSet<RingId>) -> Option<Session> {
        let carries = self.byte()?;
        (carries < 2).then_some(())?;
        let ring = self.ring()?;
        if carries == 1 {
            carried.insert(ring);
        }
        let count = u16::from_le_bytes(self.take()?);
        let mut members: Vec<NodeId> = Vec::new();
        for _ in 0..count {
            let node = self.node()?;
            let ascending = members.last().is_none_or(|last| *last < node);
            ascending.then(|| members.push(node))?;
        }
        (!members.is_empty()).then_some(Session { ring, members })
    }

    fn knowledge(&mut self) -> Option<Knowledge> {
        let mut carried = BTreeSet::new();
        let last = match self.byte()? {
            0 => None,
            1 => Some(self.session(&mut carried)?),
            _ => return None,
        };
        let count = usize::from(self.byte()?);
        (count <= MOST_ATTEMPTS).then_some(())?;
        let mut attempts: Vec<Session> = Vec::new();
        for _ in 0..count {
            let attempt = self.session(&mut carried)?;
            let before = attempts.last().or(last.as_ref());
            let ascending = before.is_none_or(|before| before.ring < attempt.ring);
            ascending.then(|| attempts.push(attempt))?;
        }
        Some(Knowledge {
            last,
            attempts,
            carried,
        })
    }
}

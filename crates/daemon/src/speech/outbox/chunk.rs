//! A part of the outbox of a client: one piece of memory and a list of shared payloads.

use std::iter;

use bytes::Bytes;
use rota_client::protocol::HEAD_BYTES;

/// A chunk ends once it has this many bytes of its own.
pub(super) const CHUNK_BYTES: usize = 256 << 10;

/// A chunk ends, too, once it shares this many payloads.
const CHUNK_PAYLOADS: usize = 1024;

/// Larger payloads stay shared however long they wait. They have come in several datagrams, so that none of them
/// keeps a receive buffer of the ring.
pub(super) const LARGE_BYTES: usize = 64 << 10;

/// Whole frames.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    pub bytes: Vec<u8>,
    /// Payloads that are not copied, at most one of a frame.
    pub payloads: Vec<Payload>,
    pub len: usize,
}

/// Part of a frame that others have as well.
#[derive(Clone, Debug)]
pub(super) struct Payload {
    /// The number of the chunk's own bytes before the payload.
    pub before: usize,
    pub bytes: Bytes,
    /// The payload stays shared however long it waits.
    pub stays: bool,
}

/// The place at which a frame begins in a chunk.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Place {
    /// The offset in the chunk's bytes.
    pub byte: usize,
    /// The number of payloads before the frame.
    pub payloads: usize,
    /// The offset in the bytes that are sent.
    pub at: usize,
}

impl Chunk {
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= CHUNK_BYTES || self.payloads.len() >= CHUNK_PAYLOADS
    }

    /// The frame that begins there: its bytes, but for a shared payload, and where the next one begins.
    pub fn frame(&self, place: Place) -> (&[u8], Place) {
        let rest = &self.bytes[place.byte..];
        let length = rest
            .first_chunk()
            .map_or(0, |length| u32::from_le_bytes(*length));
        let length = (4 + length as usize).max(HEAD_BYTES);
        let shared = self.payloads.get(place.payloads);
        let shared = shared.filter(|payload| payload.before < place.byte + length);
        let own = length - shared.map_or(0, |payload| payload.bytes.len());
        let end = (place.byte + own).min(self.bytes.len());
        let next = Place {
            byte: end,
            payloads: place.payloads + usize::from(shared.is_some()),
            at: place.at + length,
        };
        (&self.bytes[place.byte..end], next)
    }

    /// All frames, without their shared payloads.
    pub fn frames(&self) -> impl Iterator<Item = &[u8]> {
        let mut place = Place::default();
        iter::from_fn(move || {
            (place.byte < self.bytes.len()).then(|| {
                let (frame, next) = self.frame(place);
                place = next;
                frame
            })
        })
    }

    /// Keeps what is before the place.
    pub fn split_off(&mut self, place: Place) -> Self {
        let mut payloads = self.payloads.split_off(place.payloads);
        for payload in &mut payloads {
            payload.before -= place.byte;
        }
        let rest = Self {
            bytes: self.bytes.split_off(place.byte),
            payloads,
            len: self.len - place.at,
        };
        self.len = place.at;
        rest
    }

    /// All bytes, in order.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let mut from = 0;
        let shared = self.payloads.iter().flat_map(move |payload| {
            let own = &self.bytes[from..payload.before];
            from = payload.before;
            [own, &payload.bytes]
        });
        let last = self.payloads.last().map_or(0, |payload| payload.before);
        shared.chain([&self.bytes[last..]])
    }

    /// Copies the payloads, but for those that stay.
    pub fn copy_payloads(&mut self) {
        if self.payloads.iter().all(|payload| payload.stays) {
            return;
        }
        let copies = self.payloads.iter().filter(|payload| !payload.stays);
        let more: usize = copies.map(|payload| payload.bytes.len()).sum();
        let mut copied = Self {
            bytes: Vec::with_capacity(self.bytes.len() + more),
            payloads: Vec::new(),
            len: self.len,
        };
        let mut from = 0;
        for payload in self.payloads.drain(..) {
            let before = payload.before;
            copied.bytes.extend_from_slice(&self.bytes[from..before]);
            from = before;
            if payload.stays {
                let before = copied.bytes.len();
                copied.payloads.push(Payload { before, ..payload });
            } else {
                copied.bytes.extend_from_slice(&payload.bytes);
            }
        }
        copied.bytes.extend_from_slice(&self.bytes[from..]);
        *self = copied;
    }
}

//! A message to the successor, while it is written.

use super::wire::{BATCH, DELIVERED, Entry, HEAD_BYTES, STABLE, WORD_BYTES, head};
use rota_core::contract::{Pieces, PiecesWriter, RingId};
use rota_core::wire::put_varint;

/// A batch that is being written. Large records are not copied into it.
#[derive(Debug)]
pub struct Writer {
    batch: PiecesWriter,
    /// The bytes that the link takes.
    room: usize,
    /// The size, in bytes, at which the batch is large enough.
    enough: usize,
    packets: usize,
}

impl Writer {
    /// An empty one, of at most `room` bytes, and of at most `enough` if it has more than one packet.
    pub fn new(ring: RingId, epoch: u32, room: usize, enough: usize) -> Self {
        Self {
            batch: PiecesWriter::new(head(BATCH, ring, epoch)),
            room,
            enough,
            packets: 0,
        }
    }

    /// Whether there is nothing in it.
    pub const fn is_empty(&self) -> bool {
        self.size() == HEAD_BYTES
    }

    const fn size(&self) -> usize {
        self.batch.len()
    }

    /// Packets in it.
    pub const fn packets(&self) -> usize {
        self.packets
    }

    /// Whether it takes a packet's record of `bytes` bytes.
    pub const fn takes(&self, bytes: usize) -> bool {
        let after = self.size() + bytes;
        after <= self.room && (self.packets == 0 || after <= self.enough)
    }

    /// Appends a packet that it takes.
    pub fn packet(&mut self, entry: &Entry) {
        self.packets += 1;
        self.batch.push(entry.record());
    }

    /// Whether it takes one more word.
    pub const fn takes_word(&self) -> bool {
        self.size() + WORD_BYTES <= self.room
    }

    /// Appends that all hold a member's packets up to a number.
    pub fn stable(&mut self, member: usize, number: u64) {
        self.word(STABLE, member, number);
    }

    /// Appends that all behind a member have delivered its packets up to a number.
    pub fn delivered(&mut self, member: usize, number: u64) {
        self.word(DELIVERED, member, number);
    }

    fn word(&mut self, tag: u8, member: usize, number: u64) {
        self.batch.small.push(tag);
        put_varint(&mut self.batch.small, member as u64);
        put_varint(&mut self.batch.small, number);
    }

    /// The batch.
    pub fn finish(self) -> Pieces {
        self.batch.finish()
    }
}

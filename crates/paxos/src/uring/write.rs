//! A batch along the ring, while it is written.

use bytes::Bytes;

use super::codec::put_members;
use super::wire::{
    HEAD_BYTES, LEARNT, LOG_FAILED, LOST, MEMBERS, NAMED, PACKET, SKIP, STRANGER, VALUE, VOTED,
    WHOLE, put_head,
};
use super::word::Head;
use crate::ValueId;
use rota_core::bytes::put_process;
use rota_core::contract::{Pieces, PiecesWriter, Process};
use rota_core::wire::put_varint;

/// The most bytes of a record beside its value.
const RECORD_BYTES: usize = 1 + 1 + 10 + 10 + 5;

/// A batch that is being written. Large values are not copied into it.
#[derive(Debug)]
pub struct Writer {
    batch: PiecesWriter,
    room: usize,
    enough: usize,
    records: usize,
}

impl Writer {
    /// An empty one, of at most `room` bytes, and of at most `enough` if it has more than one record.
    pub fn new(head: &Head, room: usize, enough: usize) -> Self {
        Self {
            batch: PiecesWriter::new(put_head(head)),
            room,
            enough,
            records: 0,
        }
    }

    /// Whether there is nothing in it.
    pub const fn is_empty(&self) -> bool {
        self.batch.len() == HEAD_BYTES
    }

    /// Whether it takes a record with a value of these bytes.
    pub const fn takes(&self, bytes: usize) -> bool {
        let after = self.batch.len() + RECORD_BYTES + bytes;
        after <= self.room && (self.records == 0 || after <= self.enough)
    }

    /// Whether it takes a record about an acceptor or a process.
    pub const fn takes_vote(&self) -> bool {
        self.batch.len() + RECORD_BYTES <= self.room
    }

    /// A value on its way to the coordinator. `at`: its proposer's place in the ring.
    pub fn value(&mut self, at: Option<usize>, id: ValueId, frame: &Bytes) {
        self.named(VALUE, at, id);
        self.frame(frame);
    }

    /// A proposal whose value the receiver has.
    pub fn proposal(&mut self, at: Option<usize>, id: ValueId) {
        self.named(NAMED, at, id);
    }

    /// A proposal with its value.
    pub fn packet(&mut self, at: Option<usize>, id: ValueId, frame: &Bytes, whole: bool) {
        self.named(if whole { WHOLE } else { PACKET }, at, id);
        self.frame(frame);
    }

    /// A proposal of members.
    pub fn members(&mut self, number: u64, members: &[Process]) {
        self.batch.small.push(MEMBERS);
        put_varint(&mut self.batch.small, number);
        put_members(&mut self.batch.small, members);
        self.records += 1;
    }

    /// A proposal of nothing.
    pub fn skip(&mut self, count: u64) {
        self.batch.small.push(SKIP);
        put_varint(&mut self.batch.small, count);
        self.records += 1;
    }

    /// The first instance without an acceptor's vote.
    pub fn voted(&mut self, acceptor: u8, next: u64) {
        self.batch.small.extend([VOTED, acceptor]);
        put_varint(&mut self.batch.small, next);
    }

    /// The first instance that an acceptor has not learnt.
    pub fn learnt(&mut self, acceptor: u8, next: u64) {
        self.batch.small.extend([LEARNT, acceptor]);
        put_varint(&mut self.batch.small, next);
    }

    /// The number of times that the process at this place had to ask for values.
    pub fn lost(&mut self, place: u8, count: u64) {
        self.batch.small.extend([LOST, place]);
        put_varint(&mut self.batch.small, count);
    }

    /// An acceptor votes for nothing more in the round.
    pub fn log_failed(&mut self, acceptor: u8) {
        self.batch.small.extend([LOG_FAILED, acceptor]);
    }

    fn named(&mut self, tag: u8, at: Option<usize>, id: ValueId) {
        self.records += 1;
        self.batch.small.push(tag);
        let index = at.and_then(|at| u8::try_from(at).ok());
        match index.filter(|index| *index != STRANGER) {
            Some(index) => self.batch.small.push(index),
            None => {
                self.batch.small.push(STRANGER);
                put_process(&mut self.batch.small, id.process);
            }
        }
        put_varint(&mut self.batch.small, id.counter);
    }

    fn frame(&mut self, frame: &Bytes) {
        put_varint(&mut self.batch.small, frame.len() as u64);
        self.batch.push(frame);
    }

    /// The batch.
    pub fn finish(self) -> Pieces {
        self.batch.finish()
    }
}

//! Consecutive records of one log in memory, of which a first part is written.

use bytes::{Bytes, BytesMut};

use super::record::Run;

/// The size up to which small runs are put together.
const CHUNK: usize = 32 << 10;

/// The size from which on a run is a chunk of its own, and is not copied.
const WHOLE: usize = 16 << 10;

/// The memory of a chunk beside its bytes, about.
const OVERHEAD: usize = 160;

/// Consecutive records of one log.
#[derive(Debug)]
pub(super) struct Chunk {
    id: u64,
    first: u64,
    next: u64,
    data: Data,
    /// Records before this one are written.
    written: u64,
    /// The bytes of these records.
    written_bytes: usize,
    /// The chunk is in the writer's queue, or being written.
    is_queued: bool,
    /// The unwritten records were appended behind this mark, and before the next.
    mark: u64,
}

#[derive(Debug)]
enum Data {
    /// More records may come.
    Open(BytesMut),
    Whole(Bytes),
}

/// The part of a chunk that one write brings to the disk.
#[derive(Debug)]
pub(super) struct Part {
    /// The chunk.
    pub(super) id: u64,
    /// The position behind the part.
    next: u64,
    /// The bytes of the chunk up to there.
    bytes: usize,
}

/// The place of a chunk in the writer's queue when it takes more records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Extended {
    /// It is in the queue already, or being written.
    Queued,
    /// All of it was written: it has to be queued again.
    Anew,
}

impl Chunk {
    /// A chunk with the records of a run, none of them written.
    pub(super) fn new(id: u64, (first, next): (u64, u64), bytes: Bytes, mark: u64) -> Self {
        let data = match bytes.len() < WHOLE {
            true => Data::Open(BytesMut::from(&bytes[..])),
            false => Data::Whole(bytes),
        };
        Self {
            id,
            first,
            next,
            data,
            written: first,
            written_bytes: 0,
            is_queued: true,
            mark,
        }
    }

    pub(super) const fn id(&self) -> u64 {
        self.id
    }

    /// The position of the first record.
    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    /// The position behind the last record.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// The position of the first record that is not written.
    pub(super) const fn written(&self) -> u64 {
        self.written
    }

    /// Whether the chunk is in the writer's queue, or being written.
    pub(super) const fn is_queued(&self) -> bool {
        self.is_queued
    }

    pub(super) fn len(&self) -> usize {
        match &self.data {
            Data::Open(bytes) => bytes.len(),
            Data::Whole(bytes) => bytes.len(),
        }
    }

    /// The memory that the chunk takes, in bytes, about.
    pub(super) fn cost(&self) -> usize {
        OVERHEAD
            + match &self.data {
                Data::Open(bytes) => bytes.capacity(),
                Data::Whole(bytes) => bytes.len(),
            }
    }

    /// The bytes that are not written.
    pub(super) fn unwritten(&self) -> usize {
        self.len() - self.written_bytes
    }

    /// All records. They are copied if more may come behind them.
    pub(super) fn run(&self, log: u64) -> Run {
        Run::trusted(log, self.first, self.next, self.bytes_from(0))
    }

    /// The part that is not written yet, and its bytes.
    pub(super) fn part(&self) -> (Part, Bytes) {
        let bytes = self.bytes_from(self.written_bytes);
        let part = Part {
            id: self.id,
            next: self.next,
            bytes: self.written_bytes + bytes.len(),
        };
        (part, bytes)
    }

    /// The bytes from `at` on. They are copied if more records may come behind them.
    fn bytes_from(&self, at: usize) -> Bytes {
        match &self.data {
            Data::Open(bytes) => Bytes::copy_from_slice(bytes.get(at..).unwrap_or_default()),
            Data::Whole(bytes) => bytes.slice(at.min(bytes.len())..),
        }
    }

    /// Notes that a part is written: returns its bytes. The chunk stays queued if it has more by now.
    pub(super) fn on_written(&mut self, part: &Part) -> usize {
        let more = part.bytes - self.written_bytes;
        (self.written, self.written_bytes) = (part.next, part.bytes);
        self.is_queued = self.unwritten() > 0;
        more
    }

    /// Lets no more records come.
    pub(super) fn close(&mut self) {
        if let Data::Open(bytes) = &mut self.data {
            let is_tight = bytes.len() * 4 >= bytes.capacity() * 3;
            self.data = Data::Whole(match is_tight {
                true => std::mem::take(bytes).freeze(),
                false => Bytes::copy_from_slice(bytes),
            });
        }
    }

    /// Puts a run behind the records of the chunk; none if the chunk does not take it.
    pub(super) fn extend(
        &mut self,
        (first, next): (u64, u64),
        bytes: &[u8],
        mark: u64,
    ) -> Option<Extended> {
        let is_small = bytes.len() < WHOLE && self.len() + bytes.len() <= CHUNK;
        // The unwritten records are all before a mark, or all behind it.
        let has_older = self.is_queued && self.mark != mark;
        let Data::Open(open) = &mut self.data else {
            return None;
        };
        if self.next != first || !is_small || has_older {
            return None;
        }
        open.extend_from_slice(bytes);
        (self.next, self.mark) = (next, mark);
        Some(match std::mem::replace(&mut self.is_queued, true) {
            true => Extended::Queued,
            false => Extended::Anew,
        })
    }
}

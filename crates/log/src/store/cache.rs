//! Recent records in memory, in chunks; those that are not written yet, too.
//!
//! Small runs are put together, so that many of them cost little more than their bytes. A chunk that was given away
//! keeps its memory until the last reader is done with it.

use bytes::{Bytes, BytesMut};

use super::Missing;
use super::record::Run;
use super::state::{Queued, State};

/// The size up to which small runs are put together.
const CHUNK: usize = 32 << 10;

/// The size from which on a run is a chunk of its own, and is not copied.
const WHOLE: usize = 16 << 10;

/// The size below which pieces are put together for a reader that wants more.
const WORTH_GIVING: usize = 256 << 10;

/// The memory of a chunk beside its bytes, about.
const OVERHEAD: usize = 160;

/// Consecutive records of one log.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) id: u64,
    pub(super) first: u64,
    pub(super) next: u64,
    data: Data,
    /// Records before this one are written.
    pub(super) written: u64,
    /// The bytes of these records.
    pub(super) written_bytes: usize,
    /// The chunk is in the writer's queue, or being written.
    pub(super) is_queued: bool,
    /// The unwritten records were appended behind this mark, and before the next.
    mark: u64,
}

#[derive(Debug)]
enum Data {
    /// More records may come.
    Open(BytesMut),
    Whole(Bytes),
}

impl Chunk {
    fn len(&self) -> usize {
        match &self.data {
            Data::Open(bytes) => bytes.len(),
            Data::Whole(bytes) => bytes.len(),
        }
    }

    fn cost(&self) -> usize {
        OVERHEAD
            + match &self.data {
                Data::Open(bytes) => bytes.capacity(),
                Data::Whole(bytes) => bytes.len(),
            }
    }

    pub(super) fn unwritten(&self) -> usize {
        self.len() - self.written_bytes
    }

    /// The bytes from `at` on. They are copied if more records may come behind them.
    pub(super) fn bytes_from(&self, at: usize) -> Bytes {
        match &self.data {
            Data::Open(bytes) => Bytes::copy_from_slice(bytes.get(at..).unwrap_or_default()),
            Data::Whole(bytes) => bytes.slice(at.min(bytes.len())..),
        }
    }

    /// Lets no more records come.
    fn close(&mut self) {
        if let Data::Open(bytes) = &mut self.data {
            let is_tight = bytes.len() * 4 >= bytes.capacity() * 3;
            self.data = Data::Whole(match is_tight {
                true => std::mem::take(bytes).freeze(),
                false => Bytes::copy_from_slice(bytes),
            });
        }
    }

    /// Whether a run can be put behind the records of the chunk.
    fn takes(&self, first: u64, bytes: usize, mark: u64) -> bool {
        matches!(self.data, Data::Open(_))
            && self.next == first
            && self.len() + bytes <= CHUNK
            && !(self.is_queued && self.mark != mark)
    }
}

impl State {
    /// Takes in a run. Runs below the floor are not kept: they are appended again behind a checkpoint that is older
    /// than the floor.
    pub(super) fn push(&mut self, log: u64, first: u64, count: u32, bytes: Bytes) {
        let entry = self.logs.entry(log).or_default();
        let next = first + u64::from(count);
        if entry.next == 0 {
            entry.next = first;
        }
        assert!(entry.next == first, "an append that leaves out positions");
        entry.next = next;
        if next <= entry.floor {
            entry.deleted_before = None;
            return;
        }
        let length = bytes.len();
        self.unwritten += length;
        let mark = self.mark;
        match entry.chunks.back_mut() {
            Some(last) if length < WHOLE && last.takes(first, length, mark) => {
                self.cached -= last.cost();
                if let Data::Open(open) = &mut last.data {
                    open.extend_from_slice(&bytes);
                }
                self.cached += last.cost();
                (last.next, last.mark) = (next, mark);
                if !last.is_queued {
                    last.is_queued = true;
                    let id = last.id;
                    self.queue.push_back(Queued::Chunk { log, id });
                }
            }
            _ => self.push_chunk(log, first, next, bytes),
        }
    }

    fn push_chunk(&mut self, log: u64, first: u64, next: u64, bytes: Bytes) {
        let data = match bytes.len() < WHOLE {
            true => Data::Open(BytesMut::from(&bytes[..])),
            false => Data::Whole(bytes),
        };
        let id = self.fresh_id();
        let chunk = Chunk {
            id,
            first,
            next,
            data,
            written: first,
            written_bytes: 0,
            is_queued: true,
            mark: self.mark,
        };
        let chunks = &mut self.logs.entry(log).or_default().chunks;
        if let Some(last) = chunks.back_mut() {
            self.cached -= last.cost();
            last.close();
            self.cached += last.cost();
        }
        self.cached += chunk.cost();
        self.chunks += 1;
        chunks.push_back(chunk);
        self.queue.push_back(Queued::Chunk { log, id });
        self.arrival.push_back((log, id));
    }

    /// A chunk, if it is still in memory.
    pub(super) fn chunk(&mut self, log: u64, id: u64) -> Option<&mut Chunk> {
        let chunks = &mut self.logs.get_mut(&log)?.chunks;
        let at = chunks.binary_search_by_key(&id, |chunk| chunk.id).ok()?;
        chunks.get_mut(at)
    }

    fn drop_chunk(&mut self, log: u64, id: u64) -> Option<Chunk> {
        let chunks = &mut self.logs.get_mut(&log)?.chunks;
        let at = chunks.binary_search_by_key(&id, |chunk| chunk.id).ok()?;
        let chunk = chunks.remove(at)?;
        self.cached -= chunk.cost();
        self.unwritten -= chunk.unwritten();
        self.chunks -= 1;
        Some(chunk)
    }

    /// Makes room: drops the chunks that came first, as long as they are written.
    pub(super) fn evict(&mut self) {
        while let Some((log, id)) = self.arrival.front().copied() {
            let is_over = self.cached > self.options.cache_bytes;
            match self.chunk(log, id) {
                Some(chunk) if chunk.is_queued || !is_over => break,
                Some(_) => drop(self.drop_chunk(log, id)),
                None => {}
            }
            self.arrival.pop_front();
        }
        // A chunk that stays for long must not keep the names of all that went behind it.
        if self.arrival.len() > 2 * self.chunks + 1_024 {
            let mut arrival = std::mem::take(&mut self.arrival);
            arrival.retain(|(log, id)| self.chunk(*log, *id).is_some());
            self.arrival = arrival;
        }
    }

    /// Drops chunks below a position from memory.
    pub(super) fn drop_below(&mut self, log: u64, floor: u64) {
        while let Some(entry) = self.logs.get(&log) {
            let first = entry.chunks.front().filter(|chunk| chunk.next <= floor);
            let Some(id) = first.map(|chunk| chunk.id) else {
                break;
            };
            self.drop_chunk(log, id);
        }
    }

    /// Gives up the oldest unwritten chunks while the disk fails and too much waits for it: they become gaps.
    pub(super) fn give_up_oldest(&mut self) {
        while self.is_failing && self.unwritten > self.options.unwritten_bytes {
            let is_chunk = |queued: &Queued| matches!(queued, Queued::Chunk { .. });
            let Some(at) = self.queue.iter().position(is_chunk) else {
                break;
            };
            let Some(Queued::Chunk { log, id }) = self.queue.remove(at) else {
                break;
            };
            let Some(chunk) = self.drop_chunk(log, id) else {
                continue;
            };
            if let Some(entry) = self.logs.get_mut(&log) {
                let from = chunk.written.max(entry.floor);
                entry.missing.add(from, chunk.next);
                self.counters.gaps += 1;
            }
        }
    }

    /// Runs with the records from `from` on: enough for `most` bytes, or one.
    pub(super) fn cached(&self, log: u64, from: u64, to: u64, most: usize) -> Vec<Run> {
        let mut found: Vec<Run> = Vec::new();
        let Some(entry) = self.logs.get(&log).filter(|entry| from >= entry.floor) else {
            return found;
        };
        let start = entry.chunks.partition_point(|chunk| chunk.next <= from);
        let (mut next, mut behind) = (from, 0);
        for chunk in entry.chunks.range(start..) {
            let is_enough = !found.is_empty() && behind >= most;
            if chunk.first > next || next >= to || is_enough {
                break;
            }
            if !found.is_empty() {
                behind += chunk.len();
            }
            let bytes = chunk.bytes_from(0);
            found.push(Run::trusted(log, chunk.first, chunk.next, bytes));
            next = chunk.next;
        }
        found
    }

    /// The gap of a log that a position is in.
    pub(super) fn gap(&self, log: u64, position: u64) -> Option<Missing> {
        let (from, to) = self.logs.get(&log)?.missing.at(position)?;
        Some(Missing { log, from, to })
    }
}

/// Makes one run of pieces that follow each other, as far as that is worth the copy.
pub(super) fn join(pieces: &[Run], from: u64, to: u64, most: usize) -> Option<Run> {
    let first = pieces.first()?.part(from, to, most)?;
    let has_more = first.next() < to && pieces.len() > 1 && pieces[0].next() == first.next();
    if !has_more || first.bytes().len() >= most.min(WORTH_GIVING) {
        return Some(first);
    }
    let mut bytes = BytesMut::with_capacity(most.min(2 << 20));
    bytes.extend_from_slice(first.bytes());
    let mut next = first.next();
    for piece in &pieces[1..] {
        let left = most.saturating_sub(bytes.len());
        let part = piece.part(next, to, left);
        let Some(part) = part.filter(|part| part.bytes().len() <= left) else {
            break;
        };
        bytes.extend_from_slice(part.bytes());
        next = part.next();
        if next < piece.next() {
            break;
        }
    }
    Some(Run::trusted(first.log(), from, next, bytes.freeze()))
}

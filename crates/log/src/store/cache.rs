//! Recent records in memory, in chunks; those that are not written yet, too.
//!
//! Small runs are put together, so that many of them cost little more than their bytes. A chunk that was given away
//! keeps its memory until the last reader is done with it.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Bytes, BytesMut};

use super::chunk::{Chunk, Extended, Part};
use super::record::Run;

/// The size below which pieces are put together for a reader that wants more.
const WORTH_GIVING: usize = 256 << 10;

/// The chunks of all logs, and the queue of those that have to be written.
#[derive(Debug, Default)]
pub(super) struct Cache {
    logs: BTreeMap<u64, VecDeque<Chunk>>,
    queue: VecDeque<Queued>,
    /// Chunks in the order in which they came; the first ones are dropped first.
    arrival: VecDeque<(u64, u64)>,
    chunks: usize,
    /// The memory of all chunks.
    cost: usize,
    unwritten: usize,
    ids: u64,
}

/// An item of the writer's queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Queued {
    /// A chunk of which something is not written.
    Chunk {
        /// The log.
        log: u64,
        /// The chunk.
        id: u64,
    },
    /// A mark: all appends before it are in front of it in the queue.
    Mark(u64),
}

/// The next thing for the writer.
#[derive(Debug)]
pub(super) enum Work {
    /// All appends before this mark are written.
    Mark(u64),
    Write(Unwritten),
}

/// Consecutive records of a log that wait to be written.
#[derive(Debug)]
pub(super) struct Unwritten {
    pub(super) log: u64,
    pub(super) first: u64,
    pub(super) next: u64,
    pub(super) bytes: Bytes,
    parts: Vec<Part>,
}

impl Cache {
    /// Takes in a run: `mark` is the newest mark.
    pub(super) fn push(&mut self, log: u64, (first, next): (u64, u64), bytes: Bytes, mark: u64) {
        self.unwritten += bytes.len();
        let chunks = self.logs.entry(log).or_default();
        if let Some(last) = chunks.back_mut() {
            let before = last.cost();
            let extended = last.extend((first, next), &bytes, mark);
            if extended.is_none() {
                last.close();
            }
            self.cost = self.cost - before + last.cost();
            match extended {
                Some(Extended::Anew) => {
                    let id = last.id();
                    return self.queue.push_back(Queued::Chunk { log, id });
                }
                Some(Extended::Queued) => return,
                None => {}
            }
        }
        self.ids += 1;
        let id = self.ids;
        let chunk = Chunk::new(id, (first, next), bytes, mark);
        self.cost += chunk.cost();
        self.chunks += 1;
        chunks.push_back(chunk);
        self.queue.push_back(Queued::Chunk { log, id });
        self.arrival.push_back((log, id));
    }

    /// Puts a mark behind all runs that came until now.
    pub(super) fn push_mark(&mut self, mark: u64) {
        self.queue.push_back(Queued::Mark(mark));
    }

    /// Whether so many bytes more may wait to be written, where no more than `most` should.
    pub(super) const fn has_room(&self, bytes: usize, most: usize) -> bool {
        self.unwritten == 0 || self.unwritten + bytes <= most
    }

    /// The memory of all chunks, in bytes, about.
    pub(super) const fn cost(&self) -> usize {
        self.cost
    }

    /// The bytes of all logs that wait to be written, or are being written.
    pub(super) const fn unwritten(&self) -> usize {
        self.unwritten
    }

    /// The bytes of a log that wait to be written, or are being written.
    pub(super) fn unwritten_of(&self, log: u64) -> u64 {
        let chunks = self.logs.get(&log).into_iter().flatten();
        chunks.map(|chunk| chunk.unwritten() as u64).sum()
    }

    /// Whether the writer has something to do.
    pub(super) fn has_work(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Takes the next thing out of the queue: of records no more than `most` bytes, or one chunk. The outcome has to be
    /// [noted](Self::on_written).
    pub(super) fn take(&mut self, most: usize) -> Option<Work> {
        let mut taken: Option<(u64, u64, u64)> = None;
        let (mut pieces, mut parts, mut length) = (Vec::new(), Vec::new(), 0);
        while let Some(queued) = self.queue.front().copied() {
            let (log, id) = match queued {
                Queued::Mark(_) if taken.is_some() => break,
                Queued::Mark(mark) => {
                    self.queue.pop_front();
                    return Some(Work::Mark(mark));
                }
                Queued::Chunk { log, id } => (log, id),
            };
            let Some(chunk) = self.chunk(log, id) else {
                self.queue.pop_front();
                continue;
            };
            if let Some((of, _, next)) = &mut taken {
                let follows = *of == log && *next == chunk.written();
                if !follows || length + chunk.unwritten() > most {
                    break;
                }
                *next = chunk.next();
            } else {
                taken = Some((log, chunk.written(), chunk.next()));
            }
            let (part, piece) = chunk.part();
            length += piece.len();
            parts.push(part);
            pieces.push(piece);
            self.queue.pop_front();
        }
        let (log, first, next) = taken?;
        Some(Work::Write(Unwritten {
            log,
            first,
            next,
            bytes: joined(pieces, length),
            parts,
        }))
    }

    /// Notes that records are written.
    pub(super) fn on_written(&mut self, records: &Unwritten) {
        let log = records.log;
        for part in records.parts.iter().rev() {
            let Some(chunk) = self.chunk(log, part.id) else {
                continue;
            };
            let more = chunk.on_written(part);
            let has_rest = chunk.is_queued();
            self.unwritten -= more;
            if has_rest {
                self.queue.push_front(Queued::Chunk { log, id: part.id });
            }
        }
    }

    /// Notes that records could not be written: they are the next again.
    pub(super) fn on_not_written(&mut self, records: &Unwritten) {
        let log = records.log;
        for part in records.parts.iter().rev() {
            self.queue.push_front(Queued::Chunk { log, id: part.id });
        }
    }

    /// Makes room: drops the chunks that came first, as long as they are written and more than `most` bytes are there.
    pub(super) fn evict(&mut self, most: usize) {
        while let Some((log, id)) = self.arrival.front().copied() {
            let is_over = self.cost > most;
            match self.chunk(log, id) {
                Some(chunk) if chunk.is_queued() || !is_over => break,
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
        while let Some(chunk) = self.logs.get(&log).and_then(VecDeque::front) {
            let id = chunk.id();
            if chunk.next() > floor {
                break;
            }
            self.drop_chunk(log, id);
        }
    }

    /// Drops the oldest chunk that waits to be written, and is not being written: returns its log, the first position
    /// that was not written, and the one behind the last.
    pub(super) fn give_up_oldest(&mut self) -> Option<(u64, u64, u64)> {
        loop {
            let is_chunk = |queued: &Queued| matches!(queued, Queued::Chunk { .. });
            let at = self.queue.iter().position(is_chunk)?;
            let Some(Queued::Chunk { log, id }) = self.queue.remove(at) else {
                return None;
            };
            if let Some(chunk) = self.drop_chunk(log, id) {
                return Some((log, chunk.written(), chunk.next()));
            }
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Self {
            ids: self.ids,
            ..Self::default()
        };
    }

    /// Runs with the records from `from` on: enough for `most` bytes, or one.
    pub(super) fn runs(&self, log: u64, from: u64, to: u64, most: usize) -> Vec<Run> {
        let mut found: Vec<Run> = Vec::new();
        let Some(chunks) = self.logs.get(&log) else {
            return found;
        };
        let start = chunks.partition_point(|chunk| chunk.next() <= from);
        let (mut next, mut behind) = (from, 0);
        for chunk in chunks.range(start..) {
            let is_enough = !found.is_empty() && behind >= most;
            if chunk.first() > next || next >= to || is_enough {
                break;
            }
            if !found.is_empty() {
                behind += chunk.len();
            }
            found.push(chunk.run(log));
            next = chunk.next();
        }
        found
    }

    /// A chunk, if it is still in memory.
    fn chunk(&mut self, log: u64, id: u64) -> Option<&mut Chunk> {
        let chunks = self.logs.get_mut(&log)?;
        let at = chunks.binary_search_by_key(&id, Chunk::id).ok()?;
        chunks.get_mut(at)
    }

    fn drop_chunk(&mut self, log: u64, id: u64) -> Option<Chunk> {
        let chunks = self.logs.get_mut(&log)?;
        let at = chunks.binary_search_by_key(&id, Chunk::id).ok()?;
        let chunk = chunks.remove(at)?;
        if chunks.is_empty() {
            self.logs.remove(&log);
        }
        self.cost -= chunk.cost();
        self.unwritten -= chunk.unwritten();
        self.chunks -= 1;
        Some(chunk)
    }
}

fn joined(mut pieces: Vec<Bytes>, length: usize) -> Bytes {
    if pieces.len() == 1 {
        return pieces.pop().unwrap_or_default();
    }
    let mut all = BytesMut::with_capacity(length);
    pieces.iter().for_each(|piece| all.extend_from_slice(piece));
    all.freeze()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The next records to be written: the first position, the one behind the last, and the bytes.
    fn next(cache: &mut Cache) -> (Unwritten, (u64, u64, usize)) {
        let Some(Work::Write(records)) = cache.take(1 << 20) else {
            panic!("no records are to be written");
        };
        let what = (records.first, records.next, records.bytes.len());
        (records, what)
    }

    #[test]
    fn records_that_could_not_be_written_are_the_next_again() {
        let mut cache = Cache::default();
        cache.push(7, (1, 3), vec![1_u8; 100].into(), 0);
        cache.push(7, (3, 4), vec![2_u8; WORTH_GIVING].into(), 0);
        let (records, what) = next(&mut cache);
        assert_eq!(what, (1, 4, 100 + WORTH_GIVING));
        assert!(!cache.has_work());
        cache.on_not_written(&records);
        let (records, again) = next(&mut cache);
        assert_eq!(again, what);
        assert_eq!(cache.unwritten(), 100 + WORTH_GIVING);
        cache.on_written(&records);
        assert_eq!((cache.unwritten(), cache.has_work()), (0, false));
        let cached = cache.runs(7, 2, 4, usize::MAX);
        assert_eq!(cached.len(), 2);
    }

    #[test]
    fn a_mark_is_behind_all_earlier_runs_and_ahead_of_later_ones() {
        let mut cache = Cache::default();
        cache.push(7, (1, 2), vec![1_u8; 10].into(), 0);
        cache.push_mark(1);
        // Though there is room for it, the run is not put into the chunk in front of the mark.
        cache.push(7, (2, 3), vec![1_u8; 20].into(), 1);
        assert_eq!(next(&mut cache).1, (1, 2, 10));
        assert!(matches!(cache.take(1), Some(Work::Mark(1))));
        assert_eq!(next(&mut cache).1, (2, 3, 20));
    }
}

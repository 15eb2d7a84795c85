//! The state of the store, in memory: the data about all logs, behind one lock that no thread holds while the disk
//! works.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::cache::Chunk;
use super::ranges::Ranges;
use super::segment::{Entry, Index};
use super::tails::Extent;
use super::{Missing, Options};

/// The floor of a log that was deleted.
pub(super) const DELETED: u64 = u64::MAX;

/// A file of a log.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    /// Tells this file from others that have or had its name.
    pub(super) id: u64,
    /// The position behind its last record.
    pub(super) next: u64,
    /// The bytes of its header and its records.
    pub(super) bytes: u64,
    /// The places of some of its records, once a reader needed them.
    pub(super) index: Option<Index>,
    /// The number of the last use of the index, among all uses.
    pub(super) used: u64,
    /// The place at which the last reader ended: the next one often begins there.
    pub(super) hint: Option<Entry>,
    /// A sync of the file failed: bytes that were written since the one before may be gone as soon as memory is short.
    pub(super) is_suspect: bool,
    /// A reader found bad records in the file.
    pub(super) is_damaged: bool,
}

impl Segment {
    pub(super) const fn new(id: u64, next: u64, bytes: u64) -> Self {
        Self {
            id,
            next,
            bytes,
            index: None,
            used: 0,
            hint: None,
            is_suspect: false,
            is_damaged: false,
        }
    }
}

/// A log.
#[derive(Debug)]
pub(super) struct Log {
    /// The position below which records may be gone.
    pub(super) floor: u64,
    /// The position of the next append; 0 until a state or an append tells it.
    pub(super) next: u64,
    /// The mark before which the log was deleted, if it was.
    pub(super) deleted_before: Option<u64>,
    /// Its files, by the position of their first record.
    pub(super) segments: BTreeMap<u64, Segment>,
    /// The file that gets new records.
    pub(super) active: Option<u64>,
    /// The file that [`fill`](super::Store::fill) writes to.
    pub(super) filler: Option<u64>,
    /// The positions that are neither in files nor wait to be.
    pub(super) missing: Ranges,
    /// The recent records, in memory.
    pub(super) chunks: VecDeque<Chunk>,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            floor: 1,
            next: 0,
            deleted_before: None,
            segments: BTreeMap::new(),
            active: None,
            filler: None,
            missing: Ranges::default(),
            chunks: VecDeque::new(),
        }
    }
}

impl Log {
    /// The segment with a position.
    pub(super) fn segment_of(&self, position: u64) -> Option<(u64, &Segment)> {
        let (first, segment) = self.segments.range(..=position).next_back()?;
        (position < segment.next).then_some((*first, segment))
    }

    /// A segment, if it is still the same file.
    pub(super) fn same(&mut self, first: u64, id: u64) -> Option<&mut Segment> {
        self.segments.get_mut(&first).filter(|found| found.id == id)
    }

    /// Has no more records written to a segment.
    pub(super) fn seal(&mut self, first: u64) {
        for open in [&mut self.active, &mut self.filler] {
            if *open == Some(first) {
                *open = None;
            }
        }
    }

    pub(super) const fn is_deleted(&self) -> bool {
        self.floor == DELETED
    }
}

/// An item of the writer's queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Queued {
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

/// The contents of the files when all before a mark was written.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    pub(super) logs: BTreeMap<u64, Vec<Extent>>,
    pub(super) gap: Option<Missing>,
}

/// Numbers for [`Status`](super::Status).
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Counters {
    pub(super) gaps: u64,
    pub(super) damaged: u64,
    pub(super) repaired: u64,
    pub(super) errors: u64,
}

/// The whole state.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) options: Options,
    pub(super) logs: BTreeMap<u64, Log>,
    pub(super) queue: VecDeque<Queued>,
    /// Chunks in the order in which they came; the first ones are dropped first.
    pub(super) arrival: VecDeque<(u64, u64)>,
    pub(super) chunks: usize,
    pub(super) cached: usize,
    pub(super) unwritten: usize,
    /// The newest mark. The unwritten records of a chunk are all before a mark, or all behind it.
    pub(super) mark: u64,
    pub(super) marks: BTreeMap<u64, Option<Snapshot>>,
    /// Segments with records that are not durable yet.
    pub(super) dirty: BTreeSet<(u64, u64)>,
    pub(super) are_names_dirty: bool,
    /// Logs with segments that are to be removed.
    pub(super) trimmed: BTreeSet<u64>,
    pub(super) are_floors_dirty: bool,
    /// The log that the writer is busy with.
    pub(super) in_flight: Option<u64>,
    pub(super) is_failing: bool,
    pub(super) is_stopping: bool,
    pub(super) last_error: Option<String>,
    pub(super) counters: Counters,
    /// The segments that have an index, the least recently used first.
    pub(super) indexes: BTreeMap<u64, (u64, u64)>,
    pub(super) uses: u64,
    pub(super) ids: u64,
}

impl State {
    /// A number that nothing else has.
    pub(super) fn fresh_id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    /// Forgets all but floors and counters.
    pub(super) fn reset(&mut self) {
        for log in self.logs.values_mut() {
            let (floor, deleted_before) = (log.floor, log.deleted_before);
            *log = Log {
                floor,
                deleted_before,
                ..Log::default()
            };
        }
        self.logs.retain(|_, log| log.floor > 1);
        self.queue.clear();
        self.arrival.clear();
        (self.chunks, self.cached, self.unwritten) = (0, 0, 0);
        self.marks.clear();
        self.dirty.clear();
        self.trimmed.clear();
        self.indexes.clear();
        self.are_names_dirty = true;
    }

    /// Takes a segment out of all data.
    pub(super) fn forget_segment(&mut self, log: u64, first: u64) -> Option<Segment> {
        self.dirty.remove(&(log, first));
        let entry = self.logs.get_mut(&log)?;
        entry.seal(first);
        let segment = entry.segments.remove(&first)?;
        self.indexes.remove(&segment.used);
        Some(segment)
    }

    /// Notes that the records of a segment from `from` on are gone.
    pub(super) fn lose(&mut self, log: u64, first: u64, id: u64, from: Entry) {
        let Some(entry) = self.logs.get_mut(&log) else {
            return;
        };
        let floor = entry.floor;
        let Some(segment) = entry.same(first, id) else {
            return;
        };
        let next = segment.next;
        (segment.next, segment.bytes) = (from.position, from.offset);
        (segment.index, segment.hint) = (None, None);
        let used = segment.used;
        entry.missing.add(from.position.max(floor), next);
        entry.seal(first);
        self.indexes.remove(&used);
        self.counters.gaps += 1;
        if from.position == first {
            self.forget_segment(log, first);
        }
    }

    /// Gives a segment an index, and takes one from another if there are too many.
    pub(super) fn index(&mut self, log: u64, first: u64, id: u64, index: Index) {
        if let Some(segment) = self.logs.get_mut(&log).and_then(|l| l.same(first, id)) {
            segment.index = Some(index);
            self.touch(log, first);
        }
    }

    /// Notes a use of an index.
    pub(super) fn touch(&mut self, log: u64, first: u64) {
        self.uses += 1;
        let uses = self.uses;
        let segment = self.logs.get_mut(&log);
        let Some(segment) = segment.and_then(|log| log.segments.get_mut(&first)) else {
            return;
        };
        self.indexes.remove(&segment.used);
        segment.used = uses;
        self.indexes.insert(uses, (log, first));
        if self.indexes.len() > self.options.indexes {
            let oldest = self.indexes.pop_first().map(|(_, of)| of);
            let segment = oldest.and_then(|(log, first)| {
                let log = self.logs.get_mut(&log)?;
                log.segments.get_mut(&first)
            });
            if let Some(segment) = segment {
                segment.index = None;
            }
        }
    }

    /// The contents of all files, now that all before a mark is written.
    pub(super) fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot {
            logs: BTreeMap::new(),
            gap: None,
        };
        for (log, entry) in &self.logs {
            let extent = |(first, segment): (&u64, &Segment)| Extent {
                first: *first,
                id: segment.id,
                next: segment.next,
                bytes: segment.bytes,
            };
            let extents: Vec<Extent> = entry.segments.iter().map(extent).collect();
            if !extents.is_empty() {
                snapshot.logs.insert(*log, extents);
            }
            if let Some((from, to)) = entry.missing.iter().next() {
                let log = *log;
                snapshot.gap.get_or_insert(Missing { log, from, to });
            }
        }
        snapshot
    }

    /// Raises the floor of a log. Records below it go, from memory at once and from the disk soon.
    pub(super) fn raise(&mut self, log: u64, floor: u64) {
        let entry = self.logs.entry(log).or_default();
        if floor <= entry.floor {
            return;
        }
        entry.floor = floor;
        entry.missing.remove(0, floor);
        let has_to_go = entry.segments.iter().next();
        if has_to_go.is_some_and(|(_, segment)| segment.next <= floor) {
            self.trimmed.insert(log);
        }
        self.are_floors_dirty = true;
        self.drop_below(log, floor);
    }

    pub(super) fn fail(&mut self, what: &str, error: &std::io::Error) {
        self.counters.errors += 1;
        self.last_error = Some(format!("{what}: {error}"));
    }
}

//! The state of the store, in memory: the data about all logs, behind one lock that no thread holds while the disk
//! works.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::cache::Cache;
use super::marks::{Marks, Snapshot};
use super::ranges::Ranges;
use super::segment::{Entry, Index};
use super::tails::Extent;
use super::uses::Uses;
use super::{Missing, Options, Status};

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

/// The failures and losses so far, for the operator.
#[derive(Debug, Default)]
pub(super) struct Troubles {
    gaps: u64,
    damaged: u64,
    repaired: u64,
    errors: u64,
    last_error: Option<String>,
}

impl Troubles {
    /// Records were given up, or lost.
    pub(super) const fn on_gap(&mut self) {
        self.gaps += 1;
    }

    /// A file was found to be damaged.
    pub(super) const fn on_damage(&mut self) {
        self.damaged += 1;
    }

    /// A damaged file was replaced.
    pub(super) const fn on_repair(&mut self) {
        self.repaired += 1;
    }

    /// The disk failed.
    pub(super) fn on_error(&mut self, what: &str, error: &std::io::Error) {
        self.errors += 1;
        self.last_error = Some(format!("{what}: {error}"));
    }

    /// The last failure of the disk; empty if there was none.
    pub(super) fn last_error(&self) -> String {
        self.last_error.clone().unwrap_or_default()
    }

    /// A state of the store with these numbers, and no others.
    pub(super) fn status(&self) -> Status {
        Status {
            gaps: self.gaps,
            damaged: self.damaged,
            repaired: self.repaired,
            errors: self.errors,
            last_error: self.last_error.clone(),
            ..Status::default()
        }
    }
}

/// The whole state: logs and their files, and the records that are not on the disk yet.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) options: Options,
    pub(super) logs: BTreeMap<u64, Log>,
    pub(super) cache: Cache,
    pub(super) marks: Marks,
    uses: Uses,
    pub(super) troubles: Troubles,
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
    /// The number that a file got last.
    ids: u64,
}

impl State {
    /// The state of a store without logs. The first new file gets the number behind `ids`.
    pub(super) fn new(options: Options, ids: u64) -> Self {
        Self {
            options,
            ids,
            ..Self::default()
        }
    }

    /// A number that no other file has.
    pub(super) const fn fresh_id(&mut self) -> u64 {
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
        self.cache.clear();
        self.marks.clear();
        self.dirty.clear();
        self.trimmed.clear();
        self.uses.clear();
        self.are_names_dirty = true;
    }

    /// Takes a segment out of all data.
    pub(super) fn forget_segment(&mut self, log: u64, first: u64) -> Option<Segment> {
        self.dirty.remove(&(log, first));
        let entry = self.logs.get_mut(&log)?;
        entry.seal(first);
        let segment = entry.segments.remove(&first)?;
        self.uses.forget(segment.used);
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
        self.uses.forget(used);
        self.troubles.on_gap();
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
        let segment = self.logs.get_mut(&log);
        let Some(segment) = segment.and_then(|log| log.segments.get_mut(&first)) else {
            return;
        };
        segment.used = self.uses.note(segment.used, (log, first));
        let oldest = self.uses.drop_oldest(self.options.indexes);
        let segment = oldest.and_then(|(log, first)| {
            let log = self.logs.get_mut(&log)?;
            log.segments.get_mut(&first)
        });
        if let Some(segment) = segment {
            segment.index = None;
        }
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
        self.cache.drop_below(log, floor);
    }

    /// Whether an append of so many bytes need not wait.
    pub(super) const fn has_room(&self, bytes: usize) -> bool {
        let most = self.options.unwritten_bytes;
        self.cache.has_room(bytes, most) || self.is_failing || self.is_stopping
    }

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
        let mark = self.marks.newest();
        self.cache.push(log, (first, next), bytes, mark);
    }

    /// Makes room in memory.
    pub(super) fn evict(&mut self) {
        self.cache.evict(self.options.cache_bytes);
    }

    /// Gives up the oldest unwritten chunks while the disk fails and too much waits for it: they become gaps.
    pub(super) fn give_up_oldest(&mut self) {
        while self.is_failing && self.cache.unwritten() > self.options.unwritten_bytes {
            let Some((log, from, next)) = self.cache.give_up_oldest() else {
                break;
            };
            if let Some(entry) = self.logs.get_mut(&log) {
                entry.missing.add(from.max(entry.floor), next);
                self.troubles.on_gap();
            }
        }
    }
}

/// The contents of all files, now that all before a mark is written.
pub(super) fn snapshot(logs: &BTreeMap<u64, Log>) -> Snapshot {
    let mut snapshot = Snapshot {
        logs: BTreeMap::new(),
        gap: None,
    };
    for (log, entry) in logs {
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

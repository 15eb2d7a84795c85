//! The writer: it brings appended records to the disk, and removes trimmed files.

use std::io;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use rota_storage::acceptor::{Access, LogDisk, LogFile};

use super::cache::{Unwritten, Work};
use super::segment::{HEADER, Index, header, name};
use super::state::{Segment, State, snapshot};
use super::{Inner, Writing, lock};

/// The bytes that are written at once, at most.
const BATCH: usize = 1 << 20;

/// The time until a failed write is tried again.
const RETRY: Duration = Duration::from_millis(100);

/// Records for the disk, and their place there.
struct Batch {
    records: Unwritten,
    target: Target,
}

/// The place for records.
#[derive(Clone, Copy)]
pub(super) enum Target {
    /// Behind the records of a segment.
    Behind { first: u64, id: u64, offset: u64 },
    /// In a new segment.
    New { id: u64 },
}

/// The result of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// There was nothing to do.
    Idle,
    /// Something was written, or a mark was reached.
    Done,
    /// The disk failed.
    Failed,
}

impl State {
    /// Takes the next batch, and tells whether marks on the way to it were reached for anybody.
    fn take_batch(&mut self) -> (Option<Batch>, bool) {
        let most = BATCH.min(self.options.segment_bytes as usize);
        let mut has_reached = false;
        loop {
            match self.cache.take(most) {
                None => return (None, has_reached),
                Some(Work::Mark(mark)) => {
                    has_reached |= self.marks.reach(mark, || snapshot(&self.logs));
                }
                Some(Work::Write(records)) => {
                    let (log, first, length) = (records.log, records.first, records.bytes.len());
                    self.in_flight = Some(log);
                    let target = self.target(log, first, length, |log| log.active);
                    return (Some(Batch { records, target }), has_reached);
                }
            }
        }
    }

    /// The place for records, given the file that may be written to.
    pub(super) fn target(
        &mut self,
        log: u64,
        first: u64,
        length: usize,
        open: impl Fn(&super::state::Log) -> Option<u64>,
    ) -> Target {
        let most = self.options.segment_bytes;
        let behind = self.logs.get(&log).and_then(|entry| {
            let at = open(entry)?;
            let segment = entry.segments.get(&at)?;
            let fits = segment.bytes + length as u64 <= most || segment.bytes == HEADER;
            (segment.next == first && fits).then_some(Target::Behind {
                first: at,
                id: segment.id,
                offset: segment.bytes,
            })
        });
        behind.unwrap_or_else(|| Target::New {
            id: self.fresh_id(),
        })
    }

    /// Notes records that were written.
    pub(super) fn extend(
        &mut self,
        log: u64,
        first: u64,
        next: u64,
        bytes: &[u8],
        target: Target,
    ) -> Option<u64> {
        let every = self.options.index_bytes;
        let entry = self.logs.entry(log).or_default();
        let at = match target {
            Target::Behind { first, id, offset } => {
                let segment = entry.same(first, id)?;
                segment.next = next;
                segment.bytes = offset + bytes.len() as u64;
                if let Some(index) = &mut segment.index {
                    index.note_run(bytes, offset, every);
                }
                first
            }
            Target::New { id } => {
                let segment = Segment::new(id, next, HEADER + bytes.len() as u64);
                entry.segments.insert(first, segment);
                let mut index = Index::default();
                index.note_run(bytes, HEADER, every);
                self.index(log, first, id, index);
                self.are_names_dirty = true;
                first
            }
        };
        self.dirty.insert((log, at));
        if let Some(entry) = self.logs.get(&log)
            && next <= entry.floor
        {
            self.trimmed.insert(log);
        }
        Some(at)
    }

    fn wrote(&mut self, batch: &Batch) {
        self.in_flight = None;
        self.is_failing = false;
        let (records, target) = (&batch.records, batch.target);
        self.cache.on_written(records);
        let (log, first, next) = (records.log, records.first, records.next);
        let at = self.extend(log, first, next, &records.bytes, target);
        if let (Some(at), Target::New { .. }) = (at, target)
            && let Some(entry) = self.logs.get_mut(&log)
        {
            entry.active = Some(at);
        }
        if let (None, Some(entry)) = (at, self.logs.get_mut(&log)) {
            // The file was found to be gone meanwhile.
            entry.missing.add(first.max(entry.floor), next);
        }
        self.evict();
    }

    fn wrote_not(&mut self, batch: &Batch, error: &io::Error) {
        self.in_flight = None;
        self.is_failing = true;
        self.troubles.on_error("write", error);
        self.cache.on_not_written(&batch.records);
        self.give_up_oldest();
    }
}

impl<D: LogDisk> Inner<D> {
    /// Writes records to their place.
    pub(super) fn put(&self, log: u64, first: u64, bytes: &[u8], target: Target) -> io::Result<()> {
        match target {
            Target::Behind { first, id, offset } => {
                let file = self.files.get_or_open(&self.disk, id, &name(log, first))?;
                file.write_at(offset, bytes)
            }
            Target::New { id } => {
                let name = name(log, first);
                let mut all = header(log, first, id).to_vec();
                all.extend_from_slice(bytes);
                let file = lock(&self.disk).open(&name, Access::Create)?;
                let written = file.write_at(0, &all);
                match &written {
                    Ok(()) => self.files.put(id, file),
                    // The rest of the file takes room that may be short. If the file stays it does no harm.
                    Err(_) => drop(lock(&self.disk).remove(&name)),
                }
                written
            }
        }
    }

    /// Notes that nothing waits: records that could not be written were trimmed, and whether the disk works is not
    /// known any more.
    fn on_nothing_left(&self) {
        let mut state = lock(&self.state);
        if state.is_failing && state.cache.unwritten() == 0 {
            state.is_failing = false;
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Leaves a file that cannot be written to: the failure may be of that file alone.
    fn leave(&self, batch: &Batch, error: &io::Error) {
        let Target::Behind { first, id, .. } = batch.target else {
            return;
        };
        if error.kind() == io::ErrorKind::NotFound {
            self.lose_file(batch.records.log, first, id);
        } else if let Some(entry) = lock(&self.state).logs.get_mut(&batch.records.log) {
            entry.seal(first);
        }
    }

    /// Does the next work: removes trimmed files, and writes one batch.
    pub(super) fn step(&self) -> Step {
        let _turn = lock(&self.turn);
        let is_trim_due = Instant::now() >= *lock(&self.next_trim);
        if is_trim_due {
            let removed = self.remove_trimmed();
            let every = lock(&self.state).options.trim_every;
            let wait = match (removed, self.writing) {
                (Err(_), Writing::Thread) => every.max(RETRY),
                _ => every,
            };
            *lock(&self.next_trim) = Instant::now() + wait;
        }
        let (batch, has_reached) = lock(&self.state).take_batch();
        if has_reached {
            self.changed.notify_all();
        }
        let Some(batch) = batch else {
            self.on_nothing_left();
            return if has_reached { Step::Done } else { Step::Idle };
        };
        let Unwritten {
            log, first, bytes, ..
        } = &batch.records;
        let put = self.put(*log, *first, bytes, batch.target);
        let mut state = lock(&self.state);
        let step = match &put {
            Ok(()) => {
                state.wrote(&batch);
                Step::Done
            }
            Err(error) => {
                state.wrote_not(&batch, error);
                drop(state);
                self.leave(&batch, error);
                state = lock(&self.state);
                Step::Failed
            }
        };
        drop(state);
        self.changed.notify_all();
        step
    }

    /// Removes files that are all below their log's floor.
    fn remove_trimmed(&self) -> io::Result<()> {
        let mut victims = Vec::new();
        {
            let mut state = lock(&self.state);
            let trimmed = std::mem::take(&mut state.trimmed);
            for log in &trimmed {
                let Some(entry) = state.logs.get(log) else {
                    continue;
                };
                let below = |segment: &(&u64, &Segment)| segment.1.next <= entry.floor;
                let below = entry.segments.iter().take_while(below);
                victims.extend(below.map(|(first, _)| (*log, *first)));
            }
        }
        if victims.is_empty() {
            return Ok(());
        }
        let removed = self.write_floors().and_then(|()| self.remove(&victims));
        if let Err(error) = &removed {
            let mut state = lock(&self.state);
            state.troubles.on_error("removal", error);
            state.trimmed.extend(victims.iter().map(|(log, _)| *log));
        }
        // Without a spare file only time is lost, on a disk that is full.
        let _ = self.make_spare();
        removed
    }

    fn remove(&self, victims: &[(u64, u64)]) -> io::Result<()> {
        for (log, first) in victims {
            let disk = lock(&self.disk);
            match disk.remove(&name(*log, *first)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            // With the disk's lock, so that no thread gives a new file the name in between.
            let gone = {
                let mut state = lock(&self.state);
                state.are_names_dirty = true;
                state.forget_segment(*log, *first)
            };
            if let Some(segment) = gone {
                self.files.close(segment.id);
            }
        }
        Ok(())
    }

    /// The loop of the writer's thread.
    pub(super) fn write_on(&self) {
        while self.rest(self.step()) {}
    }

    /// Waits until there is something to do; returns whether there will be.
    fn rest(&self, step: Step) -> bool {
        let retry_at = Instant::now() + RETRY;
        let mut state = lock(&self.state);
        loop {
            let now = Instant::now();
            let due = match step {
                // New appends must not have a failed write tried again sooner.
                Step::Failed => Some(retry_at),
                _ if state.cache.has_work() => Some(now),
                _ if !state.trimmed.is_empty() => Some(*lock(&self.next_trim)),
                _ => None,
            };
            if state.is_stopping && (!state.cache.has_work() || step == Step::Failed) {
                return false;
            }
            state = match due {
                Some(due) if due <= now => return true,
                Some(due) => {
                    let waited = self.work.wait_timeout(state, due - now);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    let waited = self.work.wait(state);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
    }
}

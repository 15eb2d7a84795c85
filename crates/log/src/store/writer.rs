//! The writer: it brings appended records to the disk, and removes trimmed files.

use std::io;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use rota_storage::acceptor::{Access, LogDisk, LogFile};

use super::segment::{HEADER, Index, header, name};
use super::state::{Queued, Segment, State};
use super::{Inner, Writing, lock};

/// The bytes that are written at once, at most.
const BATCH: usize = 1 << 20;

/// The time until a failed write is tried again.
const RETRY: Duration = Duration::from_millis(100);

/// Consecutive records of a log that wait to be written.
struct Batch {
    log: u64,
    first: u64,
    next: u64,
    bytes: Bytes,
    /// The chunks, and the ends of their written parts after this batch: position and bytes.
    chunks: Vec<(u64, u64, usize)>,
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
    /// Takes the next batch out of the queue. Marks on the way to it are done.
    fn take_batch(&mut self) -> Option<Batch> {
        let most = BATCH.min(self.options.segment_bytes as usize);
        let mut taken: Option<(u64, u64, u64)> = None;
        let (mut pieces, mut chunks, mut length) = (Vec::new(), Vec::new(), 0);
        while let Some(queued) = self.queue.front().copied() {
            let (log, id) = match queued {
                Queued::Mark(_) if taken.is_some() => break,
                Queued::Mark(mark) => {
                    self.queue.pop_front();
                    if self.marks.contains_key(&mark) {
                        let snapshot = self.snapshot();
                        self.marks.insert(mark, Some(snapshot));
                    }
                    continue;
                }
                Queued::Chunk { log, id } => (log, id),
            };
            let Some(chunk) = self.chunk(log, id) else {
                self.queue.pop_front();
                continue;
            };
            if let Some((of, _, next)) = &mut taken {
                let follows = *of == log && *next == chunk.written;
                if !follows || length + chunk.unwritten() > most {
                    break;
                }
                *next = chunk.next;
            } else {
                taken = Some((log, chunk.written, chunk.next));
            }
            let piece = chunk.bytes_from(chunk.written_bytes);
            chunks.push((id, chunk.next, chunk.written_bytes + piece.len()));
            length += piece.len();
            pieces.push(piece);
            self.queue.pop_front();
        }
        let (log, first, next) = taken?;
        self.in_flight = Some(log);
        Some(Batch {
            log,
            first,
            next,
            bytes: joined(pieces, length),
            chunks,
            target: self.target(log, first, length, |log| log.active),
        })
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
        for (id, next, bytes) in batch.chunks.iter().rev() {
            let Some(chunk) = self.chunk(batch.log, *id) else {
                continue;
            };
            let more = bytes - chunk.written_bytes;
            (chunk.written, chunk.written_bytes) = (*next, *bytes);
            let has_rest = chunk.unwritten() > 0;
            chunk.is_queued = has_rest;
            self.unwritten -= more;
            if has_rest {
                let (log, id) = (batch.log, *id);
                self.queue.push_front(Queued::Chunk { log, id });
            }
        }
        let (log, first) = (batch.log, batch.first);
        let at = self.extend(log, first, batch.next, &batch.bytes, batch.target);
        if let (Some(at), Target::New { .. }) = (at, batch.target)
            && let Some(entry) = self.logs.get_mut(&log)
        {
            entry.active = Some(at);
        }
        if let (None, Some(entry)) = (at, self.logs.get_mut(&log)) {
            // The file was found to be gone meanwhile.
            entry.missing.add(first.max(entry.floor), batch.next);
        }
        self.evict();
    }

    fn wrote_not(&mut self, batch: &Batch, error: &io::Error) {
        self.in_flight = None;
        self.is_failing = true;
        self.fail("write", error);
        for (id, ..) in batch.chunks.iter().rev() {
            let (log, id) = (batch.log, *id);
            self.queue.push_front(Queued::Chunk { log, id });
        }
        self.give_up_oldest();
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
        if state.is_failing && state.unwritten == 0 {
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
            self.lose_file(batch.log, first, id);
        } else if let Some(entry) = lock(&self.state).logs.get_mut(&batch.log) {
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
        let (marks, batch) = {
            let mut state = lock(&self.state);
            let marks = state.marks.values().flatten().count();
            let batch = state.take_batch();
            (state.marks.values().flatten().count() != marks, batch)
        };
        if marks {
            self.changed.notify_all();
        }
        let Some(batch) = batch else {
            self.on_nothing_left();
            return if marks { Step::Done } else { Step::Idle };
        };
        let put = self.put(batch.log, batch.first, &batch.bytes, batch.target);
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
            state.fail("removal", error);
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
                _ if !state.queue.is_empty() => Some(now),
                _ if !state.trimmed.is_empty() => Some(*lock(&self.next_trim)),
                _ => None,
            };
            if state.is_stopping && (state.queue.is_empty() || step == Step::Failed) {
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

//! Records of logs: on the disk, and of late in memory.
//!
//! All replicas apply the same appends in the same order, and acceptors have them until a replica's next checkpoint. So the
//! thread that applies never waits for a disk: a [`Store`] takes runs into memory, and its own thread writes them to files, one
//! log's behind each other, in segments. Nothing is synced until a checkpoint is taken ([`Store::mark`], [`Store::sync`]).
//!
//! | state of the disk | consequence |
//! |---|---|
//! | it is slow | appends wait, once much is unwritten |
//! | it is full, or writes fail | they are tried again. Meanwhile memory is kept in bounds: the oldest runs are given
//! up, and are missing. No checkpoint is completed until they are [filled](Store::fill) in from another replica |
//! | a sync fails | the checkpoint fails. The next one writes the file anew, from the part of it that can be read; the
//! rest is missing |
//! | power is lost | records that no checkpoint has are replayed by acceptors. [`Store::begin`] cuts them off |
//! | a record is damaged, or a file is too short | the record is never given away: readers are told, and can
//! [replace](Store::repair) the file |
//! | a file is gone | its records are missing |
//!
//! # What this does not do
//!
//! The store looks for damage that nobody reads only where it is [told to](Scrub). It keeps records that a reader may still want, not those that
//! the state names: a reader compares positions with the state's own first one.

mod begin;
mod cache;
mod chunk;
mod error;
mod files;
mod fill;
mod floors;
mod marks;
mod ranges;
mod read;
pub mod record;
mod repair;
mod scrub;
mod seek;
mod segment;
mod state;
mod sync;
mod tails;
mod uses;
mod writer;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{fmt, io};

use bytes::Bytes;
use rota_storage::acceptor::{FileDir, LogDisk};

pub use error::{Missing, ReadError, Status};
pub use record::{
    HEADER_BYTES, PAYLOAD_LIMIT, RecordRef, Records, Run, RunBuilder, RunError, encode,
};
pub use repair::Repair;
pub use scrub::Scrub;
pub use sync::Mark;
pub use tails::Tails;
pub use writer::Step;

use files::Files;
use state::{DELETED, State};

/// The thread that writes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Writing {
    /// A thread of the store.
    #[default]
    Thread,
    /// The caller of [`Store::step`], and any caller that would wait for the writer: so that tests have one order of
    /// all calls.
    Caller,
}

/// The use of memory and disk by a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// The size of a file from which on it gets no more records. Trimmed records go in whole files.
    pub segment_bytes: u64,
    /// Memory for recent records of all logs together. Readers of those need no disk.
    pub cache_bytes: usize,
    /// The bytes that may wait to be written: with more, appends wait, too, or old runs are given up if the disk fails.
    /// They come on top of `cache_bytes`, at most.
    pub unwritten_bytes: usize,
    /// The distance, in bytes of a file, of records whose places are kept in memory: a read goes over as much before it
    /// begins.
    pub index_bytes: u64,
    /// The number of files with such places, at most: those that are read.
    pub indexes: usize,
    /// The time between two removals of files, at least. The floors are made durable each time.
    pub trim_every: Duration,
    /// The thread that writes.
    pub writing: Writing,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            segment_bytes: 32 << 20,
            cache_bytes: 200 << 20,
            unwritten_bytes: 64 << 20,
            index_bytes: 64 << 10,
            indexes: 1_000,
            trim_every: Duration::from_millis(250),
            writing: Writing::Thread,
        }
    }
}

/// Takes a lock. A thread that panicked with the lock has left nothing half changed: the data are changed by whole
/// steps.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The data that the threads share. Locks are taken in this order: `turn`, `filling`, `floors`, `disk`, `state`; and
/// `files` and `next_trim` last.
struct Inner<D: LogDisk> {
    /// Held by the thread that writes queued runs, and by one during which none may be written.
    turn: Mutex<()>,
    /// Held by the thread that fills in missing records.
    filling: Mutex<()>,
    /// Held by the thread that writes the floors.
    floors: Mutex<()>,
    disk: Mutex<D>,
    state: Mutex<State>,
    files: Files<D::File>,
    next_trim: Mutex<Instant>,
    /// Wakes the writer: there is something to do.
    work: Condvar,
    /// Wakes all other threads: something was written, or failed.
    changed: Condvar,
    store: u64,
    writing: Writing,
}

/// The records of all logs of a replica.
///
/// One thread applies commands: [`append`](Self::append), [`trim`](Self::trim), [`delete`](Self::delete),
/// [`mark`](Self::mark). Any other thread may read, fill in and repair; [`sync`](Self::sync) is for one that may take its time.
/// [`begin`](Self::begin) comes first of all, and whenever the replica takes in a state.
///
/// When it is dropped it writes what it has, if the disk lets it, and syncs nothing.
pub struct Store<D: LogDisk + 'static = FileDir> {
    inner: Arc<Inner<D>>,
    writer: Option<JoinHandle<()>>,
}

impl<D: LogDisk + 'static> Store<D> {
    /// Opens the store in a directory that is there. No file with records is looked into.
    ///
    /// # Errors
    /// `WouldBlock` when another process has it; else the system's own.
    pub fn open(mut disk: D, options: Options) -> io::Result<Self> {
        disk.lock()?;
        // No file has a number that another process has given.
        let ids = getrandom::u64().map_err(io::Error::from)? >> 1;
        let mut state = State::new(options.clone(), ids);
        match floors::read_floors(&disk)? {
            Some(floors) => {
                for (log, floor) in floors {
                    let entry = state.logs.entry(log).or_default();
                    entry.floor = floor;
                    entry.deleted_before = (floor == DELETED).then_some(0);
                }
            }
            // Trimmed records then count as lost, and another replica says that they are trimmed.
            None => state.troubles.on_damage(),
        }
        let fresh = getrandom::u64().map_err(io::Error::from)?;
        let disk = Mutex::new(disk);
        let store = floors::store_id(&disk, fresh)?;
        let inner = Arc::new(Inner {
            turn: Mutex::new(()),
            filling: Mutex::new(()),
            floors: Mutex::new(()),
            disk,
            state: Mutex::new(state),
            files: Files::new(),
            next_trim: Mutex::new(Instant::now()),
            work: Condvar::new(),
            changed: Condvar::new(),
            store,
            writing: options.writing,
        });
        // Without a spare file only time is lost, on a disk that is full.
        let _ = inner.make_spare();
        let writer = match options.writing {
            Writing::Caller => None,
            Writing::Thread => {
                let inner = Arc::clone(&inner);
                let builder = std::thread::Builder::new().name("rota-log-writer".into());
                Some(builder.spawn(move || inner.write_on())?)
            }
        };
        Ok(Self { inner, writer })
    }

    /// Takes in a run of `count` encoded records, of which the first has position `first`.
    ///
    /// The call waits while too much is unwritten, but not for a disk that fails.
    ///
    /// # Panics
    /// When the run does not follow the last one.
    pub fn append(&self, log: u64, first: u64, count: u32, bytes: Bytes) {
        let inner = &self.inner;
        let mut state = lock(&inner.state);
        while !state.has_room(bytes.len()) {
            state = inner.wait(state);
        }
        state.push(log, first, count, bytes);
        state.give_up_oldest();
        state.evict();
        drop(state);
        inner.work.notify_one();
    }

    /// Records of a log below `first` may go.
    pub fn trim(&self, log: u64, first: u64) {
        lock(&self.inner.state).raise(log, first);
        self.inner.work.notify_one();
        // A thread that waits for room may have it now.
        self.inner.changed.notify_all();
    }

    /// Deletes a log for ever: appends to it come only as a replay of old ones.
    pub fn delete(&self, log: u64) {
        {
            let mut state = lock(&self.inner.state);
            state.raise(log, DELETED);
            let mark = state.marks.newest();
            let entry = state.logs.entry(log).or_default();
            entry.deleted_before = Some(mark);
        }
        self.inner.work.notify_one();
        self.inner.changed.notify_all();
    }

    /// Notes that no replica begins with a checkpoint from before `mark` any more. The store forgets data about deleted
    /// logs that only such checkpoints need.
    pub fn settle(&self, mark: Mark) {
        let mut state = lock(&self.inner.state);
        let in_flight = state.in_flight;
        let before = state.logs.len();
        state.logs.retain(|log, entry| {
            let is_old = entry.deleted_before.is_some_and(|at| at < mark.0);
            !(entry.is_deleted() && is_old && entry.segments.is_empty() && in_flight != Some(*log))
        });
        state.are_floors_dirty |= state.logs.len() != before;
    }

    /// Does the next work of the writer, with [`Writing::Caller`].
    pub fn step(&self) -> Step {
        self.inner.step()
    }

    /// The number of this store: [`Tails::store`] of its own.
    pub fn id(&self) -> u64 {
        self.inner.store
    }

    /// The state of the store, for its operator.
    pub fn status(&self) -> Status {
        let state = lock(&self.inner.state);
        let mut status = Status {
            cached_bytes: state.cache.cost(),
            unwritten_bytes: state.cache.unwritten(),
            is_failing: state.is_failing,
            ..state.troubles.status()
        };
        for entry in state.logs.values() {
            status.segments += entry.segments.len();
            let bytes = entry.segments.values().map(|segment| segment.bytes);
            status.disk_bytes += bytes.sum::<u64>();
            let missing = entry.missing.iter().map(|(from, to)| to - from);
            status.missing_records += missing.sum::<u64>();
        }
        status
    }
}

impl<D: LogDisk> Inner<D> {
    /// Waits until something was written or failed, or does it.
    fn wait<'a>(&'a self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        match self.writing {
            Writing::Thread => {
                let state = self.changed.wait(state);
                state.unwrap_or_else(PoisonError::into_inner)
            }
            Writing::Caller => {
                drop(state);
                self.step();
                lock(&self.state)
            }
        }
    }
}

impl<D: LogDisk + 'static> fmt::Debug for Store<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.status();
        f.debug_struct("Store").field("status", &status).finish()
    }
}

impl<D: LogDisk + 'static> Drop for Store<D> {
    fn drop(&mut self) {
        lock(&self.inner.state).is_stopping = true;
        self.inner.work.notify_all();
        self.inner.changed.notify_all();
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has said so itself.
            let _ = writer.join();
        }
    }
}

//! The thread that an acceptor's log is in.
//!
//! Requests and fetches lie on a desk until it takes them ([`Keeper`]), and what has become of them until the ring's
//! thread does. Nothing on it grows without bound.

use rota_core::contract::{Input, LogId, PersistError, PersistId};
use rota_storage::acceptor::{DiskLog, LogDisk, Mode, SyncDone};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::bell::Bell;
use super::log_keeper::{Keeper, Syncer};
use super::votes::Change;

/// Bytes of requests that may be without an answer. An engine has to have less under way.
pub(super) const WAITING_LIMIT: usize = 64 << 20;

/// Fetches that may be without an answer.
pub(super) const FETCH_LIMIT: usize = 256;

/// How long the end of a driver waits for the disk. What is being written then was promised to nobody.
const PATIENCE: Duration = Duration::from_secs(2);

/// A fetch that waits: which log, from which position on, and the one behind the last.
pub(super) type Wanted = (LogId, u64, u64);

#[derive(Debug)]
pub(super) struct Request {
    pub(super) id: PersistId,
    pub(super) changes: Vec<Change>,
    pub(super) bytes: usize,
}

#[derive(Debug, Default)]
pub(super) struct Desk {
    /// Oldest first.
    pub(super) requests: Vec<Request>,
    /// Of those and of those that are being written.
    pub(super) bytes: usize,
    pub(super) fetches: VecDeque<Wanted>,
    /// A sync beside the commits has ended.
    pub(super) synced: Option<SyncDone>,
    /// All requests up to this one are durable.
    pub(super) durable: Option<PersistId>,
    pub(super) failed: Option<PersistError>,
    pub(super) fetched: Vec<Input>,
    /// The thread waits for something to be put here.
    pub(super) sleeps: bool,
    pub(super) stop: bool,
    ended: bool,
}

#[derive(Debug)]
pub(super) struct Shared {
    desk: Mutex<Desk>,
    pub(super) changed: Condvar,
    pub(super) bell: Arc<Bell>,
}

impl Shared {
    pub(super) fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts something on the desk, and wakes who waits for it.
    pub(super) fn put(&self, put: impl FnOnce(&mut Desk)) {
        let mut desk = self.desk();
        put(&mut desk);
        let sleeps = std::mem::take(&mut desk.sleeps);
        drop(desk);
        if sleeps {
            self.changed.notify_all();
        }
    }
}

/// What has become of requests.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// All up to this one are durable.
    pub(super) durable: Option<PersistId>,
    /// No later one ever will be.
    pub(super) failed: Option<PersistError>,
    pub(super) fetched: Vec<Input>,
}

/// A log, and the thread that it is in.
pub(super) struct LogThread {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl LogThread {
    pub(super) fn start<D: LogDisk + 'static>(
        log: DiskLog<D>,
        mode: Mode,
        bell: Arc<Bell>,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            desk: Mutex::default(),
            changed: Condvar::new(),
            bell,
        });
        let syncer = match mode {
            Mode::Async { interval, .. } => Some(Syncer::start(&shared, interval)?),
            Mode::Sync | Mode::Memory { .. } => None,
        };
        let end = End(Arc::clone(&shared));
        let thread = std::thread::Builder::new()
            .name("rota-votes".to_owned())
            .spawn(move || Keeper::new(log, syncer, &end.0).work())?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Starts a request, unless there are too many.
    pub(super) fn request(&self, id: PersistId, changes: Vec<Change>) -> Result<(), PersistError> {
        let bytes = changes.iter().map(Change::bytes).sum();
        let mut fits = true;
        self.shared.put(|desk| {
            fits = desk.bytes.saturating_add(bytes) <= WAITING_LIMIT;
            if fits {
                desk.bytes += bytes;
                desk.requests.push(Request { id, changes, bytes });
            }
        });
        match fits {
            true => Ok(()),
            false => Err(PersistError::Io(format!(
                "more than {WAITING_LIMIT} bytes wait for the disk"
            ))),
        }
    }

    /// Starts a fetch, unless there are too many.
    pub(super) fn fetch(&self, log: LogId, range: &Range<u64>) -> bool {
        let mut fits = true;
        self.shared.put(|desk| {
            fits = desk.fetches.len() < FETCH_LIMIT;
            if fits {
                desk.fetches.push_back((log, range.start, range.end));
            }
        });
        fits
    }

    /// What has become of requests and fetches.
    pub(super) fn take(&self) -> Taken {
        let mut desk = self.shared.desk();
        if desk.ended && desk.failed.is_none() {
            // It panicked, and that was shown.
            desk.failed = Some(PersistError::Io("the log's thread has ended".to_owned()));
        }
        Taken {
            durable: desk.durable,
            failed: desk.failed.clone(),
            fetched: std::mem::take(&mut desk.fetched),
        }
    }
}

impl Drop for LogThread {
    fn drop(&mut self) {
        self.shared.put(|desk| desk.stop = true);
        let (desk, _) = self
            .shared
            .changed
            .wait_timeout_while(self.shared.desk(), PATIENCE, |desk| !desk.ended)
            .unwrap_or_else(PoisonError::into_inner);
        if !desk.ended {
            tracing::warn!("the disk does not answer; the acceptor's log is still in use");
            return;
        }
        drop(desk);
        // A panic has been shown already.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl fmt::Debug for LogThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogThread").finish_non_exhaustive()
    }
}

/// Says that the thread has ended, also when it panics.
struct End(Arc<Shared>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.desk().ended = true;
        self.0.changed.notify_all();
        self.0.bell.ring();
    }
}

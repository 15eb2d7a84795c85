//! An acceptor's log, in memory or on disk, as a driver has it.

use rota_core::contract::{Input, LogId, NodeId, PersistError, PersistId};
use rota_storage::acceptor::{LogDisk, MemoryLog, Mode};
use std::ops::Range;
use std::sync::Arc;

use super::DriverError;
use super::disk_faults::{DiskFaults, FaultyDir};
use super::log_keeper::FETCH_BYTES;
use super::log_opening::{self, Found, Opener};
use super::log_thread::{LogHealth, LogThread, Taken, Use};
use super::votes::{self, Change, Step};
use super::waker::Waker;
use crate::config::{NodeConfig, VoteStorage};

/// Votes that are kept in memory, as many as the paper's acceptors keep (Multi-Ring Paxos, 2014, on its implementation).
const IN_MEMORY: usize = 15_000;

/// The state of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Kept {
    /// The log's thread will say.
    Later,
    Now,
    Failed(PersistError),
}

#[derive(Debug)]
enum Log {
    Memory(MemoryLog),
    Disk(LogThread),
}

/// The log of an engine of the Paxos family.
#[derive(Debug)]
pub(super) struct Acceptor {
    log: Log,
    /// No request is taken until the log is open again.
    failed: Option<PersistError>,
    /// The log is given up, and will be open again.
    reopens: bool,
}

impl Acceptor {
    /// The log that the configuration of node `me` names, and what is in it; `None` if it names none.
    pub(super) fn open(
        config: &NodeConfig,
        me: NodeId,
        waker: &Arc<Waker>,
    ) -> Result<Option<(Self, Found)>, DriverError> {
        let Some(storage) = config.vote_storage() else {
            return Ok(None);
        };
        let mode = match storage {
            VoteStorage::Memory => return Ok(Some((Self::in_memory(), Found::default()))),
            VoteStorage::Async => Mode::ASYNC,
            VoteStorage::Sync => Mode::Sync,
        };
        let faults = config.faults.as_ref();
        let opened = match faults.and_then(|faults| DiskFaults::new(faults, me)) {
            None => {
                let opener = log_opening::opener_of(config, me, mode, |dir| dir)?;
                Self::on_disk(opener, mode, waker)
            }
            Some(faults) => {
                let faulty = move |dir| FaultyDir {
                    dir,
                    faults: Arc::clone(&faults),
                };
                let opener = log_opening::opener_of(config, me, mode, faulty)?;
                Self::on_disk(opener, mode, waker)
            }
        };
        opened.map(Some)
    }

    pub(super) fn in_memory() -> Self {
        Self::of(Log::Memory(MemoryLog::new(IN_MEMORY)))
    }

    const fn of(log: Log) -> Self {
        Self {
            log,
            failed: None,
            reopens: false,
        }
    }

    /// A log that this opens, in a thread of its own, and what it holds.
    pub(super) fn on_disk<D: LogDisk + 'static>(
        mut opener: Opener<D>,
        mode: Mode,
        waker: &Arc<Waker>,
    ) -> Result<(Self, Found), DriverError> {
        let (log, found) = log_opening::open(&mut opener)?;
        let thread = LogThread::start(log, opener, mode, Arc::clone(waker));
        let thread = thread.map_err(DriverError::System)?;
        Ok((Self::of(Log::Disk(thread)), found))
    }

    /// Gives the log up. A log on disk is open again when [`take`](Self::take) says so; one in memory is open at once,
    /// and is returned as it was found.
    pub(super) fn reopen(&mut self) -> Option<Found> {
        self.failed = None;
        match &mut self.log {
            Log::Memory(log) => {
                *log = MemoryLog::new(IN_MEMORY);
                return Some(Found::default());
            }
            // Once is enough.
            Log::Disk(_) if self.reopens => {}
            Log::Disk(thread) => {
                tracing::warn!(
                    "the acceptor's log is given up: this node votes for nothing until it is open again"
                );
                self.reopens = true;
                thread.reopen();
            }
        }
        None
    }

    /// Whether the log is given up, and not open again.
    pub(super) const fn reopens(&self) -> bool {
        self.reopens
    }

    /// Starts a request.
    pub(super) fn request(&mut self, id: PersistId, changes: Vec<Change>) -> Kept {
        debug_assert!(
            !self.reopens,
            "nothing can be asked of a log that is not open"
        );
        if self.reopens {
            let error = "the log is not open again yet".to_owned();
            return Kept::Failed(PersistError::Io(error));
        }
        if let Some(error) = &self.failed {
            return Kept::Failed(error.clone());
        }
        match &mut self.log {
            Log::Memory(log) => {
                keep_in_memory(log, &changes);
                Kept::Now
            }
            Log::Disk(thread) => match thread.request(id, &changes) {
                Ok(()) => Kept::Later,
                Err(error) => {
                    tracing::error!(
                        ?error,
                        "this node votes for nothing until its log has been opened again"
                    );
                    self.failed = Some(error.clone());
                    Kept::Failed(error)
                }
            },
        }
    }

    /// Starts a fetch. An answer that is there at once is handed back.
    pub(super) fn fetch(&mut self, log: LogId, range: Range<u64>) -> Option<Input> {
        let records = match &mut self.log {
            Log::Disk(thread) if thread.fetch(log, &range) => return None,
            Log::Disk(_) => Vec::new(),
            Log::Memory(kept) => {
                // All that is asked for of it is kept from the first on, and was a vote when it came.
                votes::read_some(kept, log, &range, FETCH_BYTES).unwrap_or_default()
            }
        };
        Some(Input::Fetched {
            log,
            from: range.start,
            to: range.end,
            records,
        })
    }

    /// The state of the disk, for people; `None` without one.
    pub(super) fn health(&self) -> Option<LogHealth> {
        match &self.log {
            Log::Memory(_) => None,
            Log::Disk(thread) => {
                let mut health = thread.health();
                if self.failed.is_some() {
                    health.is = Use::Failed;
                }
                Some(health)
            }
        }
    }

    /// The results of requests and fetches.
    pub(super) fn take(&mut self) -> Taken {
        let Log::Disk(thread) = &self.log else {
            return Taken::default();
        };
        let taken = thread.take();
        if taken.failed.is_some() {
            self.failed.clone_from(&taken.failed);
        }
        self.reopens &= taken.reopened.is_none();
        taken
    }
}

fn keep_in_memory(log: &mut MemoryLog, changes: &[Change]) {
    for change in changes {
        match change.step() {
            Step::Put(record) => log.append(&[record]),
            Step::Trim(first) => log.trim(first),
        }
    }
}

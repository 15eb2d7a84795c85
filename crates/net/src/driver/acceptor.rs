//! An acceptor's log, in memory or on disk, as a driver has it.

use bytes::Bytes;
use rota_core::contract::{Input, LogId, NodeId, PersistError, PersistId};
use rota_storage::acceptor::{
    DiskLog, Identity, LogDisk, LogOpenError, LogOptions, MemoryLog, Mode,
};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::DriverError;
use super::bell::Bell;
use super::log_keeper::FETCH_BYTES;
use super::log_thread::{LogHealth, LogThread, Taken};
use super::votes::{self, Change, Step};
use crate::config::{NodeConfig, VoteStorage};

/// So much is read at once when a node starts.
const START_BYTES: usize = 1 << 20;

/// Votes that are kept in memory, as many as the paper's acceptors keep (Multi-Ring Paxos, 2014, on its implementation).
const IN_MEMORY: usize = 15_000;

/// A cluster has one ring with votes.
const RING: LogId = LogId(1);

/// What was found on disk: log, position, contents.
type Found = Vec<(LogId, u64, Bytes)>;

/// What has become of a request.
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
    /// No request is taken any more.
    failed: Option<PersistError>,
}

impl Acceptor {
    /// The log that the configuration of node `me` names, and what is in it; `None` if it names none.
    pub(super) fn open(
        config: &NodeConfig,
        me: NodeId,
        bell: &Arc<Bell>,
    ) -> Result<Option<(Self, Found)>, DriverError> {
        let Some(storage) = config.vote_storage() else {
            return Ok(None);
        };
        let mode = match storage {
            VoteStorage::Memory => return Ok(Some((Self::in_memory(), Vec::new()))),
            VoteStorage::Async => Mode::ASYNC,
            VoteStorage::Sync => Mode::Sync,
        };
        let path = config.votes_directory(me).ok_or(DriverError::NoVotes)?;
        make_directory(&path).map_err(DriverError::Votes)?;
        let mut options = LogOptions::new(Identity {
            cluster: config.cluster,
            node: me,
            log: RING,
        });
        options.mode = mode;
        let log = DiskLog::open(path, options).map_err(DriverError::Votes)?;
        Self::on_disk(log, mode, bell).map(Some)
    }

    pub(super) fn in_memory() -> Self {
        Self {
            log: Log::Memory(MemoryLog::new(IN_MEMORY)),
            failed: None,
        }
    }

    /// A log that is open, in a thread of its own, and what it holds.
    pub(super) fn on_disk<D: LogDisk + 'static>(
        mut log: DiskLog<D>,
        mode: Mode,
        bell: &Arc<Bell>,
    ) -> Result<(Self, Found), DriverError> {
        let found = votes::read_all(&mut log, START_BYTES).map_err(DriverError::ReadVotes)?;
        let thread = LogThread::start(log, mode, Arc::clone(bell)).map_err(DriverError::System)?;
        let this = Self {
            log: Log::Disk(thread),
            failed: None,
        };
        Ok((this, found))
    }

    /// Starts a request.
    pub(super) fn request(&mut self, id: PersistId, changes: Vec<Change>) -> Kept {
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
                        "this node votes for nothing any more until it is restarted"
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

    /// How the disk does; `None` without one.
    pub(super) fn health(&self) -> Option<LogHealth> {
        match &self.log {
            Log::Memory(_) => None,
            Log::Disk(thread) => {
                let mut health = thread.health();
                health.failed |= self.failed.is_some();
                Some(health)
            }
        }
    }

    /// What has become of requests and fetches.
    pub(super) fn take(&mut self) -> Taken {
        let Log::Disk(thread) = &self.log else {
            return Taken::default();
        };
        let taken = thread.take();
        if taken.failed.is_some() {
            self.failed.clone_from(&taken.failed);
        }
        taken
    }
}

/// Only the last part of the path: the state directory may be a mount that is missing.
fn make_directory(path: &Path) -> Result<(), LogOpenError> {
    let made = match std::fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.and_then(|()| match path.parent() {
            // Its name has to be durable before anything in it is.
            Some(parent) => File::open(parent)?.sync_all(),
            None => Ok(()),
        }),
    };
    made.map_err(|error| LogOpenError::Io {
        path: path.to_owned(),
        doing: "make the directory",
        error,
    })
}

fn keep_in_memory(log: &mut MemoryLog, changes: &[Change]) {
    for change in changes {
        match change.step() {
            Step::Put(record) => log.append(&[record]),
            Step::Trim(first) => log.trim(first),
        }
    }
}

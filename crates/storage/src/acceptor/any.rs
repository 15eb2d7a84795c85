//! A log as the configuration wants it.

use std::path::PathBuf;
use std::time::Duration;

use super::dir::RealFile;
use super::error::{AppendError, FetchError, LogOpenError};
use super::fetch::Fetched;
use super::log::DiskLog;
use super::memory::MemoryLog;
use super::options::{LogOptions, Mode};
use super::record::{Record, RecordRef};
use super::sync::{SyncDone, SyncJob};

/// An acceptor's log, in memory or on disk. Its methods are those of [`DiskLog`]; in memory there is nothing to
/// wait for.
#[derive(Debug)]
pub enum AcceptorLog {
    /// It ends with the process.
    Memory(MemoryLog),
    /// In a directory.
    Disk(Box<DiskLog>),
}

impl AcceptorLog {
    /// Opens the log in this directory, which is not looked at in [`Mode::Memory`].
    ///
    /// # Errors
    /// [`LogOpenError`].
    pub fn open(path: PathBuf, options: LogOptions) -> Result<Self, LogOpenError> {
        Ok(match options.mode {
            Mode::Memory { instances } => Self::Memory(MemoryLog::new(instances)),
            Mode::Async { .. } | Mode::Sync => Self::Disk(Box::new(DiskLog::open(path, options)?)),
        })
    }

    /// See [`DiskLog::first`].
    pub fn first(&self) -> u64 {
        match self {
            Self::Memory(log) => log.first(),
            Self::Disk(log) => log.first(),
        }
    }

    /// See [`DiskLog::last`].
    pub fn last(&self) -> Option<u64> {
        match self {
            Self::Memory(log) => log.last(),
            Self::Disk(log) => log.last(),
        }
    }

    /// See [`DiskLog::state`].
    pub fn state(&self) -> Vec<Record> {
        match self {
            Self::Memory(log) => log.state(),
            Self::Disk(log) => log.state(),
        }
    }

    /// See [`DiskLog::append`].
    ///
    /// # Errors
    /// [`AppendError`].
    pub fn append(&mut self, records: &[RecordRef<'_>]) -> Result<(), AppendError> {
        match self {
            Self::Memory(log) => log.append(records),
            Self::Disk(log) => {
                log.append(records)?;
            }
        }
        Ok(())
    }

    /// See [`DiskLog::trim`].
    ///
    /// # Errors
    /// [`AppendError`].
    pub fn trim(&mut self, first: u64) -> Result<(), AppendError> {
        match self {
            Self::Memory(log) => log.trim(first),
            Self::Disk(log) => {
                log.trim(first)?;
            }
        }
        Ok(())
    }

    /// See [`DiskLog::fetch`].
    ///
    /// # Errors
    /// [`FetchError`].
    pub fn fetch(&mut self, first: u64, last: u64, bytes: usize) -> Result<Fetched, FetchError> {
        match self {
            Self::Memory(log) => log.fetch(first, last, bytes),
            Self::Disk(log) => log.fetch(first, last, bytes),
        }
    }

    /// See [`DiskLog::commit`].
    ///
    /// # Errors
    /// [`AppendError`].
    pub fn commit(&mut self) -> Result<(), AppendError> {
        self.on_disk(Ok(()), DiskLog::commit)
    }

    /// See [`DiskLog::maintain`].
    ///
    /// # Errors
    /// [`AppendError`].
    pub fn maintain(&mut self) -> Result<bool, AppendError> {
        self.on_disk(Ok(false), DiskLog::maintain)
    }

    /// See [`DiskLog::settle`].
    ///
    /// # Errors
    /// [`AppendError`].
    pub fn settle(&mut self) -> Result<(), AppendError> {
        self.on_disk(Ok(()), DiskLog::settle)
    }

    /// See [`DiskLog::sync_due`].
    pub fn sync_due(&self, since: Duration) -> bool {
        match self {
            Self::Memory(_) => false,
            Self::Disk(log) => log.sync_due(since),
        }
    }

    /// See [`DiskLog::start_sync`].
    ///
    /// # Errors
    /// [`AppendError`].
    pub fn start_sync(&mut self) -> Result<Option<SyncJob<RealFile>>, AppendError> {
        self.on_disk(Ok(None), DiskLog::start_sync)
    }

    /// See [`DiskLog::finish_sync`].
    ///
    /// # Errors
    /// [`AppendError`].
    pub fn finish_sync(&mut self, done: SyncDone) -> Result<(), AppendError> {
        self.on_disk(Ok(()), |log| log.finish_sync(done))
    }

    /// See [`DiskLog::close`].
    ///
    /// # Errors
    /// [`AppendError`].
    pub fn close(self) -> Result<(), AppendError> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Disk(log) => log.close(),
        }
    }

    fn on_disk<T>(&mut self, in_memory: T, on_disk: impl FnOnce(&mut DiskLog) -> T) -> T {
        match self {
            Self::Memory(_) => in_memory,
            Self::Disk(log) => on_disk(log),
        }
    }
}

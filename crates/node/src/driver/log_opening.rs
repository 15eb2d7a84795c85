//! Opening an acceptor's log: when a node starts, and when it was given up.
//!
//! A log in which something has failed, or on a disk that has been silent for too long, is of no use any more: nobody knows
//! what of the last requests is on the disk. Read from the beginning it is as good as after a restart of the node, so that
//! is what is done, as soon as the disk lets it, in the log's own thread: reading takes its time.

use bytes::Bytes;
use rota_core::contract::{LogId, NodeId};
use rota_paxos::state_key;
use rota_storage::acceptor::{
    DiskLog, FileDir, Identity, LogDisk, LogOpenError, LogOptions, Mode, boot_id,
};
use rota_storage::{LifeFile, StoreError};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::DriverError;
use super::helper::Shared;
use super::log_keeper::GivenUp;
use super::log_thread::Orders;
use super::votes;
use crate::config::NodeConfig;

/// The bytes that are read at once.
const READ_BYTES: usize = 1 << 20;

/// A cluster has one ring with votes.
const RING: LogId = LogId(1);

/// The first pause after an opening that failed. It doubles with each.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest one. A log that fails again sooner than this after it was opened waits, too, before the next attempt.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The contents of a log that has just been opened.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Log, position, contents.
    pub(super) records: Vec<(LogId, u64, Bytes)>,
    /// See [`DiskLog::lost_some`].
    pub(super) lost_some: bool,
}

/// Opens a log, each time it is called.
pub(super) type Opener<D> = Box<dyn FnMut() -> Result<DiskLog<D>, DriverError> + Send>;

/// Opens a log and reads all of it.
pub(super) fn open<D: LogDisk>(opener: &mut Opener<D>) -> Result<(DiskLog<D>, Found), DriverError> {
    let mut log = opener()?;
    let found = Found {
        records: votes::read_all(&mut log, READ_BYTES).map_err(DriverError::ReadVotes)?,
        lost_some: log.lost_some(),
    };
    if found.lost_some {
        tracing::warn!(
            "votes that others were told of may be missing here: the machine has lost its power, or the disk has failed, where \
             `storage = \"async\"` does not wait for it; this node begins as another acceptor"
        );
    }
    Ok((log, found))
}

/// The time at which a log was opened again, and the number of failures soon after that.
#[derive(Debug, Default)]
pub(super) struct Past {
    opened: Option<Instant>,
    /// One after the other.
    short_lives: u32,
}

impl Past {
    /// The pause before the next attempt: without it, a disk on which each beginning soon ends would be read all the
    /// time. A disk that has only been silent has taken its time.
    fn pause(&mut self, failed: bool) -> Duration {
        let is_soon = |opened: Instant| opened.elapsed() < LONGEST_PAUSE;
        if !failed || !self.opened.is_some_and(is_soon) {
            self.short_lives = 0;
            return Duration::ZERO;
        }
        self.short_lives += 1;
        let doubled = 2_u32.saturating_pow(self.short_lives - 1);
        FIRST_PAUSE.saturating_mul(doubled).min(LONGEST_PAUSE)
    }
}

/// Opens a log that was given up, as soon as that can be done, and puts what is in it on the desk. `None` when the node ends.
pub(super) fn open_again<D: LogDisk>(
    opener: &mut Opener<D>,
    past: &mut Past,
    shared: &Shared<Orders>,
    end: GivenUp,
) -> Option<DiskLog<D>> {
    let (began, mut said) = (Instant::now(), None);
    let (mut pause, mut next) = (past.pause(end != GivenUp::Silent), FIRST_PAUSE);
    loop {
        if shared.wait(Some(pause), |_| true).stop {
            return None;
        }
        let opened = open(opener).map_err(|error| error.to_string());
        let opened = opened.and_then(|(mut log, found)| {
            if end == GivenUp::Full {
                // The log would fail again with the next segment.
                log.make_room().map_err(|error| error.to_string())?;
            }
            Ok((log, found))
        });
        match opened {
            Ok((log, found)) => {
                let (records, took) = (found.records.len(), began.elapsed());
                tracing::info!(records, ?took, "the acceptor's log is open again");
                past.opened = Some(Instant::now());
                let mut desk = shared.desk();
                desk.given_up = false;
                desk.reopened = Some(found);
                desk.openings += 1;
                drop(desk);
                shared.waker.ring();
                return Some(log);
            }
            Err(error) => {
                // Attempts are many, and the error is the same for long.
                if said.as_ref() != Some(&error) {
                    tracing::error!(
                        error,
                        "the acceptor's log cannot be opened again; it is tried once in a while"
                    );
                }
                said = Some(error);
                (pause, next) = (next, (2 * next).min(LONGEST_PAUSE));
            }
        }
    }
}

/// The log in the directory that the configuration of node `me` names, on the disk that `disk` makes of it.
pub(super) fn opener_of<D: LogDisk>(
    config: &NodeConfig,
    me: NodeId,
    mode: Mode,
    disk: impl Fn(FileDir) -> D + Send + 'static,
) -> Result<Opener<D>, DriverError> {
    let path = config.votes_directory(me).ok_or(DriverError::NoVotes)?;
    let mut options = LogOptions::new(Identity {
        cluster: config.cluster,
        node: me,
        log: RING,
    });
    options.mode = mode;
    options.boot_id = boot_id();
    options.name_key = Some(state_key::STORE);
    let mut directory = Directory {
        path,
        options,
        lives: None,
    };
    Ok(Box::new(move || directory.open(&disk)))
}

/// A log's directory, and the file beside it that says how often it was opened.
struct Directory {
    path: PathBuf,
    options: LogOptions,
    /// Open, and so not to be had by another process.
    lives: Option<LifeFile>,
}

impl Directory {
    fn open<D: LogDisk>(
        &mut self,
        disk: &impl Fn(FileDir) -> D,
    ) -> Result<DiskLog<D>, DriverError> {
        make_directory(&self.path).map_err(DriverError::Votes)?;
        let mut path = self.path.clone().into_os_string();
        path.push(".life");
        let path = PathBuf::from(path);
        // A file with which anything fails has to be opened again, too.
        let mut file = match self.lives.take() {
            Some(file) => file,
            None => {
                let node = self.options.identity.node;
                LifeFile::open(path.clone(), node).map_err(DriverError::State)?
            }
        };
        self.options.least_life = file.lives();
        let disk = disk(FileDir::new(self.path.clone()));
        let opened = DiskLog::open_on(disk, self.options.clone());
        let log = opened.map_err(DriverError::Votes)?;
        // Before anything is promised in this life.
        file.store(log.life()).map_err(|error| {
            let error = match error {
                StoreError::NoSpace(error) | StoreError::Io(error) => error,
                StoreError::TooLong(_) | StoreError::Failed => io::Error::other(error.to_string()),
            };
            let doing = "write it";
            DriverError::Votes(LogOpenError::Io { path, doing, error })
        })?;
        self.lives = Some(file);
        Ok(log)
    }
}

/// Only the last part of the path: the state directory may be a mount that is missing. Votes have bodies of messages in
/// them: they are for their owner only.
fn make_directory(path: &Path) -> Result<(), LogOpenError> {
    let made = match DirBuilder::new().mode(0o700).create(path) {
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn votes_are_for_their_owner_only() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("node-1.votes");
        make_directory(&path).expect("there is none");
        make_directory(&path).expect("it is there");
        let mode = std::fs::metadata(&path).expect("it is there").mode();
        assert_eq!(mode & 0o7777, 0o700);
    }

    #[test]
    fn a_log_that_fails_soon_again_is_left_alone_for_longer_and_longer() {
        let mut past = Past::default();
        assert_eq!(past.pause(true), Duration::ZERO);
        past.opened = Some(Instant::now());
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(past.pause(true), Duration::from_secs(seconds));
        }
        assert_eq!(past.pause(false), Duration::ZERO);
        assert_eq!(past.pause(true), FIRST_PAUSE);
        past.opened = Instant::now().checked_sub(LONGEST_PAUSE);
        assert_eq!(past.pause(true), Duration::ZERO);
    }
}

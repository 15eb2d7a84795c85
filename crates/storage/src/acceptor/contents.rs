//! All of a log that nobody has open, read without writing to it: for an operator who has nothing else left.

use std::io;
use std::path::PathBuf;

use super::dir::{Access, FileDir, LogDisk};
use super::error::LogOpenError;
use super::header::Identity;
use super::mark::Run;
use super::memory::MemoryLog;
use super::options::boot_id;
use super::record::{Record, RecordRef};
use super::survey::{end_of, survey};

/// The contents of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contents {
    /// The owner of the log.
    pub identity: Identity,
    /// The number of times that the log was opened.
    pub life: u64,
    /// Whether something that was answered may be missing: see [`super::DiskLog::lost_some`]. This also holds for a log
    /// that is read on another machine, if answers did not wait for the disk and it was not closed in order.
    pub lost_some: bool,
    /// The state by key, ascending.
    pub state: Vec<Record>,
    /// Votes and skips, by instance. None overlaps another.
    pub votes: Vec<Record>,
}

/// Reads the log in this directory. Nothing of it is changed, but for the file that is locked meanwhile.
///
/// # Errors
/// [`LogOpenError`], as if it were opened: also where anything is damaged that was durable.
pub fn read_all(path: PathBuf) -> Result<Contents, LogOpenError> {
    read_all_on(FileDir::new(path))
}

/// The same on any disk.
///
/// # Errors
/// [`LogOpenError`].
pub fn read_all_on<D: LogDisk>(mut disk: D) -> Result<Contents, LogOpenError> {
    if !disk.has_directory() {
        return Err(LogOpenError::NoDirectory(disk.path().to_owned()));
    }
    let path = disk.path().to_owned();
    disk.lock().map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => LogOpenError::InUse(path.clone()),
        _ => LogOpenError::Io {
            path: path.clone(),
            doing: "lock it",
            error,
        },
    })?;
    let mut log = MemoryLog::new(usize::MAX);
    let mut take = |_, record: RecordRef<'_>| log.append(&[record]);
    let found = survey(&disk, Access::Read, &mut take)?;
    if let Some(damage) = found.damage.into_iter().next() {
        return Err(LogOpenError::Damaged(damage));
    }
    let Some((_, mark)) = found.mark else {
        return Err(LogOpenError::Lost(path));
    };
    let now = Run {
        boot: boot_id(),
        is_async: false,
    };
    let votes = log.fetch(log.first(), u64::MAX, usize::MAX);
    Ok(Contents {
        identity: mark.identity,
        life: mark.life,
        lost_some: mark.may_lack_some(now, end_of(found.segments.last())),
        state: found.sticky.of_caller(),
        // From the first that is kept on, so none can be missing.
        votes: votes.map_or_else(|_| Vec::new(), |fetched| fetched.records),
    })
}

//! The errors of an acceptor's log.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::header::Identity;

/// A place in a file that is not as it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// The offset in the file.
    pub offset: u64,
    /// The damage, in words.
    pub what: &'static str,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, offset, what } = self;
        write!(f, "{}: {what} at offset {offset}", file.display())
    }
}

/// Why a log cannot be used. The acceptor must not take part with it.
#[derive(Debug)]
pub enum LogOpenError {
    /// The directory is not there. It is not made: a mount that is missing looks the same.
    NoDirectory(PathBuf),
    /// Another process uses it.
    InUse(PathBuf),
    /// There is no log, though there was one.
    Lost(PathBuf),
    /// A log of another cluster, acceptor or ring.
    WrongOwner {
        /// The file.
        path: PathBuf,
        /// The owner of the log.
        found: Identity,
        /// The owner that wanted to use it.
        wanted: Identity,
    },
    /// Written by a later version of this program.
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u16,
    },
    /// Something that was durable is not there any more.
    Damaged(Damage),
    /// An older copy of the log was put back: it was opened more often than it says.
    Older {
        /// The path of the log.
        path: PathBuf,
        /// The number of openings that the log says.
        found: u64,
        /// The number of openings that there must have been, at least.
        wanted: u64,
    },
    /// Segments of that many bytes are not possible.
    SegmentBytes(u64),
    /// The system does not let it be read, written or made durable.
    Io {
        /// The file.
        path: PathBuf,
        /// The operation that failed, in words.
        doing: &'static str,
        /// The error of the system.
        error: io::Error,
    },
}

impl fmt::Display for LogOpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDirectory(path) => write!(
                f,
                "{}: the directory does not exist: make it, or mount what belongs there",
                path.display()
            ),
            Self::InUse(path) => write!(
                f,
                "{}: in use by another process: does this node run twice?",
                path.display()
            ),
            Self::Lost(path) => write!(
                f,
                "{}: there is no log, though this acceptor has had one: what it has promised is not known, so it \
                 must not vote under its name any more; restore the directory, or add the node anew",
                path.display()
            ),
            Self::WrongOwner {
                path,
                found,
                wanted,
            } => write!(
                f,
                "{}: the log of {found}, and this is {wanted}: give each its own directory",
                path.display()
            ),
            Self::Version { path, found } => write!(
                f,
                "{}: has format {found}, which a later version wrote: use that version",
                path.display()
            ),
            Self::Damaged(damage) => write!(
                f,
                "{damage}: what this acceptor has promised is not known, so it must not vote; look at the log \
                 with `rota storage inspect`"
            ),
            Self::Older {
                path,
                found,
                wanted,
            } => write!(
                f,
                "{}: an older copy of the log: it was opened {found} times, and this node knows of {wanted}; what was \
                 promised since is not in it, so put back the one that this node had last, or move this one away: the node \
                 is another acceptor then, and gets from the others what it lacks",
                path.display()
            ),
            Self::SegmentBytes(bytes) => write!(
                f,
                "segments of {bytes} bytes are not possible: 8 KiB to 2 GiB, in steps of 4 KiB"
            ),
            Self::Io { path, doing, error } => {
                write!(f, "{}: cannot {doing}: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for LogOpenError {}

/// Why records were not appended or not made durable.
#[derive(Debug)]
pub enum AppendError {
    /// No room for another segment. Nothing was appended; trying again later may work.
    NoSpace(io::Error),
    /// The disk failed. Whether the newest records are on it is not known, and the log is not used any more
    /// until it is opened again.
    Io(io::Error),
    /// Too many bytes for one request. Nothing was appended.
    TooLong {
        /// The bytes of the request.
        bytes: u64,
        /// The bytes that are possible.
        limit: u64,
    },
    /// The log failed before.
    Failed,
}

impl fmt::Display for AppendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSpace(error) => write!(f, "no room for another segment of the log: {error}"),
            Self::Io(error) => write!(f, "the log could not be written: {error}"),
            Self::TooLong { bytes, limit } => {
                write!(f, "{bytes} bytes at once are more than the {limit} that fit")
            }
            Self::Failed => f.write_str(
                "the log has failed before and is not used any more until it is opened again: look at the disk",
            ),
        }
    }
}

impl std::error::Error for AppendError {}

/// Why records were not read back.
#[derive(Debug)]
pub enum FetchError {
    /// Some of the instances are not kept any more.
    Trimmed {
        /// The first instance that is kept.
        first: u64,
    },
    /// A record is not as it was written.
    Damaged(Damage),
    /// The system does not let it be read.
    Io(io::Error),
    /// The log failed before.
    Failed,
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trimmed { first } => write!(f, "instances before {first} are not kept any more"),
            Self::Damaged(damage) => damage.fmt(f),
            Self::Io(error) => write!(f, "the log cannot be read: {error}"),
            Self::Failed => AppendError::Failed.fmt(f),
        }
    }
}

impl std::error::Error for FetchError {}

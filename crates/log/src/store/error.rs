//! The reasons why a read has no records, and the state of a store for its operator.

use std::{fmt, io};

/// Positions of a log that are not on this disk: from `from` on before `to`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Missing {
    /// The log.
    pub log: u64,
    /// The first position.
    pub from: u64,
    /// The position behind the last.
    pub to: u64,
}

/// The reason why a read has no records.
#[derive(Debug)]
pub enum ReadError {
    /// This replica does not have these positions. Another one does: get the records there and
    /// [`fill`](super::Store::fill) them in.
    Missing {
        /// The first position.
        from: u64,
        /// The position behind the last.
        to: u64,
    },
    /// Records on the disk are damaged, somewhere in these positions, which are those of one file. The file has to be
    /// [replaced](super::Store::repair) by the records of another replica.
    Damaged {
        /// The first position.
        from: u64,
        /// The position behind the last.
        to: u64,
    },
    /// The log begins at a later position.
    Trimmed {
        /// The first position, or `u64::MAX` if the log was deleted.
        first: u64,
    },
    /// The log does not go as far yet.
    NotThere {
        /// The position of the next append.
        next: u64,
    },
    /// The disk failed. If it fails again, the file can be [replaced](super::Store::repair) as a damaged one is.
    Io {
        /// The first position of the file.
        from: u64,
        /// The position behind its last.
        to: u64,
        /// The error of the system.
        error: io::Error,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { from, to } => write!(f, "records {from} to {to} are not here"),
            Self::Damaged { from, to } => write!(f, "damage among records {from} to {to}"),
            Self::Trimmed { first } => write!(f, "the log begins with {first}"),
            Self::NotThere { next } => write!(f, "the next record will be {next}"),
            Self::Io { error, .. } => write!(f, "the disk failed: {error}"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// The state of a store, for its operator.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Status {
    /// Bytes of records on the disk.
    pub disk_bytes: u64,
    /// Files with records.
    pub segments: usize,
    /// Memory that recent records take.
    pub cached_bytes: usize,
    /// The part of that memory that waits to be written.
    pub unwritten_bytes: usize,
    /// Positions that are missing now.
    pub missing_records: u64,
    /// The number of times that records were given up, since the disk failed for long or lost them.
    pub gaps: u64,
    /// Damaged files that were seen.
    pub damaged: u64,
    /// Files that were replaced.
    pub repaired: u64,
    /// Calls of the disk to write, sync or remove that failed.
    pub errors: u64,
    /// The last of these errors.
    pub last_error: Option<String>,
    /// The last write failed. The store tries again.
    pub is_failing: bool,
}

//! Why a read has no records, and what there is to know about a store.

use std::{fmt, io};

/// Positions of a log that are not on this disk: `from` and what follows before `to`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Missing {
    /// Which log.
    pub log: u64,
    /// The first position.
    pub from: u64,
    /// The position behind the last.
    pub to: u64,
}

/// Why a read has no records.
#[derive(Debug)]
pub enum ReadError {
    /// Positions that this replica does not have. Another one does: get them there and [`fill`](super::Store::fill) them in.
    Missing {
        /// The first position.
        from: u64,
        /// The position behind the last.
        to: u64,
    },
    /// Records on the disk are damaged, somewhere in these positions, which are those of one file. It has to be
    /// [replaced](super::Store::repair) by what another replica has.
    Damaged {
        /// The first position.
        from: u64,
        /// The position behind the last.
        to: u64,
    },
    /// The log begins later.
    Trimmed {
        /// With this position, or never again if it was deleted (`u64::MAX`).
        first: u64,
    },
    /// The log does not go so far yet.
    NotThere {
        /// The position of the next append.
        next: u64,
    },
    /// The disk failed. If it goes on to, the file can be [replaced](super::Store::repair) as a damaged one is.
    Io {
        /// The first position of the file.
        from: u64,
        /// The position behind its last.
        to: u64,
        /// What the system said.
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

/// What there is to know about a store.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Status {
    /// Bytes of records on the disk.
    pub disk_bytes: u64,
    /// Files with records.
    pub segments: usize,
    /// Memory that recent records take.
    pub cached_bytes: usize,
    /// Of that, what waits to be written.
    pub unwritten_bytes: usize,
    /// Positions that are missing now.
    pub missing_records: u64,
    /// How often records were given up, since the disk failed for long or lost what it had.
    pub gaps: u64,
    /// Damaged files that were seen.
    pub damaged: u64,
    /// Files that were replaced.
    pub repaired: u64,
    /// Calls of the disk to write, sync or remove that failed.
    pub errors: u64,
    /// The last of those.
    pub last_error: Option<String>,
    /// The last write failed. It is tried again.
    pub is_failing: bool,
}

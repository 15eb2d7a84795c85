//! How a log is kept.

use std::time::Duration;

use super::dir::Access;
use super::header::Identity;

/// When records are durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Never: they are in memory. An acceptor that has ended has forgotten, and must not come back under its name.
    Memory {
        /// So many records of instances are kept, the newest.
        instances: usize,
    },
    /// When the system has them: they survive the end of all processes, but not a loss of power. They are
    /// synced from time to time.
    Async {
        /// So long after the sync before.
        interval: Duration,
        /// Or as soon as so many bytes are not synced.
        bytes: u64,
    },
    /// When the disk has them.
    Sync,
}

impl Mode {
    /// In memory, as many instances as the paper's acceptors keep (Multi-Ring Paxos, 2014, on its
    /// implementation): some seconds of a busy ring.
    pub const MEMORY: Self = Self::Memory { instances: 15_000 };

    /// Synced each 100 ms, or after 8 MiB.
    pub const ASYNC: Self = Self::Async {
        interval: Duration::from_millis(100),
        bytes: 8 << 20,
    };

    /// How segments are opened. What is not waited for is better gathered in the system's memory.
    pub(super) const fn access(self) -> Access {
        match self {
            Self::Sync => Access::Append,
            Self::Async { .. } | Self::Memory { .. } => Access::Write,
        }
    }
}

/// How a log is opened.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// Whose it is.
    pub identity: Identity,
    /// When records are durable.
    pub mode: Mode,
    /// The bytes of a segment, 8 KiB to 2 GiB, in steps of 4 KiB. Old segments are dropped whole, so a smaller
    /// one gives room back sooner; each new one costs some syncs.
    pub segment_bytes: u64,
    /// How many files are kept to become segments.
    pub spares: usize,
    /// Whether a log is made where there is none. An acceptor that has voted must say no: without its log it
    /// would have forgotten.
    pub create: bool,
    /// How often the log must have been opened before, if that is known from elsewhere: see
    /// [`super::DiskLog::life`].
    pub least_life: u64,
}

impl LogOptions {
    /// Synced, in segments of 64 MiB, made where it is not there.
    pub const fn new(identity: Identity) -> Self {
        Self {
            identity,
            mode: Mode::Sync,
            segment_bytes: 64 << 20,
            spares: 2,
            create: true,
            least_life: 0,
        }
    }
}

//! The errors of checkpoints.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::manifest::Subject;

/// Why bytes are no manifest, or none of a checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// Some are missing.
    Cut,
    /// The bytes begin with something else.
    NoManifest,
    /// Their sum is another.
    Sum,
    /// A later version of this program wrote them.
    Version(u16),
    /// Their numbers of chunks and bytes contradict each other.
    Chunks,
    /// The state that they speak of is not there.
    NoState,
    /// The state is another than they say.
    State,
    /// The system does not let the file be read.
    Unreadable,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut => f.write_str("the manifest is cut off"),
            Self::NoManifest => f.write_str("this is not the manifest of a checkpoint"),
            Self::Sum => f.write_str("the manifest is damaged: its sum is another"),
            Self::Version(version) => write!(
                f,
                "the manifest has format {version}, which a later version wrote: use that version"
            ),
            Self::Unreadable => f.write_str("the system does not let the file be read"),
            Self::State => {
                f.write_str("the state is damaged: its sum is another than the manifest's")
            }
            Self::NoState => f.write_str("the state of which this is the manifest is not there"),
            Self::Chunks => f.write_str("the manifest contradicts itself about its chunks"),
        }
    }
}

impl std::error::Error for Refused {}

/// Why checkpoints cannot be used, written or taken.
#[derive(Debug)]
pub enum CheckpointError {
    /// The directory is not there. It is not made: a mount that is missing looks the same.
    NoDirectory(PathBuf),
    /// Another process uses it.
    InUse(PathBuf),
    /// There are checkpoints, and not the file that names the owner of the store.
    NoStore(PathBuf),
    /// The file of the store is damaged.
    Damaged(PathBuf, Refused),
    /// Checkpoints of another partition or cluster.
    WrongOwner {
        /// The path of the checkpoints, or the place for the one that comes from a peer.
        path: PathBuf,
        /// The owner of the checkpoints.
        found: Subject,
        /// The owner that was wanted.
        wanted: Subject,
    },
    /// A chunk of a state is not what its manifest says.
    Chunk {
        /// The file.
        path: PathBuf,
        /// The number of the chunk, from 0.
        index: usize,
    },
    /// All chunks are what they should be, and together they are not.
    Hash(PathBuf),
    /// Chunks are missing.
    Incomplete(usize),
    /// The replica has too many bytes to say of a state.
    TooMuch(usize),
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

impl fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDirectory(path) => write!(
                f,
                "{}: the directory does not exist: make it, or mount what belongs there",
                path.display()
            ),
            Self::InUse(path) => write!(
                f,
                "{}: in use by another process: does this replica run twice?",
                path.display()
            ),
            Self::NoStore(path) => write!(
                f,
                "{}: there are checkpoints, and the file `store`, which says whose they are, is not there: put the \
                 directory back as it was, or empty it; the replica is another one then, and has to be admitted",
                path.display()
            ),
            Self::Damaged(path, why) => write!(f, "{}: {why}", path.display()),
            Self::WrongOwner {
                path,
                found,
                wanted,
            } => write!(
                f,
                "{}: of partition {} of cluster {}, and this is partition {} of cluster {}: give each its own directory",
                path.display(),
                found.partition,
                found.cluster,
                wanted.partition,
                wanted.cluster
            ),
            Self::Chunk { path, index } => write!(
                f,
                "{}: chunk {index} is damaged: its sum is another than the manifest's",
                path.display()
            ),
            Self::Hash(path) => write!(
                f,
                "{}: each chunk is what the manifest says, and the whole is not: the manifest was made up",
                path.display()
            ),
            Self::TooMuch(bytes) => write!(
                f,
                "{bytes} bytes are too many for what is to be known of a checkpoint: messages that were cut are too large"
            ),
            Self::Incomplete(missing) => write!(f, "{missing} chunks are missing"),
            Self::Io { path, doing, error } => {
                write!(f, "{}: cannot {doing}: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for CheckpointError {}

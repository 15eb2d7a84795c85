//! The errors of a file.

use rota_core::contract::NodeId;
use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::disk::Disk;
use crate::slot::BadSlot;

/// The contents of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// The newest ring id's number.
    RingId,
    /// The node's record of primary configurations.
    Primaries,
    /// The number of times that the log of votes was opened.
    Lives,
}

impl Kept {
    const fn setting(self) -> &'static str {
        match self {
            Self::RingId => "reset the ring id (`reset_ring_id = true`)",
            Self::Primaries => {
                "start the node as one that has forgotten (`reset_primary = \"forgotten\"`)"
            }
            Self::Lives => {
                "move it away together with the directory of votes beside it, so that the node is another acceptor"
            }
        }
    }
}

impl Kept {
    /// The consequence where both copies are damaged, and the way out.
    fn say_way_out(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way_out = self.setting();
        match self {
            Self::RingId => write!(
                f,
                "so it is not known which ring ids were used; if no other process of this \
                 node runs, {way_out} or restore the file"
            ),
            Self::Primaries => write!(
                f,
                "so it is not known what this node has agreed to; {way_out}"
            ),
            Self::Lives => write!(
                f,
                "so an older copy of that log could not be told from the log itself: if none was put back, \
                 remove this file; else {way_out}"
            ),
        }
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RingId => "the ring id",
            Self::Primaries => "what is known of primaries",
            Self::Lives => "how often the log of votes was opened",
        })
    }
}

/// Why a file cannot be used. The node must not start with it.
#[derive(Debug)]
pub enum OpenError {
    /// The directory it belongs in is not there. It is not made: where it is a mount that is missing,
    /// an older ring id may be on what should be mounted.
    NoDirectory(PathBuf),
    /// Another process uses it: the same node runs twice.
    InUse(PathBuf),
    /// Neither of its copies is good.
    Damaged {
        /// The contents of the file.
        kept: Kept,
        /// The file.
        path: PathBuf,
    },
    /// The file is not there, though the node has lived before.
    Lost(PathBuf),
    /// Written by another node: that node's disk, or a copied directory.
    WrongNode {
        /// The contents of the file.
        kept: Kept,
        /// The file.
        path: PathBuf,
        /// The node that has written it.
        found: u16,
        /// The node that wanted to use it.
        wanted: NodeId,
    },
    /// Written by a later version of this program.
    Version {
        /// The contents of the file.
        kept: Kept,
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u16,
    },
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

impl OpenError {
    /// Whether a new file in place of this one is a way out ([`crate::OnDamage::Reset`]).
    pub const fn reset_helps(&self) -> bool {
        match self {
            Self::Damaged { .. }
            | Self::Lost(_)
            | Self::WrongNode { .. }
            | Self::Version { .. } => true,
            Self::NoDirectory(_) | Self::InUse(_) | Self::Io { .. } => false,
        }
    }
}

impl fmt::Display for OpenError {
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
            Self::Damaged { kept, path } => {
                let path = path.display();
                write!(f, "{path}: both copies of {kept} are damaged, ")?;
                kept.say_way_out(f)
            }
            Self::Lost(path) => write!(
                f,
                "{}: is missing, though this node has run before: if it was lost, {}; if this node \
                 never ran with `primary = \"dynamic\"`, let it begin as the others do \
                 (`reset_primary = \"first\"`)",
                path.display(),
                Kept::Primaries.setting()
            ),
            Self::WrongNode {
                kept,
                path,
                found,
                wanted,
            } => write!(
                f,
                "{}: holds {kept} of node {found}, and this is node {wanted}: give each node its \
                 own directory, or {}",
                path.display(),
                kept.setting()
            ),
            Self::Version { kept, path, found } => write!(
                f,
                "{}: has format {found}, which a later version wrote: use that version, or {}",
                path.display(),
                kept.setting()
            ),
            Self::Io { path, doing, error } => {
                write!(f, "{}: cannot {doing}: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for OpenError {}

/// The error of a call while a file is opened.
pub(crate) fn wrong<D: Disk>(disk: &D, doing: &'static str, error: io::Error) -> OpenError {
    let path = disk.path().to_owned();
    if error.kind() == io::ErrorKind::WouldBlock {
        OpenError::InUse(path)
    } else {
        OpenError::Io { path, doing, error }
    }
}

/// One of the two copies in a file must not be of a later version, nor another node's. A damaged one may
/// be there: the other decides.
///
/// `found` is the number of the node in a good copy.
pub(crate) fn check_copy<D: Disk>(
    disk: &D,
    kept: Kept,
    wanted: NodeId,
    found: Result<u16, BadSlot>,
) -> Result<(), OpenError> {
    let path = || disk.path().to_owned();
    match found {
        Err(BadSlot::Version(found)) => Err(OpenError::Version {
            kept,
            path: path(),
            found,
        }),
        Ok(found) if found != wanted.get() => Err(OpenError::WrongNode {
            kept,
            path: path(),
            found,
            wanted,
        }),
        Ok(_) | Err(BadSlot::Damaged) => Ok(()),
    }
}

/// Why a value was not stored. Whether it is on the disk is not known.
#[derive(Debug)]
pub enum StoreError {
    /// No room, or the quota is used up. Nothing was promised to be durable before, so trying again
    /// may work.
    NoSpace(io::Error),
    /// The disk failed. This file takes no more values until it is opened again: after a failed sync the
    /// kernel forgets what it could not write, and the next sync would succeed without it.
    Io(io::Error),
    /// The value is longer than the file has room for; in bytes.
    TooLong(usize),
    /// An earlier value failed with `Io`.
    Failed,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSpace(error) => write!(f, "no room on the disk: {error}"),
            Self::Io(error) => write!(f, "it could not be made durable: {error}"),
            Self::TooLong(bytes) => write!(f, "{bytes} bytes are more than the file has room for"),
            Self::Failed => f.write_str(
                "the file has failed before and is not used any more: look at the disk, then restart \
                 the node",
            ),
        }
    }
}

impl std::error::Error for StoreError {}

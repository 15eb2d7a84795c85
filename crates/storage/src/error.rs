//! What can go wrong with a ring id's file.

use rota_core::contract::NodeId;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a ring id's file cannot be used. The node must not start with it.
#[derive(Debug)]
pub enum OpenError {
    /// The directory it belongs in is not there. It is not made: where it is a mount that is missing,
    /// an older ring id may be on what should be mounted.
    NoDirectory(PathBuf),
    /// Another process uses it: the same node runs twice.
    InUse(PathBuf),
    /// Neither of its slots is good.
    Damaged(PathBuf),
    /// Written by another node: somebody else's disk, or a copied directory.
    WrongNode {
        /// Which file.
        path: PathBuf,
        /// Whose it is.
        found: u16,
        /// Who wanted to use it.
        wanted: NodeId,
    },
    /// Written by a later version of this program.
    Version {
        /// Which file.
        path: PathBuf,
        /// Its version.
        found: u16,
    },
    /// The system does not let it be read, written or made durable.
    Io {
        /// Which file.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        error: io::Error,
    },
}

impl OpenError {
    /// Whether a new file in its place is a way out ([`crate::OnDamage::Reset`]).
    pub const fn reset_helps(&self) -> bool {
        match self {
            Self::Damaged(_) | Self::WrongNode { .. } | Self::Version { .. } => true,
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
            Self::Damaged(path) => write!(
                f,
                "{}: both copies of the ring id are damaged, so it is not known which ring ids were \
                 used; if no other process of this node runs, reset the ring id \
                 (`reset_ring_id = true`) or restore the file",
                path.display()
            ),
            Self::WrongNode {
                path,
                found,
                wanted,
            } => write!(
                f,
                "{}: holds the ring id of node {found}, and this is node {wanted}: give each node its \
                 own directory, or reset the ring id (`reset_ring_id = true`)",
                path.display()
            ),
            Self::Version { path, found } => write!(
                f,
                "{}: has format {found}, which a later version wrote: use that version, or reset the \
                 ring id (`reset_ring_id = true`)",
                path.display()
            ),
            Self::Io { path, doing, error } => {
                write!(f, "{}: cannot {doing}: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for OpenError {}

/// Why a value was not stored. Whether it is on the disk is not known.
#[derive(Debug)]
pub enum StoreError {
    /// No room, or the quota is used up. Nothing was promised to be durable before, so trying again
    /// may work.
    NoSpace(io::Error),
    /// The disk failed. This file takes no more values until it is opened again: after a failed sync the
    /// kernel forgets what it could not write, and the next sync would succeed without it.
    Io(io::Error),
    /// An earlier value failed with `Io`.
    Failed,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSpace(error) => write!(f, "no room for the ring id: {error}"),
            Self::Io(error) => write!(f, "the ring id could not be made durable: {error}"),
            Self::Failed => f.write_str(
                "the ring id's file has failed before and is not used any more: look at the disk, then \
                 restart the node",
            ),
        }
    }
}

impl std::error::Error for StoreError {}

//! The number of times that an acceptor's log was opened, kept beside it.
//!
//! The log counts its openings itself. An older copy of it that is put back is sound, and has forgotten what was
//! promised since; but it was opened less often than this file says. The file is kept as that of [ring
//! ids](crate::ring_id), which describes the outcome of each fault.

use std::path::PathBuf;

use rota_core::contract::NodeId;

use crate::disk::{Disk, FileDisk};
use crate::error::{Kept, OpenError, StoreError};
use crate::ring_id::{OnDamage, RingIdFile};

/// A file with the number of times that a log was opened.
#[derive(Debug)]
pub struct LifeFile<D = FileDisk>(RingIdFile<D>);

impl LifeFile {
    /// Opens the file of node `node` at `path`, and makes it where there is none.
    ///
    /// # Errors
    /// [`OpenError`]; the acceptor must not vote then.
    pub fn open(path: PathBuf, node: NodeId) -> Result<Self, OpenError> {
        Self::open_on(FileDisk::new(path), node)
    }
}

impl<D: Disk> LifeFile<D> {
    /// The same on any disk.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_on(disk: D, node: NodeId) -> Result<Self, OpenError> {
        RingIdFile::open_kept(disk, node, OnDamage::Refuse, Kept::Lives).map(Self)
    }

    /// The number of times that the log was opened, at least.
    pub fn lives(&self) -> u64 {
        self.0.value().unwrap_or(0)
    }

    /// Makes durable that the log was opened. Nothing may be promised in that life before.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn store(&mut self, lives: u64) -> Result<(), StoreError> {
        self.0.store(lives)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_and_is_no_file_of_ring_ids() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("node-1.votes.life");
        let node = NodeId::new(1).unwrap();
        let mut file = LifeFile::open(path.clone(), node).unwrap();
        assert_eq!(file.lives(), 0);
        file.store(3).unwrap();
        drop(file);
        assert_eq!(LifeFile::open(path.clone(), node).unwrap().lives(), 3);
        let other = LifeFile::open(path.clone(), NodeId::new(2).unwrap());
        assert!(matches!(other, Err(OpenError::WrongNode { .. })));
        let ring_ids = RingIdFile::open(path, node, OnDamage::Refuse);
        assert!(matches!(ring_ids, Err(OpenError::Damaged { .. })));
    }
}

//! A checkpoint that is being read: to begin with, or for a peer.

use std::path::PathBuf;
use std::sync::Arc;

use super::error::CheckpointError;
use super::manifest::{Manifest, Sums};
use super::{failed, state_name};
use crate::acceptor::{Access, LogDisk, LogFile as _};

/// A state, chunk by chunk. It stays readable though newer ones take its place.
#[derive(Debug)]
pub struct Reading<D: LogDisk> {
    path: PathBuf,
    file: D::File,
    manifest: Arc<Manifest>,
}

impl<D: LogDisk> Reading<D> {
    pub(super) fn open(
        disk: Arc<D>,
        number: u64,
        manifest: Arc<Manifest>,
    ) -> Result<Self, CheckpointError> {
        let name = state_name(number);
        let path = disk.path().join(&name);
        let file = disk.open(&name, Access::Read);
        let file = file.map_err(|error| failed(&path, "read", error))?;
        Ok(Self {
            path,
            file,
            manifest,
        })
    }

    /// The manifest of the checkpoint.
    pub const fn manifest(&self) -> &Arc<Manifest> {
        &self.manifest
    }

    /// A chunk, from 0; `None` behind the last one.
    ///
    /// # Errors
    /// The chunk is not as it was written, or an error of the disk.
    pub fn chunk(&self, index: usize) -> Result<Option<Vec<u8>>, CheckpointError> {
        let Some((at, length)) = self.manifest.chunk(index) else {
            return Ok(None);
        };
        let mut chunk = vec![0; length];
        let read = self.file.read_at(at, &mut chunk);
        let read = read.map_err(|error| failed(&self.path, "read", error))?;
        match read == length && self.manifest.has(index, &chunk) {
            true => Ok(Some(chunk)),
            false => Err(CheckpointError::Chunk {
                path: self.path.clone(),
                index,
            }),
        }
    }

    /// Reads all of it, and says whether it is what it should be.
    ///
    /// # Errors
    /// As [`Self::chunk`]; or the whole is not what its manifest says.
    pub fn verify(&self) -> Result<(), CheckpointError> {
        let mut sums = Sums::default();
        let mut index = 0;
        while let Some(chunk) = self.chunk(index)? {
            sums.add(&chunk);
            index += 1;
        }
        match sums.hash() == self.manifest.hash {
            true => Ok(()),
            false => Err(CheckpointError::Hash(self.path.clone())),
        }
    }
}

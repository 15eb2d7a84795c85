//! A state that comes from peers.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::error::CheckpointError;
use super::manifest::{Manifest, Sums};
use super::{Written, failed, manifest_name, state_name, store};
use crate::acceptor::{Access, LogDisk, LogFile as _};

pub(super) const INCOMING_MANIFEST: &str = "incoming.manifest";
pub(super) const INCOMING_STATE: &str = "incoming.state";

/// Takes chunks in any order, from any peer that has the same state.
#[derive(Debug)]
pub struct Incoming<D: LogDisk> {
    disk: Arc<D>,
    number: u64,
    store: u64,
    manifest: Manifest,
    file: D::File,
    missing: BTreeSet<usize>,
}

impl<D: LogDisk> Incoming<D> {
    pub(super) fn begin(
        disk: Arc<D>,
        number: u64,
        store: u64,
        manifest: Manifest,
    ) -> Result<Self, CheckpointError> {
        let path = disk.path().join(INCOMING_MANIFEST);
        let before = store::read_all(&*disk, INCOMING_MANIFEST).ok();
        let before = before.and_then(|bytes| Manifest::decode(&bytes).ok());
        let goes_on = before.is_some_and(|before| before.is_same_state(&manifest));
        let file = match goes_on {
            true => disk.open(INCOMING_STATE, Access::Write),
            false => Err(io::ErrorKind::NotFound.into()),
        };
        let file = match file {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let file = disk.open(INCOMING_STATE, Access::Create);
                let file = file.map_err(|error| failed(&path, "make", error))?;
                let new = format!("{INCOMING_MANIFEST}.new");
                let written = store::write(&*disk, &new, INCOMING_MANIFEST, &manifest.encode());
                written.map_err(|error| failed(&path, "write", error))?;
                file
            }
            Err(error) => return Err(failed(&path, "read", error)),
        };
        let mut incoming = Self {
            disk,
            number,
            store,
            missing: (0..manifest.sums.len()).collect(),
            manifest,
            file,
        };
        if goes_on {
            incoming.find()?;
        }
        Ok(incoming)
    }

    /// Finds the chunks that are there from before.
    fn find(&mut self) -> Result<(), CheckpointError> {
        for index in 0..self.manifest.sums.len() {
            if self.chunk(index)?.is_some() {
                self.missing.remove(&index);
            }
        }
        Ok(())
    }

    /// A chunk that is there and right.
    fn chunk(&self, index: usize) -> Result<Option<Vec<u8>>, CheckpointError> {
        let Some((at, length)) = self.manifest.chunk(index) else {
            return Ok(None);
        };
        let mut chunk = vec![0; length];
        let read = self.file.read_at(at, &mut chunk);
        let read = read.map_err(|error| failed(&self.path(), "read", error))?;
        let is_right = read == length && self.manifest.has(index, &chunk);
        Ok(is_right.then_some(chunk))
    }

    fn path(&self) -> PathBuf {
        self.disk.path().join(INCOMING_STATE)
    }

    /// The manifest of the state that comes.
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The chunks that are missing, in ascending order.
    pub fn missing(&self) -> impl Iterator<Item = usize> {
        self.missing.iter().copied()
    }

    /// A chunk has come. One that is there already changes nothing.
    ///
    /// # Errors
    /// The chunk is not what the manifest says, and nothing changes; or an error of the disk.
    pub fn put(&mut self, index: usize, chunk: &[u8]) -> Result<(), CheckpointError> {
        let place = self.manifest.chunk(index);
        let Some((at, _)) = place.filter(|_| self.manifest.has(index, chunk)) else {
            let path = self.path();
            return Err(CheckpointError::Chunk { path, index });
        };
        if self.missing.contains(&index) {
            let written = self.file.write_at(at, chunk);
            written.map_err(|error| failed(&self.path(), "write", error))?;
            self.missing.remove(&index);
        }
        Ok(())
    }

    /// All have come. It is durable, and one of this store's own, when this returns.
    ///
    /// # Errors
    /// Some are missing, the whole is not what the manifest says, or the disk's: it is no checkpoint.
    pub fn finish(self) -> Result<Written, CheckpointError> {
        if !self.missing.is_empty() {
            return Err(CheckpointError::Incomplete(self.missing.len()));
        }
        let synced = self.file.sync();
        synced.map_err(|error| failed(&self.path(), "make durable", error))?;
        self.verify()?;
        let (path, name) = (self.path(), manifest_name(self.number));
        let renamed = self.disk.rename(INCOMING_STATE, &state_name(self.number));
        renamed.map_err(|error| failed(&path, "rename", error))?;
        let manifest = Manifest {
            store: self.store,
            ..self.manifest
        };
        let new = format!("{name}.new");
        if let Err(error) = store::write(&*self.disk, &new, &name, &manifest.encode()) {
            // The chunks that have come stay: the next attempt finds them where they were.
            let _ = self.disk.remove(&name);
            let _ = self.disk.rename(&state_name(self.number), INCOMING_STATE);
            return Err(failed(&path, "write", error));
        }
        // This manifest speaks of a file that has another name now.
        let _ = self.disk.remove(INCOMING_MANIFEST);
        Ok(Written {
            number: self.number,
            manifest,
        })
    }

    fn verify(&self) -> Result<(), CheckpointError> {
        let mut sums = Sums::default();
        for index in 0..self.manifest.sums.len() {
            let path = self.path();
            let chunk = self.chunk(index)?;
            sums.add(&chunk.ok_or(CheckpointError::Chunk { path, index })?);
        }
        match sums.hash() == self.manifest.hash {
            true => Ok(()),
            // Peers that have this manifest have made it up: nothing of it is of use.
            false => {
                let _ = self.disk.remove(INCOMING_MANIFEST);
                Err(CheckpointError::Hash(self.path()))
            }
        }
    }
}

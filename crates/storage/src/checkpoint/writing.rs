//! A checkpoint that is being written.

use std::path::PathBuf;
use std::sync::Arc;

use super::error::CheckpointError;
use super::manifest::{MOST_ABOUT, Subject, Sums};
use super::{Written, failed, manifest_name, state_name, store};
use crate::acceptor::{Access, LogDisk, LogFile as _};

/// Takes a state, bytes after bytes, and may be given to another thread. Dropped before [`Self::finish`], it never was.
#[derive(Debug)]
pub struct Writing<D: LogDisk> {
    disk: Arc<D>,
    number: u64,
    owner: (Subject, u64),
    chunk_bytes: usize,
    file: D::File,
    sums: Sums,
    /// The bytes that are not a whole chunk yet.
    rest: Vec<u8>,
    is_finished: bool,
}

impl<D: LogDisk> Drop for Writing<D> {
    fn drop(&mut self) {
        if !self.is_finished {
            // The file takes room that others need. If it stays, it is removed when the directory is opened.
            let _ = self.disk.remove(&state_name(self.number));
        }
    }
}

impl<D: LogDisk> Writing<D> {
    pub(super) fn begin(
        disk: Arc<D>,
        number: u64,
        owner: (Subject, u64),
        chunk_bytes: u32,
    ) -> Result<Self, CheckpointError> {
        let name = state_name(number);
        let file = disk.open(&name, Access::Create);
        let file = file.map_err(|error| failed(&disk.path().join(&name), "make", error))?;
        Ok(Self {
            disk,
            number,
            owner,
            chunk_bytes: chunk_bytes as usize,
            file,
            sums: Sums::default(),
            rest: Vec::new(),
            is_finished: false,
        })
    }

    /// The file of the state, for messages.
    pub fn path(&self) -> PathBuf {
        self.disk.path().join(state_name(self.number))
    }

    /// Adds bytes to the state.
    ///
    /// # Errors
    /// The disk's: it will not become a checkpoint.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<(), CheckpointError> {
        while !bytes.is_empty() {
            let room = self.chunk_bytes - self.rest.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.rest.extend_from_slice(now);
            bytes = later;
            if self.rest.len() == self.chunk_bytes {
                self.put()?;
            }
        }
        Ok(())
    }

    fn put(&mut self) -> Result<(), CheckpointError> {
        let written = self.file.write_at(self.sums.bytes(), &self.rest);
        written.map_err(|error| self.failed("write", error))?;
        self.sums.add(&self.rest);
        self.rest.clear();
        Ok(())
    }

    fn failed(&self, doing: &'static str, error: std::io::Error) -> CheckpointError {
        failed(&self.path(), doing, error)
    }

    /// Ends the state. `about` is what the replica wants to know of it, above all its point. The checkpoint is durable
    /// when this returns.
    ///
    /// # Errors
    /// The disk's, or there is too much to be known of it: it is no checkpoint, and nobody may be told of it.
    pub fn finish(mut self, about: Vec<u8>) -> Result<Written, CheckpointError> {
        if about.len() > MOST_ABOUT {
            return Err(CheckpointError::TooMuch(about.len()));
        }
        if !self.rest.is_empty() {
            self.put()?;
        }
        let synced = self.file.sync();
        synced.map_err(|error| self.failed("make durable", error))?;
        let name = manifest_name(self.number);
        let path = self.disk.path().join(&name);
        let (of, store) = self.owner;
        let sums = std::mem::take(&mut self.sums);
        let manifest = sums.manifest(of, store, about, self.chunk_bytes as u32);
        let new = format!("{name}.new");
        if let Err(error) = store::write(&*self.disk, &new, &name, &manifest.encode()) {
            // The manifest may have its name all the same, and its state goes.
            let _ = self.disk.remove(&name);
            return Err(failed(&path, "write", error));
        }
        self.is_finished = true;
        Ok(Written {
            number: self.number,
            manifest,
        })
    }
}

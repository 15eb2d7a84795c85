//! Checkpoints of a replica: whole states, each with a manifest of its bytes and of its point in the order (Benz et al.
//! 2014, §5.1).
//!
//! A directory has
//!
//! * `store`: the owner of these checkpoints, and a number that was drawn with the directory: an emptied one is another
//!   store, which has no checkpoint of those that the old one has promised.
//! * `N.state` and `N.manifest`, N ascending. A manifest gets its name when everything that it says of the state is
//!   durable: a state without a manifest is no checkpoint. The newest two are kept.
//! * `incoming.state` and `incoming.manifest`: a state that comes from a peer, and is not whole yet. The transfer goes
//!   on after a restart.
//!
//! A disk that fails costs the checkpoint that is being written, and no other: nobody is told of it before both its files and their names are durable. A state is
//! verified before it is used, chunk by chunk and as a whole; where the newest one is damaged the one before serves.

mod error;
mod incoming;
mod manifest;
mod reading;
mod store;
mod writing;

pub use error::{CheckpointError, Refused};
pub use incoming::Incoming;
pub use manifest::{Manifest, Subject};
pub use reading::Reading;
pub use writing::Writing;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::acceptor::{FileDir, LogDisk};
use incoming::{INCOMING_MANIFEST, INCOMING_STATE};

/// Bytes of a chunk of a state, unless tests want less.
pub const CHUNK_BYTES: u32 = 1 << 20;

/// The number of checkpoints that are kept: one of them may be damaged, or be read by a peer.
const KEPT: usize = 2;

/// The checkpoints of one replica.
#[derive(Debug)]
pub struct Checkpoints<D: LogDisk = FileDir> {
    disk: Arc<D>,
    of: Subject,
    store: u64,
    chunk_bytes: u32,
    /// By number, the newest last.
    kept: Vec<(u64, Arc<Manifest>)>,
    /// The number of the next one.
    next: u64,
    /// The files that were found to be damaged.
    damaged: Vec<(PathBuf, Refused)>,
}

impl Checkpoints {
    /// Opens the directory at `path`, which has to be there. `fresh` is drawn at random: the number of the store, if the directory has none
    /// yet.
    ///
    /// # Errors
    /// [`CheckpointError`]: above all, checkpoints of another owner, and another process that has the directory.
    pub fn open(path: PathBuf, of: Subject, fresh: u64) -> Result<Self, CheckpointError> {
        Self::on(FileDir::new(path), of, fresh, CHUNK_BYTES)
    }
}

impl<D: LogDisk> Checkpoints<D> {
    /// The same on any disk, in chunks of `chunk_bytes` bytes.
    ///
    /// # Errors
    /// As [`Checkpoints::open`].
    pub fn on(
        mut disk: D,
        of: Subject,
        fresh: u64,
        chunk_bytes: u32,
    ) -> Result<Self, CheckpointError> {
        let path = disk.path().to_owned();
        if !disk.has_directory() {
            return Err(CheckpointError::NoDirectory(path));
        }
        disk.lock().map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => CheckpointError::InUse(path.clone()),
            _ => failed(&path, "lock", error),
        })?;
        let names = disk.names();
        let names = names.map_err(|error| failed(&path, "list", error))?;
        let has_some = names.iter().any(|name| name.ends_with(MANIFEST));
        let store = store::open(&disk, of, fresh, has_some)?;
        let mut opened = Self {
            disk: Arc::new(disk),
            of,
            store,
            chunk_bytes,
            kept: Vec::new(),
            next: 1,
            damaged: Vec::new(),
        };
        opened.survey(&names)?;
        Ok(opened)
    }

    /// Finds the checkpoints that are there, and removes files that never became one.
    fn survey(&mut self, names: &[String]) -> Result<(), CheckpointError> {
        let mut left_over = Vec::new();
        for name in names {
            if name.ends_with(".new") {
                left_over.push(name.clone());
            }
            let Some((number, is_manifest)) = number_of(name) else {
                continue;
            };
            self.next = self.next.max(number.saturating_add(1));
            if !is_manifest {
                if !names.contains(&manifest_name(number)) {
                    left_over.push(name.clone());
                }
                continue;
            }
            match self.manifest_at(name)? {
                Ok(manifest) if names.contains(&state_name(number)) => {
                    self.kept.push((number, Arc::new(manifest)));
                }
                read => {
                    let why = read.err().unwrap_or(Refused::NoState);
                    self.damaged.push((self.disk.path().join(name), why));
                }
            }
        }
        self.kept.sort_by_key(|(number, _)| *number);
        let has = |name: &str| names.iter().any(|other| other == name);
        let mut lacks_state = has(INCOMING_MANIFEST) && !has(INCOMING_STATE);
        // The newest first: it may be a state that had come from a peer, whole, when the power went.
        for name in left_over.iter().rev() {
            if std::mem::take(&mut lacks_state) && name.ends_with(STATE) {
                let _ = self.disk.rename(name, INCOMING_STATE);
                continue;
            }
            // It is in nobody's way.
            let _ = self.disk.remove(name);
        }
        Ok(())
    }

    fn manifest_at(&self, name: &str) -> Result<Result<Manifest, Refused>, CheckpointError> {
        let path = self.disk.path().join(name);
        let Ok(bytes) = store::read_all(&*self.disk, name) else {
            return Ok(Err(Refused::Unreadable));
        };
        match Manifest::decode(&bytes) {
            Ok(manifest) if manifest.of == self.of => Ok(Ok(manifest)),
            Ok(manifest) => Err(CheckpointError::WrongOwner {
                path,
                found: manifest.of,
                wanted: self.of,
            }),
            Err(why) => Ok(Err(why)),
        }
    }

    /// The number of this store.
    pub const fn store(&self) -> u64 {
        self.store
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        self.disk.path()
    }

    /// The files that were found to be damaged, and how.
    pub fn damaged(&self) -> &[(PathBuf, Refused)] {
        &self.damaged
    }

    /// The manifests of all that are kept, the newest last.
    pub fn manifests(&self) -> impl Iterator<Item = &Arc<Manifest>> {
        self.kept.iter().map(|(_, manifest)| manifest)
    }

    /// Begins to write one. Writing may take its time: other checkpoints can be read meanwhile.
    ///
    /// # Errors
    /// The disk's.
    pub fn begin(&mut self) -> Result<Writing<D>, CheckpointError> {
        let number = self.next;
        self.next += 1;
        Writing::begin(
            Arc::clone(&self.disk),
            number,
            (self.of, self.store),
            self.chunk_bytes,
        )
    }

    /// Takes in a checkpoint that was written, and forgets all but the newest two.
    pub fn add(&mut self, written: Written) -> Arc<Manifest> {
        let Written { number, manifest } = written;
        let manifest = Arc::new(manifest);
        self.kept.push((number, Arc::clone(&manifest)));
        self.kept.sort_by_key(|(number, _)| *number);
        let old = self.kept.len().saturating_sub(KEPT);
        for (number, _) in self.kept.drain(..old) {
            // A manifest without a state would be damage, so it goes first. A file that stays is in nobody's way, and
            // is removed when the directory is opened. A state that is being read stays as long as that.
            let removed = self.disk.remove(&manifest_name(number));
            if removed.and_then(|()| self.disk.sync_names()).is_ok() {
                let _ = self.disk.remove(&state_name(number));
            }
        }
        manifest
    }

    /// Opens the newest one whose state is whole, and reads all of it for that. `Ok(None)`: there is none. Those that
    /// are damaged are not kept any more ([`Self::damaged`]), and stay where they are.
    ///
    /// # Errors
    /// None of the disk's: a file that cannot be read counts as damaged.
    pub fn newest_sound(&mut self) -> Result<Option<Reading<D>>, CheckpointError> {
        while let Some((number, manifest)) = self.kept.last() {
            let sound = Reading::open(Arc::clone(&self.disk), *number, Arc::clone(manifest))
                .and_then(|reading| reading.verify().map(|()| reading));
            match sound {
                Ok(reading) => return Ok(Some(reading)),
                Err(CheckpointError::Chunk { path, .. } | CheckpointError::Hash(path)) => {
                    self.damaged.push((path, Refused::State));
                    self.kept.pop();
                }
                // The disk has lost it, or does not give it back: the one before may be there.
                Err(CheckpointError::Io { path, .. }) => {
                    self.damaged.push((path, Refused::Unreadable));
                    self.kept.pop();
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Drops a checkpoint with which no replica can begin, though it is whole.
    pub fn reject(&mut self, manifest: &Manifest) {
        let is_it = |(_, kept): &mut (u64, Arc<Manifest>)| **kept == *manifest;
        for (number, _) in self.kept.extract_if(.., is_it) {
            if self.disk.remove(&manifest_name(number)).is_ok() {
                let _ = self.disk.remove(&state_name(number));
            }
        }
    }

    /// Opens one that is kept, for a peer.
    ///
    /// # Errors
    /// The disk's. `Ok(None)`: it is not kept.
    pub fn read(&self, manifest: &Manifest) -> Result<Option<Reading<D>>, CheckpointError> {
        let found = self.kept.iter().find(|(_, kept)| **kept == *manifest);
        let open = |(number, manifest): &(u64, Arc<Manifest>)| {
            Reading::open(Arc::clone(&self.disk), *number, Arc::clone(manifest))
        };
        found.map(open).transpose()
    }

    /// Begins to take a state from peers, or goes on with it: chunks that came before a restart are not asked for again.
    ///
    /// # Errors
    /// The manifest is of another owner, or an error of the disk.
    pub fn receive(&mut self, manifest: Manifest) -> Result<Incoming<D>, CheckpointError> {
        if manifest.of != self.of {
            return Err(CheckpointError::WrongOwner {
                path: self.disk.path().join(INCOMING_MANIFEST),
                found: manifest.of,
                wanted: self.of,
            });
        }
        let number = self.next;
        self.next += 1;
        Incoming::begin(Arc::clone(&self.disk), number, self.store, manifest)
    }

    /// The manifest of the state that was coming from peers when this store was closed last.
    ///
    /// # Errors
    /// The disk's.
    pub fn incoming(&self) -> Result<Option<Manifest>, CheckpointError> {
        let names = self.disk.names();
        let names = names.map_err(|error| failed(self.disk.path(), "list", error))?;
        let has = |name: &str| names.iter().any(|other| other == name);
        if !has(INCOMING_MANIFEST) || !has(INCOMING_STATE) {
            return Ok(None);
        }
        // A state with a damaged or foreign manifest is begun anew.
        Ok(self
            .manifest_at(INCOMING_MANIFEST)
            .ok()
            .and_then(Result::ok))
    }
}

/// A checkpoint that is durable, for [`Checkpoints::add`].
#[derive(Debug)]
#[must_use = "it is a checkpoint when it is taken in"]
pub struct Written {
    number: u64,
    manifest: Manifest,
}

impl Written {
    /// The manifest of the checkpoint.
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }
}

const MANIFEST: &str = ".manifest";
const STATE: &str = ".state";

fn manifest_name(number: u64) -> String {
    format!("{number:016x}{MANIFEST}")
}

fn state_name(number: u64) -> String {
    format!("{number:016x}{STATE}")
}

/// The number in a name, and whether it is a manifest's.
fn number_of(name: &str) -> Option<(u64, bool)> {
    let (number, is_manifest) = match (name.strip_suffix(MANIFEST), name.strip_suffix(STATE)) {
        (Some(number), _) => (number, true),
        (None, Some(number)) => (number, false),
        (None, None) => return None,
    };
    let is_ours = number.len() == 16;
    let number = is_ours.then(|| u64::from_str_radix(number, 16).ok())?;
    number.map(|number| (number, is_manifest))
}

fn failed(path: &Path, doing: &'static str, error: io::Error) -> CheckpointError {
    CheckpointError::Io {
        path: path.to_owned(),
        doing,
        error,
    }
}

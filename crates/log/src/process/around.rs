//! The surroundings of the replica of a process: readers that wait, and the other processes.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use rota_storage::acceptor::FileDir;

use super::lock;
use super::source::Source;
use super::waiters::Waiters;
use crate::mutants::{self, Mutant};
use crate::replicated::{Around, Replicated};
use crate::store::Store;

/// The machine of a process.
pub(super) type LogMachine = Replicated<FileDir>;

/// The surroundings of a replica.
pub(super) struct Neighbours {
    pub(super) waiters: Waiters,
    pub(super) source: Arc<Source>,
    pub(super) told: Told,
}

/// States of which this process has told that it has them: the number of its own store, those of stores that it has
/// lost, and digests of states of others.
pub(super) struct Told {
    path: PathBuf,
    of: Mutex<BTreeSet<u64>>,
}

impl Told {
    /// The states in a file.
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let of = text
            .lines()
            .filter_map(|line| u64::from_str_radix(line, 16).ok());
        Ok(Self {
            of: Mutex::new(of.collect()),
            path,
        })
    }

    /// Adds a state. It is on the disk then.
    pub(super) fn add(&self, state: u64) -> io::Result<()> {
        let mut of = lock(&self.of);
        if of.contains(&state) {
            return Ok(());
        }
        let all = of.iter().chain([&state]);
        let lines: String = all.map(|state| format!("{state:016x}\n")).collect();
        let new = self.path.with_extension("new");
        let mut file = File::create(&new)?;
        file.write_all(lines.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&new, &self.path)?;
        let directory = self.path.parent().map(File::open);
        directory.transpose()?.map_or(Ok(()), |of| of.sync_all())?;
        of.insert(state);
        Ok(())
    }
}

impl Around<FileDir> for Neighbours {
    fn changed(&self, logs: Option<&[Bytes]>) {
        match logs {
            Some(_) if mutants::on(Mutant::D10) => {}
            Some(logs) => self.waiters.wake(logs),
            None => self.waiters.wake_all(),
        }
    }

    fn get_all(&self, store: &Store<FileDir>, still: &dyn Fn() -> bool) -> io::Result<()> {
        self.source.get_all(store, still)
    }

    fn was_told(&self, state: u64) -> bool {
        lock(&self.told.of).contains(&state)
    }

    fn tell(&self, state: u64) -> io::Result<()> {
        self.told.add(state)
    }
}

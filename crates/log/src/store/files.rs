//! Open files: a limited number, of which the least recently used is closed first.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;

use rota_storage::acceptor::{Access, LogDisk};

use super::lock;

const MOST: usize = 128;

/// Open files by the ids of their segments.
pub(super) struct Files<F> {
    open: Mutex<Open<F>>,
}

struct Open<F> {
    files: BTreeMap<u64, (F, u64)>,
    uses: u64,
}

impl<F: Clone> Files<F> {
    pub(super) const fn new() -> Self {
        Self {
            open: Mutex::new(Open {
                files: BTreeMap::new(),
                uses: 0,
            }),
        }
    }

    fn get(&self, id: u64) -> Option<F> {
        let mut open = lock(&self.open);
        open.uses += 1;
        let uses = open.uses;
        let (file, used) = open.files.get_mut(&id)?;
        *used = uses;
        Some(file.clone())
    }

    /// The file of a segment.
    pub(super) fn get_or_open<D: LogDisk<File = F>>(
        &self,
        disk: &Mutex<D>,
        id: u64,
        name: &str,
    ) -> io::Result<F> {
        if let Some(file) = self.get(id) {
            return Ok(file);
        }
        let file = lock(disk).open(name, Access::Write)?;
        self.put(id, file.clone());
        Ok(file)
    }

    pub(super) fn put(&self, id: u64, file: F) {
        let mut open = lock(&self.open);
        open.uses += 1;
        let uses = open.uses;
        open.files.insert(id, (file, uses));
        if open.files.len() > MOST {
            let oldest = open.files.iter().min_by_key(|(_, (_, used))| *used);
            let oldest = oldest.map(|(id, _)| *id);
            oldest.map(|id| open.files.remove(&id));
        }
    }

    pub(super) fn close(&self, id: u64) {
        lock(&self.open).files.remove(&id);
    }

    pub(super) fn clear(&self) {
        lock(&self.open).files.clear();
    }
}

//! The replacement of a damaged file.

use std::sync::Arc;
use std::{fmt, io};

use rota_storage::acceptor::{Access, LogDisk, LogFile as _};

use super::record::Run;
use super::segment::{HEADER, Index, header, name};
use super::state::Segment;
use super::sync::new_name;
use super::{Inner, Store, lock};

/// A file that is to take the place of a damaged one: it gets the records from another replica, run by run. Until it is
/// [finished](Self::finish) the old file stays.
pub struct Repair<D: LogDisk + 'static> {
    inner: Arc<Inner<D>>,
    log: u64,
    /// The file to be replaced.
    old_first: u64,
    old_id: u64,
    from: u64,
    to: u64,
    new_name: String,
    new_id: u64,
    next: u64,
    bytes: u64,
    index: Index,
    file: D::File,
    is_finished: bool,
}

impl<D: LogDisk + 'static> Store<D> {
    /// Begins to replace the file with the records from `from` on before `to`, the positions of
    /// [`ReadError::Damaged`](super::ReadError::Damaged). None if there is no such file any more, or it has more
    /// records by now: the next read tells. One repair of a file at a time.
    ///
    /// # Errors
    /// The system's own.
    pub fn repair(&self, log: u64, from: u64, to: u64) -> io::Result<Option<Repair<D>>> {
        let inner = &self.inner;
        let (old_first, old_id, new_id) = {
            // No thread writes to the file meanwhile, and so none will.
            let _turn = lock(&inner.turn);
            let _filling = lock(&inner.filling);
            let mut state = lock(&inner.state);
            let new_id = state.fresh_id();
            let Some(entry) = state.logs.get_mut(&log) else {
                return Ok(None);
            };
            let found = entry.segment_of(from);
            let found = found.map(|(first, segment)| (first, segment.id, segment.next));
            match found {
                Some((first, id, next)) if next == to && from == first.max(entry.floor) => {
                    entry.seal(first);
                    (first, id, new_id)
                }
                _ => return Ok(None),
            }
        };
        let new_name = new_name(log, from);
        let file = lock(&inner.disk).open(&new_name, Access::Create)?;
        file.write_at(0, &header(log, from, new_id))?;
        Ok(Some(Repair {
            inner: Arc::clone(inner),
            log,
            old_first,
            old_id,
            from,
            to,
            new_name,
            new_id,
            next: from,
            bytes: HEADER,
            index: Index::default(),
            file,
            is_finished: false,
        }))
    }
}

impl<D: LogDisk + 'static> Repair<D> {
    /// The positions that are still needed: the first, and the one behind the last.
    pub const fn wanted(&self) -> (u64, u64) {
        (self.next, self.to)
    }

    /// Takes in a run. Records that are not [wanted](Self::wanted) next are left out.
    ///
    /// # Errors
    /// The system's own. The run can be added again.
    pub fn add(&mut self, run: &Run) -> io::Result<()> {
        if run.log() != self.log || run.first() > self.next {
            return Ok(());
        }
        let Some(part) = run.part(self.next, self.to, usize::MAX) else {
            return Ok(());
        };
        self.file.write_at(self.bytes, part.bytes())?;
        let every = lock(&self.inner.state).options.index_bytes;
        self.index.note_run(part.bytes(), self.bytes, every);
        self.bytes += part.bytes().len() as u64;
        self.next = part.next();
        Ok(())
    }

    /// Replaces the file. Returns whether that was still needed: the file may have been trimmed.
    ///
    /// # Errors
    /// `InvalidInput` when records are still wanted; else the system's own, and the old file stays.
    pub fn finish(mut self) -> io::Result<bool> {
        if self.next != self.to {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.file.sync()?;
        let inner = Arc::clone(&self.inner);
        let _filling = lock(&inner.filling);
        if self.old_first != self.from {
            // Records below the floor go with the old file.
            inner.write_floors()?;
        }
        let disk = lock(&inner.disk);
        if !inner.has_segment(self.log, self.old_first, self.old_id) {
            return Ok(false);
        }
        disk.rename(&self.new_name, &name(self.log, self.from))?;
        self.is_finished = true;
        let mut state = lock(&inner.state);
        state.forget_segment(self.log, self.old_first);
        let segment = Segment::new(self.new_id, self.to, self.bytes);
        if let Some(entry) = state.logs.get_mut(&self.log) {
            entry.segments.insert(self.from, segment);
            if self.to <= entry.floor {
                state.trimmed.insert(self.log);
            }
        }
        let index = std::mem::take(&mut self.index);
        state.index(self.log, self.from, self.new_id, index);
        state.are_names_dirty = true;
        state.troubles.on_repair();
        drop(state);
        inner.files.close(self.old_id);
        if self.old_first != self.from {
            // If the old file stays, the next start of the store removes it.
            let _ = disk.remove(&name(self.log, self.old_first));
        }
        Ok(true)
    }
}

impl<D: LogDisk + 'static> fmt::Debug for Repair<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repair")
            .field("log", &self.log)
            .field("wanted", &self.wanted())
            .finish_non_exhaustive()
    }
}

impl<D: LogDisk + 'static> Drop for Repair<D> {
    fn drop(&mut self) {
        if !self.is_finished {
            // If the new file stays, the next start of the store removes it.
            let _ = lock(&self.inner.disk).remove(&self.new_name);
        }
    }
}

//! Checkpoints: all appends until a mark become durable.

use std::collections::BTreeMap;
use std::io;

use rota_storage::acceptor::{Access, LogDisk, LogFile as _};

use crate::mutants::{self, Mutant};

use super::marks::{Known, Snapshot};
use super::record::{Run, Seed};
use super::segment::{Blocks, Entry, HEADER, header, name, walk};
use super::state::Segment;
use super::tails::{Extent, Tails};
use super::{Inner, Store, lock};

/// All appends to a store until some time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Mark(pub(super) u64);

impl<D: LogDisk + 'static> Store<D> {
    /// A mark behind all appends until now.
    pub fn mark(&self) -> Mark {
        let mut state = lock(&self.inner.state);
        let mark = state.marks.set();
        state.cache.push_mark(mark);
        drop(state);
        self.inner.work.notify_one();
        Mark(mark)
    }

    /// Waits until all appends before `mark` are written, and makes them durable. The writer goes on meanwhile.
    ///
    /// # Errors
    /// When the disk fails, records are missing, or a later mark was synced. A later mark may succeed.
    pub fn sync(&self, mark: Mark) -> io::Result<Tails> {
        let inner = &self.inner;
        let Snapshot { mut logs, gap } = inner.reached(mark)?;
        if let Some(gap) = gap {
            let (log, from, to) = (gap.log, gap.from, gap.to);
            let why = format!("records {from} to {to} of log {log} are missing");
            return Err(io::Error::other(why));
        }
        // Records that were trimmed behind the mark may not be in files any more, though the mark's state has them.
        inner.write_floors()?;
        if !mutants::on(Mutant::D05) {
            inner.sync_dirty()?;
        }
        inner.rename_extents(&mut logs);
        Ok(Tails {
            store: inner.store,
            logs,
        })
    }
}

impl<D: LogDisk> Inner<D> {
    fn reached(&self, mark: Mark) -> io::Result<Snapshot> {
        let mut state = lock(&self.state);
        loop {
            match state.marks.take(mark.0) {
                Known::Reached(snapshot) => return Ok(snapshot),
                Known::Nothing => return Err(io::Error::other("the mark is not known any more")),
                Known::Set if state.is_failing => {
                    return Err(io::Error::other(state.troubles.last_error()));
                }
                Known::Set if state.is_stopping => {
                    return Err(io::Error::other("the store is closed"));
                }
                Known::Set => state = self.wait(state),
            }
        }
    }

    /// Gives extents the ids of files that were written anew or replaced, which have the same records.
    fn rename_extents(&self, logs: &mut BTreeMap<u64, Vec<Extent>>) {
        let state = lock(&self.state);
        for (log, extents) in logs {
            let Some(entry) = state.logs.get(log) else {
                continue;
            };
            for extent in extents {
                let segment = entry.segments.get(&extent.first);
                let has_all = |segment: &&Segment| segment.bytes >= extent.bytes;
                if let Some(segment) = segment.filter(has_all) {
                    extent.id = segment.id;
                }
            }
        }
    }

    fn sync_dirty(&self) -> io::Result<()> {
        let mut dirty = std::mem::take(&mut lock(&self.state).dirty);
        while let Some((log, first)) = dirty.first().copied() {
            if let Err(error) = self.sync_segment(log, first) {
                let mut state = lock(&self.state);
                state.troubles.on_error("sync", &error);
                state.dirty.extend(dirty);
                return Err(error);
            }
            dirty.pop_first();
        }
        if !std::mem::take(&mut lock(&self.state).are_names_dirty) {
            return Ok(());
        }
        let synced = lock(&self.disk).sync_names();
        if let Err(error) = &synced {
            let mut state = lock(&self.state);
            state.are_names_dirty = true;
            state.troubles.on_error("sync of names", error);
        }
        synced
    }

    fn sync_segment(&self, log: u64, first: u64) -> io::Result<()> {
        let found = {
            let state = lock(&self.state);
            let segment = state.logs.get(&log).and_then(|l| l.segments.get(&first));
            segment.map(|segment| (segment.id, segment.is_suspect))
        };
        let Some((id, is_suspect)) = found else {
            return Ok(());
        };
        if is_suspect {
            return self.write_anew(log, first, id);
        }
        let file = self.files.get_or_open(&self.disk, id, &name(log, first));
        let synced = match file {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return match self.lose_file(log, first, id) {
                    true => Err(error),
                    false => Ok(()),
                };
            }
            Err(error) => return Err(error),
            Ok(file) => file.sync(),
        };
        if synced.is_err() {
            let mut state = lock(&self.state);
            if let Some(entry) = state.logs.get_mut(&log) {
                entry.seal(first);
                if let Some(segment) = entry.same(first, id) {
                    segment.is_suspect = true;
                }
            }
        }
        synced
    }

    /// Notes that a file is not there. Returns whether it should be.
    pub(super) fn lose_file(&self, log: u64, first: u64, id: u64) -> bool {
        let mut state = lock(&self.state);
        let entry = state.logs.get_mut(&log);
        let is_known = entry.and_then(|entry| entry.same(first, id)).is_some();
        let nothing = Entry {
            position: first,
            offset: HEADER,
        };
        state.lose(log, first, id, nothing);
        is_known
    }

    /// Reads the bytes of a file.
    fn read_back(&self, name: &str, id: u64, bytes: u64) -> io::Result<(D::File, Vec<u8>)> {
        let file = self.files.get_or_open(&self.disk, id, name)?;
        let mut all = vec![0; usize::try_from(bytes).unwrap_or(0)];
        let read = file.read_at(0, &mut all)?;
        all.truncate(read);
        Ok((file, all))
    }

    /// Writes a file anew after a failed sync, since the system believes now that its bytes are written.
    fn write_anew(&self, log: u64, first: u64, id: u64) -> io::Result<()> {
        let (next, bytes) = {
            // The file is sealed: once a write that has begun is done, no other one follows.
            let _turn = lock(&self.turn);
            let _filling = lock(&self.filling);
            let mut state = lock(&self.state);
            let entry = state.logs.get_mut(&log);
            match entry.and_then(|entry| entry.same(first, id)) {
                Some(segment) => (segment.next, segment.bytes),
                None => return Ok(()),
            }
        };
        // Records that cannot be read are missing, and come from other replicas.
        let read = self.read_back(&name(log, first), id, bytes);
        let (file, mut all) = read.inspect_err(|_| {
            self.lose_file(log, first, id);
        })?;
        // The file may have more records, which another file has, too.
        let records = all.split_off(all.len().min(HEADER as usize));
        let run = Run::check(log, first, records.into());
        let run = run.ok().and_then(|run| run.part(first, next, usize::MAX));
        let Some(run) = run.filter(|run| run.next() == next) else {
            let begin = Entry {
                position: first,
                offset: HEADER,
            };
            let mut blocks = Blocks::new(&file, bytes);
            let end = walk(&mut blocks, Some(Seed::of(log)), begin, next, |_| {})?;
            lock(&self.state).lose(log, first, id, end);
            return Err(io::Error::other("what was written could not be read back"));
        };
        let fresh = lock(&self.state).fresh_id();
        let mut all = header(log, first, fresh).to_vec();
        all.extend_from_slice(run.bytes());
        let new = again_name(log, first);
        let file = lock(&self.disk).open(&new, Access::Create)?;
        file.write_at(0, &all)?;
        file.sync()?;
        // With the disk's lock, so that no thread removes the file meanwhile.
        let disk = lock(&self.disk);
        if !self.has_segment(log, first, id) {
            return disk.remove(&new);
        }
        disk.rename(&new, &name(log, first))?;
        let mut state = lock(&self.state);
        state.are_names_dirty = true;
        let entry = state.logs.get_mut(&log);
        if let Some(segment) = entry.and_then(|entry| entry.same(first, id)) {
            segment.id = fresh;
            segment.is_suspect = false;
            if segment.bytes != all.len() as u64 {
                (segment.bytes, segment.index, segment.hint) = (all.len() as u64, None, None);
            }
        }
        drop(state);
        self.files.close(id);
        Ok(())
    }

    /// Whether a segment is still this file.
    pub(super) fn has_segment(&self, log: u64, first: u64, id: u64) -> bool {
        let mut state = lock(&self.state);
        let entry = state.logs.get_mut(&log);
        entry.is_some_and(|entry| entry.same(first, id).is_some())
    }
}

/// The name of a segment that is written anew.
pub(super) fn again_name(log: u64, first: u64) -> String {
    format!("{}.again", name(log, first))
}

/// The name of a file that is to take the place of a segment.
pub(super) fn new_name(log: u64, first: u64) -> String {
    format!("{}.new", name(log, first))
}

//! The begin with a state: the search for its records in files, and for those that are missing.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use rota_storage::acceptor::{Access, LogDisk, LogFile as _};

use super::ranges::Ranges;
use super::record::Seed;
use super::segment::{Blocks, Entry, HEADER, id_of, name, parse_name, walk};
use super::state::Segment;
use super::tails::{Extent, Tails};
use super::{Inner, Missing, Store, lock};

/// The system's error for a sector that cannot be read.
const EIO: i32 = 5;

/// The files of each log, by the position of their first record.
type Listed = BTreeMap<u64, BTreeMap<u64, File>>;

#[derive(Clone, Copy)]
struct File {
    length: u64,
    /// None if it has no good header.
    id: Option<u64>,
}

/// The good records of a file.
#[derive(Clone, Copy)]
struct Piece {
    extent: Extent,
    /// The extent's bytes end where the record before `next` does.
    is_exact: bool,
    /// All of it was durable at the checkpoint.
    is_durable: bool,
}

/// The files of a log that stay, and the first positions of those that go.
#[derive(Default)]
struct Adopted {
    pieces: Vec<Piece>,
    gone: Vec<u64>,
}

impl<D: LogDisk + 'static> Store<D> {
    /// Takes in a state: of each log its id, its first position and the next. Records in files beyond that are cut off,
    /// as they will be appended again; logs that are not named go. Records in memory are forgotten.
    ///
    /// `tails` are the newest that are known to be this store's, whether or not the state is of the same checkpoint.
    /// They are trusted, and of files that did not grow since nothing is read. Other files are read through, so without
    /// tails this takes long. Returned are the positions that have to be [filled](Self::fill) in.
    ///
    /// # Errors
    /// The system's own. The caller has to call again then.
    pub fn begin(
        &self,
        logs: &[(u64, u64, u64)],
        tails: Option<&Tails>,
    ) -> io::Result<Vec<Missing>> {
        let inner = &self.inner;
        let _turn = lock(&inner.turn);
        let _filling = lock(&inner.filling);
        inner.files.clear();
        inner.reset(logs);
        inner.changed.notify_all();
        let tails = tails.filter(|tails| tails.store == inner.store);
        let mut listed = inner.list()?;
        let mut all = Vec::new();
        let mut gone: Vec<(u64, u64)> = Vec::new();
        for (log, _, next) in logs {
            let files = listed.remove(log).unwrap_or_default();
            let floor = lock(&inner.state).logs.get(log).map_or(1, |l| l.floor);
            let mut adopted = inner.adopt(*log, *next, &files, tails)?;
            adopted.drop_below(floor);
            gone.extend(adopted.gone.iter().map(|first| (*log, *first)));
            all.push((*log, floor, *next, adopted.pieces));
        }
        for (log, files) in listed {
            gone.extend(files.into_keys().map(|first| (log, first)));
        }
        if !gone.is_empty() {
            inner.write_floors()?;
        }
        {
            let disk = lock(&inner.disk);
            for (log, first) in gone {
                disk.remove(&name(log, first))?;
            }
        }
        let mut missing = Vec::new();
        for (log, floor, next, pieces) in all {
            missing.extend(inner.install(log, floor, next, &pieces));
        }
        Ok(missing)
    }
}

impl<D: LogDisk> Inner<D> {
    /// Forgets all but the floors, and raises these to the state's.
    fn reset(&self, logs: &[(u64, u64, u64)]) {
        let mut state = lock(&self.state);
        state.reset();
        state.is_failing = false;
        let mut deleted: Vec<u64> = Vec::new();
        for (log, entry) in &state.logs {
            if entry.is_deleted() {
                deleted.push(*log);
            }
        }
        let named: BTreeSet<u64> = logs.iter().map(|(log, ..)| *log).collect();
        for log in deleted {
            let is_named = named.contains(&log);
            let entry = state.logs.entry(log).or_default();
            entry.deleted_before = (!is_named).then_some(0);
        }
        for (log, first, next) in logs {
            state.raise(*log, *first);
            state.logs.entry(*log).or_default().next = *next;
        }
    }

    /// The files of all logs. Files that were to take others' places are removed.
    fn list(&self) -> io::Result<Listed> {
        let disk = lock(&self.disk);
        let mut listed = Listed::new();
        for file in disk.names()? {
            if let Some((log, first)) = parse_name(&file) {
                let file = disk.open(&file, Access::Write)?;
                let length = file.bytes()?;
                let id = if_readable(id_of(&file, log, first), None)?;
                let file = File { length, id };
                listed.entry(log).or_default().insert(first, file);
                continue;
            }
            let rest = file.strip_suffix(".new");
            let rest = rest.or_else(|| file.strip_suffix(".again"));
            if rest.and_then(parse_name).is_some() {
                disk.remove(&file)?;
            }
        }
        Ok(listed)
    }

    fn adopt(
        &self,
        log: u64,
        next: u64,
        files: &BTreeMap<u64, File>,
        tails: Option<&Tails>,
    ) -> io::Result<Adopted> {
        let trusted = |first: u64, file: &File| {
            let extent = tails?.extent(log, first)?;
            (file.length >= extent.bytes && file.id == Some(extent.id)).then_some(extent)
        };
        let mut adopted = Adopted::default();
        for (first, file) in files {
            let durable = trusted(*first, file);
            let behind = files.range(first + 1..);
            let mut behind = behind.filter(|(first, file)| trusted(**first, file).is_some());
            let limit = behind.next().map_or(next, |(first, _)| next.min(*first));
            let last = adopted.pieces.last();
            let is_covered = last.is_some_and(|last| last.is_durable && *first < last.extent.next);
            if *first >= next || (is_covered && durable.is_none()) {
                adopted.gone.push(*first);
                continue;
            }
            let id = file.id.filter(|_| *first < limit);
            let start = durable.or(id.map(|id| Extent {
                first: *first,
                id,
                next: *first,
                bytes: HEADER,
            }));
            let piece = match start {
                Some(start) => self.look(log, start, file.length, limit)?,
                None => None,
            };
            let piece = piece.map(|piece| Piece {
                is_durable: durable.is_some() && piece.is_durable,
                ..piece
            });
            adopted.take(*first, piece);
        }
        Ok(adopted)
    }

    /// The records of a file before `limit`, given those that are known.
    fn look(&self, log: u64, known: Extent, length: u64, limit: u64) -> io::Result<Option<Piece>> {
        let first = known.first;
        let start = Entry {
            position: known.next,
            offset: known.bytes,
        };
        let mut end = start;
        if start.position < limit && start.offset < length {
            let file = lock(&self.disk).open(&name(log, first), Access::Write)?;
            let mut blocks = Blocks::new(&file, length);
            let seen = walk(&mut blocks, Some(Seed::of(log)), start, limit, |_| {});
            end = if_readable(seen, start)?;
        }
        let extent = Extent {
            next: end.position.min(limit),
            bytes: end.offset,
            ..known
        };
        Ok((extent.next > first).then_some(Piece {
            extent,
            is_exact: end.position <= limit,
            is_durable: end == start,
        }))
    }

    /// Takes the files that stay into the state of the store. Returns the missing positions.
    fn install(&self, log: u64, floor: u64, next: u64, pieces: &[Piece]) -> Vec<Missing> {
        let mut state = lock(&self.state);
        let mut missing = Ranges::default();
        missing.add(floor, next);
        let most = state.options.segment_bytes;
        let mut active = None;
        for piece in pieces {
            let Extent {
                first,
                id,
                next,
                bytes,
            } = piece.extent;
            missing.remove(first, next);
            let entry = state.logs.entry(log).or_default();
            entry.segments.insert(first, Segment::new(id, next, bytes));
            let can_grow = piece.is_exact && next == entry.next && bytes < most;
            active = (can_grow && piece.is_durable).then_some(first);
            if !piece.is_durable {
                // An earlier process may have failed to sync the file. The system would not say so again.
                if let Some(segment) = entry.segments.get_mut(&first) {
                    segment.is_suspect = true;
                }
                state.dirty.insert((log, first));
            }
        }
        let entry = state.logs.entry(log).or_default();
        entry.active = active;
        entry.missing = missing;
        let missing = entry.missing.iter();
        missing
            .map(|(from, to)| Missing { log, from, to })
            .collect()
    }
}

/// Takes a read error of the disk for the end of the readable part: the rest has to come from another replica.
fn if_readable<T>(seen: io::Result<T>, or: T) -> io::Result<T> {
    match seen {
        Err(error) if error.raw_os_error() == Some(EIO) => Ok(or),
        seen => seen,
    }
}

impl Adopted {
    /// Takes in the records of a file, next to those of files before it.
    fn take(&mut self, first: u64, piece: Option<Piece>) {
        let Some(piece) = piece else {
            self.gone.push(first);
            return;
        };
        match self.pieces.last_mut() {
            Some(last) if piece.extent.next <= last.extent.next => self.gone.push(first),
            Some(last) => {
                if first < last.extent.next {
                    (last.extent.next, last.is_exact) = (first, false);
                }
                self.pieces.push(piece);
            }
            None => self.pieces.push(piece),
        }
    }

    /// Gives up files that are all below the floor.
    fn drop_below(&mut self, floor: u64) {
        let below = self
            .pieces
            .partition_point(|piece| piece.extent.next <= floor);
        let below = self.pieces.drain(..below);
        self.gone.extend(below.map(|piece| piece.extent.first));
    }
}

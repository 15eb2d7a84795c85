//! Reads of records, from memory or from files.

use std::io;

use bytes::Bytes;
use rota_storage::acceptor::{LogDisk, LogFile};

use super::cache::join;
use super::record::{HEADER_BYTES, Head, Run, Seed};
use super::segment::{Blocks, Entry, HEADER, Index, id_of, name, walk};
use super::state::{Segment, State};
use super::{Inner, ReadError, Store, lock};

/// The bytes of a read, at most, about.
const MOST: usize = 16 << 20;

/// The source of records.
enum Found {
    Cached(Vec<Run>),
    Disk(Plan),
}

/// A read of a file.
#[derive(Clone, Copy)]
struct Plan {
    log: u64,
    from: u64,
    to: u64,
    most: usize,
    first: u64,
    id: u64,
    /// The end of its records: the position and the place in the file.
    end: Entry,
    /// The place to begin at. None if the file has no index yet.
    start: Option<Entry>,
    /// The bytes, at most, from that place to the first wanted record.
    skip: usize,
}

/// The wanted records in a piece of a file.
enum Picked {
    /// The records: their beginning and end in the piece, and the position behind them.
    Run(usize, usize, u64),
    /// More bytes are needed: this number, from this record on.
    More(Entry, usize),
    Bad,
}

impl<D: LogDisk + 'static> Store<D> {
    /// The records from `from` on before `to` that are in memory: of about `most` bytes, at least one. The call never
    /// waits for the disk.
    pub fn cached(&self, log: u64, from: u64, to: u64, most: usize) -> Option<Run> {
        let pieces = lock(&self.inner.state).cached(log, from, to, most);
        join(&pieces, from, to, most)
    }

    /// The records from `from` on before `to`: of about `most` bytes, at least one. A read ends at the end of a file.
    ///
    /// # Errors
    /// The reason why there is no record.
    pub fn read(&self, log: u64, from: u64, to: u64, most: usize) -> Result<Run, ReadError> {
        let most = most.min(MOST);
        loop {
            let found = lock(&self.inner.state).find(log, from, to, most)?;
            let run = match found {
                Found::Cached(pieces) => join(&pieces, from, to, most),
                Found::Disk(plan) => self.inner.read_file(&plan)?,
            };
            // Without a run, the file went meanwhile, and the state tells why.
            if let Some(run) = run {
                return Ok(run);
            }
        }
    }
}

impl State {
    /// Runs in memory with the records from `from` on: enough for `most` bytes, or one.
    fn cached(&self, log: u64, from: u64, to: u64, most: usize) -> Vec<Run> {
        match self.logs.get(&log) {
            Some(entry) if from >= entry.floor => self.cache.runs(log, from, to, most),
            _ => Vec::new(),
        }
    }

    fn find(&mut self, log: u64, from: u64, to: u64, most: usize) -> Result<Found, ReadError> {
        let Some(entry) = self.logs.get(&log) else {
            return Err(ReadError::NotThere { next: 0 });
        };
        let (floor, next) = (entry.floor, entry.next);
        if from < floor {
            return Err(ReadError::Trimmed { first: floor });
        }
        if from >= next.min(to) {
            return Err(ReadError::NotThere { next });
        }
        let pieces = self.cached(log, from, to, most);
        if !pieces.is_empty() {
            return Ok(Found::Cached(pieces));
        }
        let entry = self.logs.get(&log);
        if let Some((from, to)) = entry.and_then(|entry| entry.missing.at(from)) {
            return Err(ReadError::Missing { from, to });
        }
        let Some((first, segment)) = entry.and_then(|entry| entry.segment_of(from)) else {
            let to = from + 1;
            return Err(ReadError::Missing { from, to });
        };
        let start = segment.place_before(first, from);
        let is_exact = start.is_some_and(|start| start.position == from);
        let every = usize::try_from(self.options.index_bytes).unwrap_or(MOST);
        let plan = Plan {
            log,
            from,
            to: to.min(segment.next),
            most,
            first,
            id: segment.id,
            end: Entry {
                position: segment.next,
                offset: segment.bytes,
            },
            start,
            skip: if is_exact { 0 } else { every.min(MOST) },
        };
        if segment.index.is_some() {
            self.touch(log, first);
        }
        Ok(Found::Disk(plan))
    }

    /// Notes that a file has bad records; the error for that, or none if the file is another one now.
    pub(super) fn damaged(&mut self, log: u64, first: u64, id: u64) -> Option<ReadError> {
        let entry = self.logs.get_mut(&log)?;
        let floor = entry.floor;
        let segment = entry.same(first, id)?;
        let to = segment.next;
        let is_new = !std::mem::replace(&mut segment.is_damaged, true);
        segment.hint = None;
        // The file is going to be replaced.
        entry.seal(first);
        if is_new {
            self.troubles.on_damage();
        }
        let from = first.max(floor);
        match from < to {
            true => Some(ReadError::Damaged { from, to }),
            false => Some(ReadError::Trimmed { first: floor }),
        }
    }
}

impl Segment {
    /// The place of a record that is not far before this one; none if there is no index.
    fn place_before(&self, first: u64, position: u64) -> Option<Entry> {
        let beginning = Entry {
            position: first,
            offset: HEADER,
        };
        if position == first {
            return Some(beginning);
        }
        let hint = self.hint.filter(|hint| hint.position <= position);
        let Some(index) = &self.index else {
            return hint.filter(|hint| hint.position == position);
        };
        let noted = index.before(position).unwrap_or(beginning);
        Some(match hint {
            Some(hint) if hint.position > noted.position => hint,
            _ => noted,
        })
    }
}

impl<D: LogDisk> Inner<D> {
    fn read_file(&self, plan: &Plan) -> Result<Option<Run>, ReadError> {
        let Plan { log, first, id, .. } = *plan;
        let failed = |error| {
            let state = lock(&self.state);
            let floor = state.logs.get(&log).map_or(first, |entry| entry.floor);
            ReadError::Io {
                from: first.max(floor),
                to: plan.end.position,
                error,
            }
        };
        let file = match self.files.get_or_open(&self.disk, id, &name(log, first)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.lose_file(log, first, id);
                return Ok(None);
            }
            file => file.map_err(failed)?,
        };
        let picked = match plan.start {
            Some(start) => read_run(&file, plan, start).map_err(failed)?,
            None => {
                let index = self.indexed(&file, plan).map_err(failed)?;
                if let Some(index) = index {
                    lock(&self.state).index(log, first, id, index);
                    return Ok(None);
                }
                None
            }
        };
        let mut state = lock(&self.state);
        let Some((run, end)) = picked else {
            return state.damaged(log, first, id).map_or(Ok(None), Err);
        };
        let entry = state.logs.get_mut(&log);
        if let Some(segment) = entry.and_then(|entry| entry.same(first, id)) {
            segment.hint = Some(end);
        }
        Ok(Some(run))
    }

    /// The index of a file, up to its first bad header; none if the header of the file is bad.
    fn indexed(&self, file: &D::File, plan: &Plan) -> io::Result<Option<Index>> {
        if id_of(file, plan.log, plan.first)? != Some(plan.id) {
            return Ok(None);
        }
        let every = lock(&self.state).options.index_bytes;
        let mut index = Index::default();
        let mut blocks = Blocks::new(file, plan.end.offset);
        let start = Entry {
            position: plan.first,
            offset: HEADER,
        };
        walk(&mut blocks, None, start, plan.end.position, |here| {
            index.note(here.position, here.offset, every);
        })?;
        Ok(Some(index))
    }
}

/// Reads the wanted records, and the place behind them; none when they are damaged.
fn read_run<F: LogFile>(file: &F, plan: &Plan, start: Entry) -> io::Result<Option<(Run, Entry)>> {
    let seed = Seed::of(plan.log);
    let mut here = start;
    let mut wanted = (plan.most + plan.skip).max(HEADER_BYTES);
    loop {
        let left = plan.end.offset.saturating_sub(here.offset);
        let mut bytes = vec![0; wanted.min(usize::try_from(left).unwrap_or(wanted))];
        let read = file.read_at(here.offset, &mut bytes)?;
        bytes.truncate(read);
        match pick(&bytes, seed, here, plan) {
            Picked::Run(from, to, next) => {
                let end = Entry {
                    position: next,
                    offset: here.offset + to as u64,
                };
                let bytes = Bytes::from(bytes).slice(from..to);
                let run = Run::trusted(plan.log, plan.from, next, bytes);
                return Ok(Some((run, end)));
            }
            Picked::More(record, need) => {
                let is_there = record.offset + need as u64 <= plan.end.offset;
                let gets_on = record.offset > here.offset || need > read;
                if !is_there || !gets_on || read == 0 {
                    return Ok(None);
                }
                here = record;
                wanted = plan.most.max(need);
            }
            Picked::Bad => return Ok(None),
        }
    }
}

/// Picks the wanted records out of a piece of a file that begins with the record `here`. Only their sums are checked.
fn pick(bytes: &[u8], seed: Seed, here: Entry, plan: &Plan) -> Picked {
    let (mut at, mut position, mut start) = (0, here.position, 0);
    while position < plan.to {
        if position == plan.from {
            start = at;
        }
        let has_some = position > plan.from;
        let more = |need| {
            let offset = here.offset + at as u64;
            Picked::More(Entry { position, offset }, need)
        };
        let rest = bytes.get(at..).unwrap_or_default();
        if rest.len() < HEADER_BYTES {
            match has_some {
                true => break,
                false => return more(HEADER_BYTES),
            }
        }
        let Some(head) = Head::read(rest).filter(|head| head.position == position) else {
            match has_some {
                true => break,
                false => return Picked::Bad,
            }
        };
        if has_some && at + head.total() - start > plan.most {
            break;
        }
        if position >= plan.from {
            let Some(record) = rest.get(..head.total()) else {
                match has_some {
                    true => break,
                    false => return more(head.total()),
                }
            };
            if !head.is_good(seed, record) {
                match has_some {
                    true => break,
                    false => return Picked::Bad,
                }
            }
        }
        at += head.total();
        position += 1;
    }
    Picked::Run(start, at, position)
}

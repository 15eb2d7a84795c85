//! Reads of whole files that nobody asked for, so that damage is found while another replica still has the records.

use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;
use std::{fmt, io};

use rota_storage::acceptor::{LogDisk, LogFile};

use super::record::Seed;
use super::segment::{Blocks, Entry, HEADER, id_of, name, walk};
use super::state::State;
use super::{Inner, ReadError, Store, lock};

/// The name of a file: its log, and the position of its first record.
type FileName = (u64, u64);

/// A file as it is when it begins to be read.
#[derive(Clone, Copy)]
struct Whole {
    log: u64,
    first: u64,
    id: u64,
    /// The first position that anybody may read.
    floor: u64,
    end: Entry,
}

/// Rounds through all files, in the order of their logs and positions.
pub struct Scrub<D: LogDisk + 'static> {
    inner: Arc<Inner<D>>,
    /// The file that was read last.
    after: FileName,
}

impl<D: LogDisk + 'static> Scrub<D> {
    /// A round that begins with the first file.
    pub fn new(store: &Store<D>) -> Self {
        Self {
            inner: Arc::clone(&store.inner),
            after: (0, 0),
        }
    }

    /// A round that begins somewhere: a `draw` that is random makes each file as likely.
    pub fn anywhere(store: &Store<D>, draw: u64) -> Self {
        let after = any_file(&lock(&store.inner.state), draw);
        Self {
            after,
            ..Self::new(store)
        }
    }

    /// Reads all records of the next file and checks their sums, whether they are in memory or not. `read` is called
    /// with the place of each record, in bytes, before the next one is read: it may wait. Returns the file's log and what
    /// is wrong with it, as [`Store::read`] tells it; `None` behind the last file, and the next call begins anew.
    pub fn next(&mut self, read: impl FnMut(u64)) -> Option<(u64, Result<(), ReadError>)> {
        let Some(whole) = file_after(&lock(&self.inner.state), self.after) else {
            self.after = (0, 0);
            return None;
        };
        self.after = (whole.log, whole.first);
        Some((whole.log, self.look(&whole, read)))
    }

    fn look(&self, whole: &Whole, read: impl FnMut(u64)) -> Result<(), ReadError> {
        let (inner, Whole { log, first, id, .. }) = (&self.inner, *whole);
        let found = match inner.files.get_or_open(&inner.disk, id, &name(log, first)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                inner.lose_file(log, first, id);
                return Ok(());
            }
            file => file.and_then(|file| is_whole(&file, whole, read)),
        };
        match found {
            Ok(true) => Ok(()),
            // Nothing is wrong if the file is another one by now, or was trimmed.
            Ok(false) => match lock(&inner.state).damaged(log, first, id) {
                None | Some(ReadError::Trimmed { .. }) => Ok(()),
                Some(error) => Err(error),
            },
            Err(error) => Err(ReadError::Io {
                from: first.max(whole.floor),
                to: whole.end.position,
                error,
            }),
        }
    }
}

impl<D: LogDisk + 'static> fmt::Debug for Scrub<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scrub")
            .field("after", &self.after)
            .finish_non_exhaustive()
    }
}

/// The name of one of the files, whichever the draw says.
fn any_file(state: &State, draw: u64) -> FileName {
    let all = state.logs.values().map(|log| log.segments.len() as u64);
    let mut left = draw % all.sum::<u64>().max(1);
    for (log, entry) in &state.logs {
        let count = entry.segments.len() as u64;
        if left < count {
            let first = entry.segments.keys().nth(left as usize);
            return (*log, first.copied().unwrap_or(0));
        }
        left -= count;
    }
    (0, 0)
}

/// The file behind one.
fn file_after(state: &State, (log, first): FileName) -> Option<Whole> {
    let whole = |log: u64, after| {
        let entry = state.logs.get(&log)?;
        let mut behind = entry.segments.range((after, Unbounded));
        // Files that are only to be removed are nobody's.
        let (first, segment) = behind.find(|(_, segment)| segment.next > entry.floor)?;
        Some(Whole {
            log,
            first: *first,
            id: segment.id,
            floor: entry.floor,
            end: Entry {
                position: segment.next,
                offset: segment.bytes,
            },
        })
    };
    let mut later = state.logs.range((Excluded(log), Unbounded));
    whole(log, Excluded(first)).or_else(|| later.find_map(|(log, _)| whole(*log, Unbounded)))
}

/// Whether all records of a file are good.
fn is_whole<F: LogFile>(file: &F, whole: &Whole, mut read: impl FnMut(u64)) -> io::Result<bool> {
    if id_of(file, whole.log, whole.first)? != Some(whole.id) {
        return Ok(false);
    }
    let mut blocks = Blocks::new(file, whole.end.offset);
    let start = Entry {
        position: whole.first,
        offset: HEADER,
    };
    let to = whole.end.position;
    let seed = Some(Seed::of(whole.log));
    let end = walk(&mut blocks, seed, start, to, |here| read(here.offset))?;
    // The file may have more bytes: records that another file has, too.
    Ok(end.position == to)
}

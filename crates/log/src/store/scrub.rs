//! Reads of whole files that nobody asked for, so that damage is found while another replica still has the records.

use std::io;
use std::ops::Bound::{Excluded, Unbounded};

use rota_storage::acceptor::{LogDisk, LogFile};

use super::record::Seed;
use super::segment::{Blocks, Entry, HEADER, id_of, name, walk};
use super::state::State;
use super::{Inner, ReadError, Store, lock};

/// The name of a file: its log, and the position of its first record.
pub type FileName = (u64, u64);

/// A file as it is when a scrub begins to read it.
#[derive(Clone, Copy)]
struct Whole {
    log: u64,
    first: u64,
    id: u64,
    /// The first position that anybody may read.
    floor: u64,
    end: Entry,
}

impl<D: LogDisk + 'static> Store<D> {
    /// Reads all records of the file behind the one with the name `after`, in the order of names, and checks their sums,
    /// whether they are in memory or not. `read` is called with the place of each record, in bytes, before the next one
    /// is read: it may wait. Returns the file's name and what is wrong with it, as [`Self::read`] tells it; `None` behind
    /// the last file.
    pub fn scrub(
        &self,
        after: FileName,
        read: impl FnMut(u64),
    ) -> Option<(FileName, Result<(), ReadError>)> {
        let file = lock(&self.inner.state).file_after(after)?;
        let found = self.inner.scrub(&file, read);
        Some(((file.log, file.first), found))
    }

    /// The name of one of the files, to begin behind: a `draw` that is random makes each one as likely.
    pub fn any_file(&self, draw: u64) -> FileName {
        let state = lock(&self.inner.state);
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
}

impl State {
    fn file_after(&self, (log, first): FileName) -> Option<Whole> {
        let whole = |log: u64, after| {
            let entry = self.logs.get(&log)?;
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
        let mut later = self.logs.range((Excluded(log), Unbounded));
        whole(log, Excluded(first)).or_else(|| later.find_map(|(log, _)| whole(*log, Unbounded)))
    }
}

impl<D: LogDisk> Inner<D> {
    fn scrub(&self, whole: &Whole, read: impl FnMut(u64)) -> Result<(), ReadError> {
        let Whole {
            log,
            first,
            id,
            end,
            ..
        } = *whole;
        let file = match self.files.get_or_open(&self.disk, id, &name(log, first)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.lose_file(log, first, id);
                return Ok(());
            }
            file => file.and_then(|file| is_whole(&file, whole, read)),
        };
        match file {
            Ok(true) => Ok(()),
            // Nothing is wrong if the file is another one by now.
            Ok(false) => lock(&self.state)
                .damaged(log, first, id)
                .map_or(Ok(()), Err),
            Err(error) => Err(ReadError::Io {
                from: first.max(whole.floor),
                to: end.position,
                error,
            }),
        }
    }
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

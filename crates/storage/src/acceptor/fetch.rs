//! Reading records back, for processes that catch up.

use super::dir::LogDisk;
use super::error::{Damage, FetchError};
use super::header::Position;
use super::index::Entry;
use super::log::DiskLog;
use super::record::Record;
use super::scan::Window;
use super::survey::segment_name;

/// The most bytes that are read at once.
const MOST: usize = 1 << 20;
/// The fewest bytes that are read at once.
const LEAST: usize = 16 << 10;

/// The records that were asked for, or the first of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fetched {
    /// Votes and skips, by instance; nothing is kept of those instances that are missing.
    pub records: Vec<Record>,
    /// The instance to go on with, if this is not all.
    pub next: Option<u64>,
}

impl<D: LogDisk> DiskLog<D> {
    /// The records of the instances from `first` to `last`: payloads of about `bytes`, but at least one record.
    ///
    /// # Errors
    /// [`FetchError`].
    pub fn fetch(&mut self, first: u64, last: u64, bytes: usize) -> Result<Fetched, FetchError> {
        if self.failed {
            return Err(FetchError::Failed);
        }
        if first < self.first() {
            return Err(FetchError::Trimmed {
                first: self.first(),
            });
        }
        // The newest records may not be in the file yet.
        self.write().map_err(|_| FetchError::Failed)?;
        let (mut records, mut taken, mut from) = (Vec::new(), 0, first);
        let mut window = None;
        while let Some(entry) = self.index.next(from, last) {
            if taken >= bytes && !records.is_empty() {
                let next = Some(from);
                return Ok(Fetched { records, next });
            }
            let record = self.read(entry, &mut window, bytes)?;
            taken += record.bytes.len();
            records.push(record);
            match entry.last.checked_add(1) {
                Some(next) if next <= last => from = next,
                _ => break,
            }
        }
        Ok(Fetched {
            records,
            next: None,
        })
    }

    fn read(
        &self,
        entry: Entry,
        window: &mut Option<(u64, Window<D::File>)>,
        bytes: usize,
    ) -> Result<Record, FetchError> {
        let Position { segment, offset } = entry.at;
        let damaged = |what| {
            FetchError::Damaged(Damage {
                file: self.disk.path().join(segment_name(segment)),
                offset,
                what,
            })
        };
        let first = self.segments.front().map_or(0, |s| s.header.number);
        let found = segment.checked_sub(first).and_then(|at| {
            let at = usize::try_from(at).ok()?;
            self.segments.get(at)
        });
        let found = found.ok_or_else(|| damaged("the segment is missing"))?;
        let window = match window {
            Some((of, window)) if *of == segment => window,
            _ => {
                let chunk = bytes.clamp(LEAST, MOST);
                let new = Window::with_chunk(found.file.clone(), chunk);
                &mut window.insert((segment, new)).1
            }
        };
        let record = window
            .record(found.header.key(), offset, found.end)
            .map_err(FetchError::Io)?;
        let (header, payload) = record.ok_or_else(|| damaged("the record is damaged"))?;
        let kind = header.kind.filter(|kind| kind.is_of_instances());
        Ok(Record {
            kind: kind.ok_or_else(|| damaged("the record is damaged"))?,
            first: entry.first,
            last: entry.last,
            bytes: payload.to_vec(),
        })
    }
}

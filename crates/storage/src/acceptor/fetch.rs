//! Reading records back, for processes that catch up.

use std::collections::VecDeque;

use super::dir::LogDisk;
use super::error::{Damage, FetchError};
use super::header::Position;
use super::index::{Entry, Index};
use super::record::Record;
use super::scan::Window;
use super::survey::{Segment, segment_name};

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

/// A reader of the records that are in the files of a log.
pub(super) struct Reader<'a, D: LogDisk> {
    disk: &'a D,
    segments: &'a VecDeque<Segment<D::File>>,
    index: &'a Index,
    /// The segment that was read last, and what is in memory of it.
    window: Option<(u64, Window<D::File>)>,
}

impl<'a, D: LogDisk> Reader<'a, D> {
    /// A reader that has read nothing. All segments follow each other.
    pub const fn new(
        disk: &'a D,
        segments: &'a VecDeque<Segment<D::File>>,
        index: &'a Index,
    ) -> Self {
        Self {
            disk,
            segments,
            index,
            window: None,
        }
    }

    /// The records of the instances from `first` to `last`: payloads of about `bytes`, but at least one record.
    pub fn fetch(mut self, first: u64, last: u64, bytes: usize) -> Result<Fetched, FetchError> {
        let (mut records, mut taken, mut from) = (Vec::new(), 0, first);
        while let Some(entry) = self.index.next(from, last) {
            if taken >= bytes && !records.is_empty() {
                let next = Some(from);
                return Ok(Fetched { records, next });
            }
            let record = match self.read(entry, bytes) {
                Ok(record) => record,
                // Those before it are sound. Whoever asks for it next is told of it.
                Err(_) if !records.is_empty() => {
                    let next = Some(from);
                    return Ok(Fetched { records, next });
                }
                Err(error) => return Err(error),
            };
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

    fn read(&mut self, entry: Entry, bytes: usize) -> Result<Record, FetchError> {
        let Position { segment, offset } = entry.at;
        let disk = self.disk;
        let damaged = |what| {
            FetchError::Damaged(Damage {
                file: disk.path().join(segment_name(segment)),
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
        let window = match &mut self.window {
            Some((of, window)) if *of == segment => window,
            _ => {
                let chunk = bytes.clamp(LEAST, MOST);
                let new = Window::with_chunk(found.file.clone(), chunk);
                &mut self.window.insert((segment, new)).1
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

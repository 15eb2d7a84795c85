//! The contents of a log's directory: all durable records must be there, as they were written.
//!
//! Used when a log is opened, and to look at one that another process has open.

use std::collections::BTreeMap;
use std::io;

use super::dir::{Access, LogDisk, LogFile};
use super::error::{Damage, LogOpenError};
use super::header::{self, BadPage, PAGE, Position, SegmentHeader};
use super::mark::{self, Mark};
use super::record::{Header, Kind, RecordRef};
use super::scan::{Take, find_synced, scan};
use super::sticky::Sticky;

const SEGMENT: &str = "segment-";
const SPARE: &str = "spare-";

/// The smallest and the largest segment: a page for the header and room behind it; offsets fit 32 bits.
pub(super) const SMALLEST: u64 = 2 * PAGE;
pub(super) const LARGEST: u64 = 2 << 30;

pub(super) fn segment_name(number: u64) -> String {
    format!("{SEGMENT}{number:016x}")
}

pub(super) fn spare_name(number: u64) -> String {
    format!("{SPARE}{number:016x}")
}

fn number_of(name: &str, prefix: &str) -> Option<u64> {
    let digits = name.strip_prefix(prefix).filter(|d| d.len() == 16)?;
    u64::from_str_radix(digits, 16).ok()
}

/// A segment that is there.
#[derive(Clone, Debug)]
pub(super) struct Segment<F> {
    pub file: F,
    pub header: SegmentHeader,
    /// The end of its good records.
    pub end: u64,
    /// The last instance that it has anything about.
    pub highest: Option<u64>,
}

/// The place where a log with this last segment ends.
pub(super) fn end_of<F>(last: Option<&Segment<F>>) -> Position {
    last.map_or_else(Position::default, |last| Position {
        segment: last.header.number,
        offset: last.end,
    })
}

impl<F> Segment<F> {
    /// Takes note of a record.
    pub fn saw(&mut self, kind: Kind, first: u64, last: u64) {
        if kind.is_of_instances() {
            self.highest = self.highest.max(Some(last.max(first)));
        }
    }
}

/// The result of a survey.
#[derive(Debug)]
pub(super) struct Survey<F> {
    /// The mark and its file.
    pub mark: Option<(F, Mark)>,
    /// The segments that are needed, without gaps unless there is damage.
    pub segments: Vec<Segment<F>>,
    /// Numbers of segments that are not needed any more, and were not dropped yet.
    pub leftovers: Vec<u64>,
    /// Numbers of files that are to become segments.
    pub spares: Vec<u64>,
    pub sticky: Sticky,
    /// In the order in which it was found.
    pub damage: Vec<Damage>,
}

/// Hands on a good record.
pub(super) type Visit<'a> = &'a mut dyn FnMut(Position, RecordRef<'_>);

struct Surveyor<'a, D: LogDisk> {
    disk: &'a D,
    access: Access,
    found: Survey<D::File>,
}

/// Reads the whole log.
pub(super) fn survey<D: LogDisk>(
    disk: &D,
    access: Access,
    visit: Visit<'_>,
) -> Result<Survey<D::File>, LogOpenError> {
    let found = Survey {
        mark: None,
        segments: Vec::new(),
        leftovers: Vec::new(),
        spares: Vec::new(),
        sticky: Sticky::default(),
        damage: Vec::new(),
    };
    let mut surveyor = Surveyor {
        disk,
        access,
        found,
    };
    surveyor.all(visit)?;
    Ok(surveyor.found)
}

impl<D: LogDisk> Surveyor<'_, D> {
    fn all(&mut self, visit: Visit<'_>) -> Result<(), LogOpenError> {
        // Before the segments: a log that is in use writes the mark after them.
        let names = self.disk.names();
        let names = names.map_err(|error| self.wrong("", "list it", error))?;
        self.read_mark(&names)?;
        let numbers = |prefix| names.iter().filter_map(move |name| number_of(name, prefix));
        self.found.spares = numbers(SPARE).collect();
        let mut segments = BTreeMap::new();
        for number in numbers(SEGMENT) {
            segments.insert(number, self.read_header(number)?);
        }
        let Some(last) = segments.keys().next_back().copied() else {
            self.check_end(0);
            return Ok(());
        };
        let oldest = self.oldest_needed(segments[&last].as_ref());
        self.found.leftovers = segments.range(..oldest).map(|(n, _)| *n).collect();
        let needed = segments.split_off(&oldest);
        self.check_gaps(oldest, last, &needed);
        self.check_end(last);
        let mut needed = needed.into_values().peekable();
        while let Some(segment) = needed.next() {
            let next = needed.peek().map(Option::as_ref);
            if let Some(segment) = segment {
                let segment = self.read_records(segment, next, visit)?;
                self.found.segments.push(segment);
            }
        }
        Ok(())
    }

    fn wrong(&self, name: &str, doing: &'static str, error: io::Error) -> LogOpenError {
        LogOpenError::Io {
            path: self.disk.path().join(name),
            doing,
            error,
        }
    }

    fn damaged(&mut self, name: &str, offset: u64, what: &'static str) {
        self.found.damage.push(Damage {
            file: self.disk.path().join(name),
            offset,
            what,
        });
    }

    fn read_mark(&mut self, names: &[String]) -> Result<(), LogOpenError> {
        if !names.iter().any(|name| name == mark::NAME) {
            if names.iter().any(|name| number_of(name, SEGMENT).is_some()) {
                self.damaged(mark::NAME, 0, "the file is missing");
            }
            return Ok(());
        }
        let file = self.disk.open(mark::NAME, self.access);
        let file = file.map_err(|error| self.wrong(mark::NAME, "open it", error))?;
        match mark::read(&file) {
            Err(error) => return Err(self.wrong(mark::NAME, "read it", error)),
            Ok(mark::Found::Good(mark)) => self.found.mark = Some((file, mark)),
            Ok(mark::Found::Damaged) => self.damaged(mark::NAME, 0, "both copies are damaged"),
            Ok(mark::Found::Version(found)) => {
                let path = self.disk.path().join(mark::NAME);
                return Err(LogOpenError::Version { path, found });
            }
        }
        Ok(())
    }

    /// `None`: it is damaged, and was reported.
    fn read_header(&mut self, number: u64) -> Result<Option<Segment<D::File>>, LogOpenError> {
        let name = segment_name(number);
        let file = self.disk.open(&name, self.access);
        let file = file.map_err(|error| self.wrong(&name, "open it", error))?;
        let mut page = [0; header::HEADER_BYTES];
        let read = file
            .read_at(0, &mut page)
            .and_then(|read| Ok((read, file.bytes()?)));
        let (read, bytes) = read.map_err(|error| self.wrong(&name, "read it", error))?;
        let header = match SegmentHeader::decode(&page[..read]) {
            Ok(header) => header,
            Err(BadPage::Version(found)) => {
                let path = self.disk.path().join(&name);
                return Err(LogOpenError::Version { path, found });
            }
            Err(BadPage::Damaged) => {
                self.damaged(&name, 0, "the header is damaged");
                return Ok(None);
            }
        };
        let possible = SMALLEST..=LARGEST;
        if header.number != number || !possible.contains(&header.size) {
            self.damaged(&name, 0, "the header is not this file's");
            return Ok(None);
        }
        let owner = self.found.mark.as_ref().map(|(_, mark)| mark.identity);
        if let Some(wanted) = owner.filter(|owner| *owner != header.identity) {
            return Err(LogOpenError::WrongOwner {
                path: self.disk.path().join(&name),
                found: header.identity,
                wanted,
            });
        }
        if bytes < header.size {
            self.damaged(&name, bytes, "the file is cut off");
        }
        Ok(Some(Segment {
            file,
            header,
            end: PAGE,
            highest: None,
        }))
    }

    /// The oldest segment that is needed, as the newest one says: at its beginning, and where something was trimmed
    /// since.
    fn oldest_needed(&self, last: Option<&Segment<D::File>>) -> u64 {
        let mut sticky = Sticky::default();
        if let Some(last) = last {
            let mut take = |_, header: &Header, _: &[u8]| {
                if header.kind == Some(Kind::Trim) {
                    sticky.oldest = sticky.oldest.max(header.last);
                }
            };
            // An error here is reported when all of the segment is read.
            let _ = scan(&last.file, &last.header, PAGE, last.header.size, &mut take);
        }
        sticky.oldest
    }

    fn check_gaps<T>(&mut self, oldest: u64, last: u64, there: &BTreeMap<u64, T>) {
        let first = oldest.max(1);
        // Numbers come from names: a strange one must not make this long.
        let mut expected = first;
        for number in there.keys() {
            if *number > expected {
                self.damaged(&segment_name(expected), 0, "the segment is missing");
            }
            expected = number.saturating_add(1);
        }
        debug_assert!(expected >= last, "the last one is there");
    }

    /// Reports damage if the mark names a durable place in a segment behind the last one.
    fn check_end(&mut self, last: u64) {
        let durable = self.found.mark.as_ref().map(|(_, mark)| mark.durable);
        if let Some(durable) = durable.filter(|durable| durable.segment > last) {
            let name = segment_name(durable.segment);
            self.damaged(&name, 0, "the segment is missing");
        }
    }

    /// `next` is the segment behind this one: `Some(None)` if it is damaged.
    fn read_records(
        &mut self,
        mut segment: Segment<D::File>,
        next: Option<Option<&Segment<D::File>>>,
        visit: Visit<'_>,
    ) -> Result<Segment<D::File>, LogOpenError> {
        let header = segment.header;
        let name = segment_name(header.number);
        let limit = match next {
            Some(Some(next)) if next.header.number == header.number + 1 => next.header.previous_end,
            _ => header.size,
        };
        let file = segment.file.clone();
        let (sticky, mut later) = (&mut self.found.sticky, None);
        let mut take = |offset, found: &Header, bytes: &[u8]| {
            let Some(kind) = found.kind else {
                later = later.or(Some(offset));
                return;
            };
            let (first, last) = (found.first, found.last);
            let record = RecordRef {
                kind,
                first,
                last,
                head: &[],
                bytes,
            };
            segment.saw(kind, first, last);
            sticky.take(record);
            let segment = header.number;
            visit(Position { segment, offset }, record);
        };
        let limit = limit.min(header.size);
        let read = read_to_end(&file, &header, limit, next.is_none(), &mut take);
        let (end, hides) = read.map_err(|error| self.wrong(&name, "read it", error))?;
        segment.end = end;
        if let Some(offset) = later {
            self.damaged(&name, offset, "a record of a kind that is not known");
        }
        let known = match next {
            Some(Some(next)) if next.header.number == header.number + 1 => limit,
            // If the next one is missing or damaged, it is not known where this one should end.
            Some(_) => 0,
            None => self.known_end(&header),
        };
        if end < known || hides {
            self.damaged(&name, end, "the record is damaged");
        }
        Ok(segment)
    }

    /// The place up to which the newest segment is known to be durable.
    fn known_end(&self, header: &SegmentHeader) -> u64 {
        let mark = self.found.mark.as_ref().map(|(_, mark)| mark.durable);
        let marked = mark.filter(|durable| durable.segment == header.number);
        header
            .preamble_end
            .max(marked.map_or(0, |durable| durable.offset))
    }
}

/// Takes the good records of a segment. Says the end of them, and, of the newest segment, whether others behind that
/// place say that all before them was durable.
fn read_to_end<F: LogFile>(
    file: &F,
    header: &SegmentHeader,
    limit: u64,
    is_newest: bool,
    take: Take<'_>,
) -> io::Result<(u64, bool)> {
    let mut end = PAGE;
    loop {
        end = scan(file, header, end, limit, take)?;
        if !is_newest || find_synced(file, header, end)?.is_none() {
            return Ok((end, false));
        }
        // If another process is writing, the record has become good meanwhile, and those behind it, too.
        if scan(file, header, end, limit, &mut |_, _, _| {})? == end {
            return Ok((end, true));
        }
    }
}

//! Looking at a log, without writing to it.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::dir::{Access, FileDir, LogDisk};
use super::error::{Damage, LogOpenError};
use super::header::{Identity, Position};
use super::index::Index;
use super::record::{Kind, Record, RecordRef};
use super::survey::{end_of, segment_name, survey};

/// The number of looks at a log that seems damaged, and the time between them: the log may be changing meanwhile.
const TRIES: usize = 5;
const BETWEEN_TRIES: Duration = Duration::from_millis(40);

/// A segment, looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SegmentSeen {
    /// Its file's name.
    pub name: String,
    /// Its number.
    pub number: u64,
    /// The life of the log in which it was made.
    pub life: u64,
    /// The file's length.
    pub bytes: u64,
    /// The end of its good records.
    pub end: u64,
    /// The number of its records of each kind.
    pub records: BTreeMap<Kind, u64>,
}

/// A record, looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordSeen {
    /// The place of the record.
    pub at: Position,
    /// The subject of the record.
    pub kind: Kind,
    /// The first instance it is about.
    pub first: u64,
    /// The last one.
    pub last: u64,
    /// The length of its payload.
    pub bytes: usize,
}

/// A log, looked at.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The owner of the log, as far as that is known.
    pub identity: Option<Identity>,
    /// The number of times that the log was opened.
    pub life: u64,
    /// Whether the log was closed in order.
    pub closed: bool,
    /// Whether something that was answered may be missing, as far as that was known when the log was opened last. A
    /// loss of power since then is not considered.
    pub lost_some: bool,
    /// The place before which all is known to be durable.
    pub durable: Position,
    /// Oldest first.
    pub segments: Vec<SegmentSeen>,
    /// The number of segments that were not dropped yet, though nothing of them is needed.
    pub leftovers: usize,
    /// The number of files that are to become segments.
    pub spares: usize,
    /// The first instance that is kept.
    pub first: u64,
    /// The last one.
    pub last: Option<u64>,
    /// The number of instances of which something is kept.
    pub instances: u64,
    /// The state by key, promises, configuration and hint.
    pub state: Vec<Record>,
    /// Votes and skips that were asked for, in the order in which they were written; also those that have been
    /// trimmed, or written over, since.
    pub listed: Vec<RecordSeen>,
    /// The places that are not as they were written.
    pub damage: Vec<Damage>,
}

/// Looks at the log in this directory, which may be in use, and lists the records of some instances.
///
/// # Errors
/// [`LogOpenError`] if there is no log, or it cannot be read at all.
pub fn inspect(path: PathBuf, list: Range<u64>) -> Result<Seen, LogOpenError> {
    inspect_on(&FileDir::new(path), list)
}

/// The same on any disk.
///
/// # Errors
/// [`LogOpenError`].
pub fn inspect_on<D: LogDisk>(disk: &D, list: Range<u64>) -> Result<Seen, LogOpenError> {
    if !disk.has_directory() {
        return Err(LogOpenError::NoDirectory(disk.path().to_owned()));
    }
    let began = Instant::now();
    let mut seen = look(disk, &list);
    let mut before: Option<Vec<Damage>> = None;
    for _ in 1..TRIES {
        let changing = match &seen {
            // A look at a large log takes long enough by itself.
            Ok(seen) if before.as_ref() == Some(&seen.damage) => {
                began.elapsed() < BETWEEN_TRIES * TRIES as u32
            }
            Ok(seen) => !seen.damage.is_empty(),
            Err(LogOpenError::Io { error, .. }) => error.kind() == io::ErrorKind::NotFound,
            Err(_) => false,
        };
        if !changing {
            break;
        }
        before = seen.ok().map(|seen| seen.damage);
        std::thread::sleep(BETWEEN_TRIES);
        seen = look(disk, &list);
    }
    seen
}

fn look<D: LogDisk>(disk: &D, list: &Range<u64>) -> Result<Seen, LogOpenError> {
    let (mut index, mut listed) = (Index::default(), Vec::new());
    let mut counts: BTreeMap<u64, BTreeMap<Kind, u64>> = BTreeMap::new();
    let mut take = |at: Position, record: RecordRef<'_>| {
        *counts
            .entry(at.segment)
            .or_default()
            .entry(record.kind)
            .or_default() += 1;
        index.take(at, record);
        let wanted = record.first < list.end && record.last >= list.start;
        if record.kind.is_of_instances() && wanted && !list.is_empty() {
            listed.push(RecordSeen {
                at,
                kind: record.kind,
                first: record.first,
                last: record.last,
                bytes: record.len(),
            });
        }
    };
    let found = survey(disk, Access::Read, &mut take)?;
    let mark = found.mark.map(|(_, mark)| mark);
    if mark.is_none() && found.segments.is_empty() && found.damage.is_empty() {
        return Err(LogOpenError::Lost(disk.path().to_owned()));
    }
    let segments = found.segments.iter().map(|segment| SegmentSeen {
        name: segment_name(segment.header.number),
        number: segment.header.number,
        life: segment.header.life,
        bytes: segment.header.size,
        end: segment.end,
        records: counts.remove(&segment.header.number).unwrap_or_default(),
    });
    let of_segment = found.segments.first().map(|s| s.header.identity);
    let end = end_of(found.segments.last());
    Ok(Seen {
        identity: mark.map(|mark| mark.identity).or(of_segment),
        life: mark.map_or(0, |mark| mark.life),
        closed: mark.is_some_and(|mark| mark.closed),
        lost_some: mark.is_some_and(|mark| mark.has_lost_some(end)),
        durable: mark.map_or_else(Position::default, |mark| mark.durable),
        segments: segments.collect(),
        leftovers: found.leftovers.len(),
        spares: found.spares.len(),
        first: index.from(),
        last: index.last(),
        instances: index.count(),
        state: found.sticky.of_caller(),
        listed,
        damage: found.damage,
    })
}

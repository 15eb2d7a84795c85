//! Records that are gathered before it is known where in the log they will be.
//!
//! A value is copied into the memory that the disk takes it from while the caller still has it at hand: the log, in its
//! own thread and perhaps on another processor, would have to get it from afar. The fields that depend on the place are
//! filled in when the group is appended.

use super::blocks::{BLOCK, USUAL};
use super::error::AppendError;
use super::pages::Pages;
use super::record::{HEADER_BYTES, Kind, PAYLOAD_LIMIT, RecordRef};

/// The number of records for which room is kept.
const USUAL_RECORDS: usize = 64 << 10;

/// Records, and the instance up to which the log is to be trimmed, on their way to
/// [`DiskLog::append_group`](super::DiskLog::append_group).
#[derive(Debug, Default)]
pub struct Group {
    /// Begins with room for the earlier bytes of the same block.
    pub(super) memory: Pages,
    /// The bytes of that room.
    pub(super) lead: usize,
    records: Vec<Gathered>,
    trim: Option<u64>,
    /// The bytes of a record that is too long for any log, if there was one.
    too_long: Option<usize>,
}

/// A gathered record: its place in memory, and its subject.
#[derive(Debug)]
struct Gathered {
    at: usize,
    len: usize,
    kind: Kind,
    first: u64,
    last: u64,
}

impl Group {
    /// Copies a record.
    pub fn put(&mut self, record: RecordRef<'_>) {
        let len = record.len();
        if len > PAYLOAD_LIMIT {
            self.too_long.get_or_insert(len);
            return;
        }
        let at = self.memory.len();
        record.prepare_in(self.memory.add(record.encoded_bytes()));
        let RecordRef {
            kind, first, last, ..
        } = record;
        self.records.push(Gathered {
            at,
            len,
            kind,
            first,
            last,
        });
    }

    /// Instances before `first` are not wanted any more, once all these records are appended.
    pub fn trim(&mut self, first: u64) {
        self.trim = self.trim.max(Some(first));
    }

    /// Whether there is nothing to append.
    pub const fn is_empty(&self) -> bool {
        self.records.is_empty() && self.trim.is_none() && self.too_long.is_none()
    }

    /// The first instance that the log is to keep, if it is to be trimmed.
    pub(super) const fn trims(&self) -> Option<u64> {
        self.trim
    }

    /// The bytes of its records in the log.
    pub(super) fn bytes(&self) -> u64 {
        (self.memory.len() - self.lead) as u64
    }

    pub(super) fn check(&self) -> Result<(), AppendError> {
        self.too_long.map_or(Ok(()), |bytes| {
            Err(AppendError::TooLong {
                bytes: bytes as u64,
                limit: PAYLOAD_LIMIT as u64,
            })
        })
    }

    pub(super) fn records(&self) -> impl Iterator<Item = RecordRef<'_>> {
        self.records.iter().map(|gathered| RecordRef {
            kind: gathered.kind,
            first: gathered.first,
            last: gathered.last,
            head: &[],
            bytes: &self.memory[gathered.at + HEADER_BYTES..][..gathered.len],
        })
    }

    /// Calls `seal` for each record, with its header and its offset from the first one.
    pub(super) fn seal(&mut self, mut seal: impl FnMut(&mut [u8], usize)) {
        for gathered in &self.records {
            let header = &mut self.memory[gathered.at..][..HEADER_BYTES];
            seal(header, gathered.at - self.lead);
        }
    }

    /// Empties the group. The next records are expected to come behind `end`.
    pub(super) fn begin_behind(&mut self, end: u64) {
        self.records.clear();
        self.records.shrink_to(USUAL_RECORDS);
        (self.trim, self.too_long) = (None, None);
        self.memory.truncate(0);
        if self.memory.room() > USUAL {
            self.memory = Pages::default();
        }
        self.lead = end as usize % BLOCK;
        self.memory.add(self.lead);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rota_core::contract::{LogId, NodeId};

    use super::super::header::Identity;
    use super::super::log::DiskLog;
    use super::super::options::{LogOptions, Mode};
    use super::*;

    fn log(path: &Path, mode: Mode) -> DiskLog {
        let mut options = LogOptions::new(Identity {
            cluster: 7,
            node: NodeId::new(1).unwrap(),
            log: LogId(1),
        });
        options.mode = mode;
        options.segment_bytes = 256 << 10;
        DiskLog::open(path.to_owned(), options).unwrap()
    }

    const fn record(kind: Kind, first: u64, bytes: &[u8]) -> RecordRef<'_> {
        let (head, bytes) = bytes.split_at(bytes.len() / 3);
        RecordRef {
            kind,
            first,
            last: first,
            head,
            bytes,
        }
    }

    /// All records of a directory's segments.
    fn segments(path: &Path) -> Vec<(String, Vec<u8>)> {
        let files = std::fs::read_dir(path).unwrap().map(|file| file.unwrap());
        let mut found: Vec<_> = files
            .map(|file| {
                (
                    file.file_name().into_string().unwrap(),
                    std::fs::read(file.path()).unwrap(),
                )
            })
            .filter(|(name, _)| name.starts_with("segment"))
            .collect();
        found.sort();
        found
    }

    /// Groups of all sizes, with trims and state, in segments that end all the time.
    fn compare(mode: Mode) {
        let directories = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let [mut by_group, mut by_record] =
            [0, 1].map(|index: usize| log(directories[index].path(), mode));
        let [mut group, mut next] = [(); 2].map(|()| Group::default());
        let (mut instance, mut as_it_is, mut copied) = (0, 0, 0);
        for round in 0..600_u64 {
            let (count, size) = (1 + round % 7, (round * 997 % 9000) as usize);
            let mut records = Vec::new();
            for _ in 0..count {
                instance += 1;
                records.push((Kind::Vote, instance, vec![instance as u8; size]));
            }
            if round % 11 == 0 {
                records.push((Kind::State, round % 3, vec![round as u8; 100]));
            }
            for (kind, first, bytes) in &records {
                group.put(record(*kind, *first, bytes));
                by_record.append(&[record(*kind, *first, bytes)]).unwrap();
            }
            if round % 5 == 0 && instance > 40 {
                group.trim(instance - 40);
                by_record.trim(instance - 40).unwrap();
            }
            if by_group.fits_as_it_is(&group) {
                as_it_is += 1;
            } else {
                copied += 1;
            }
            by_group.place_behind(&group, &mut next);
            let end = by_group.append_group(&mut group).unwrap();
            assert!(group.is_empty() && end == by_record.end());
            for log in [&mut by_group, &mut by_record] {
                log.commit().unwrap();
                while log.maintain().unwrap() {}
            }
            std::mem::swap(&mut group, &mut next);
        }
        // Behind a segment that has ended the place of one group, or two, is not known.
        assert!(as_it_is > 5 * copied && copied > 20, "{as_it_is} {copied}");
        assert_eq!(by_group.state(), by_record.state());
        assert_eq!(by_group.last(), Some(instance));
        drop((by_group, by_record));
        let [one, other] = directories.map(|directory| segments(directory.path()));
        assert!(!one.is_empty());
        assert_eq!(one.len(), other.len());
        for ((name, one), (_, other)) in one.iter().zip(&other) {
            assert!(one == other, "{name}");
        }
    }

    #[test]
    fn a_log_of_groups_is_that_of_their_records() {
        compare(Mode::Sync);
        compare(Mode::ASYNC);
    }

    #[test]
    fn a_record_that_no_log_takes_is_refused_when_it_is_appended() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = log(directory.path(), Mode::Sync);
        let mut group = Group::default();
        group.put(record(Kind::Vote, 1, &vec![0; PAYLOAD_LIMIT + 1]));
        assert!(!group.is_empty());
        let refused = log.append_group(&mut group).unwrap_err();
        assert!(group.is_empty());
        assert!(matches!(refused, AppendError::TooLong { bytes, .. } if bytes > 16 << 20));
        assert_eq!(log.last(), None);
    }

    #[test]
    fn memory_of_a_very_large_group_is_given_back() {
        let mut group = Group::default();
        let fill = |group: &mut Group, count| {
            (0..count).for_each(|at| group.put(record(Kind::Vote, at, &vec![0; 4 << 20])));
        };
        fill(&mut group, 3);
        group.begin_behind(0);
        assert_eq!(group.memory.room(), USUAL);
        fill(&mut group, 6);
        assert!(group.memory.room() > USUAL);
        group.begin_behind(5000);
        assert_eq!((group.bytes(), group.lead), (0, 5000 % BLOCK));
        assert!(group.memory.room() <= USUAL);
    }
}

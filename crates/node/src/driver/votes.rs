//! The two logs of an engine of the Paxos family, as an acceptor's log has them.

use bytes::Bytes;
use rota_core::contract::{LogId, LogRecord, Pieces};
use rota_paxos::{STATE_KEYS, STATE_LOG, VOTES_LOG, VoteHead};
use rota_storage::acceptor::{
    DiskLog, FetchError, Fetched, Kind, LogDisk, MemoryLog, Record, RecordRef,
};
use std::io;
use std::ops::Range;

/// A change that is requested of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Change {
    /// A record of this kind, about these instances, or this key: its first bytes, and the rest.
    Put(Kind, u64, u64, [Bytes; 2]),
    /// Instances below are not wanted any more.
    Trim(u64),
}

/// The step of a log for a change.
#[derive(Debug)]
pub(super) enum Step<'a> {
    Put(RecordRef<'a>),
    Trim(u64),
}

impl Change {
    /// The changes that these records request; `None` if one is not of the two logs, or cannot be kept in them.
    pub(super) fn read(records: &[LogRecord]) -> Option<Vec<Self>> {
        let changes = records.iter().map(Self::read_one);
        changes
            .collect::<Option<Vec<_>>>()
            .filter(|c| !c.is_empty())
    }

    fn read_one(record: &LogRecord) -> Option<Self> {
        match record {
            LogRecord::Put {
                log: VOTES_LOG,
                position,
                bytes,
            } => {
                let bytes = two(bytes);
                let head = VoteHead::read(&bytes[0])?;
                let last = position.checked_add(head.span - 1)?;
                let kind = match head.span {
                    1 => Kind::Vote,
                    _ => Kind::Skip,
                };
                Some(Self::Put(kind, *position, last, bytes))
            }
            LogRecord::Put {
                log: STATE_LOG,
                position,
                bytes,
            } if *position < STATE_KEYS => {
                Some(Self::Put(Kind::State, *position, *position, two(bytes)))
            }
            LogRecord::Trim {
                log: VOTES_LOG,
                position,
            } => Some(Self::Trim(*position)),
            LogRecord::Put { .. } | LogRecord::Trim { .. } => None,
        }
    }

    /// The bytes that the change holds on to while it waits, about.
    pub(super) fn bytes(&self) -> usize {
        const OWN: usize = 64;
        match self {
            Self::Put(.., [head, rest]) => head.len() + rest.len() + OWN,
            Self::Trim(_) => OWN,
        }
    }

    /// The change as a log takes it.
    pub(super) fn step(&self) -> Step<'_> {
        match self {
            Self::Put(kind, first, last, [head, rest]) => Step::Put(RecordRef {
                kind: *kind,
                first: *first,
                last: *last,
                head,
                bytes: rest,
            }),
            Self::Trim(first) => Step::Trim(*first),
        }
    }
}

/// In two pieces, the second of which may be empty, and no head of a vote is cut.
fn two(bytes: &Pieces) -> [Bytes; 2] {
    let mut pieces = bytes.clone().into_iter();
    let first = pieces.next().unwrap_or_default();
    if first.len() < VoteHead::BYTES {
        return [bytes.clone().into_bytes(), Bytes::new()];
    }
    let mut rest = Pieces::default();
    pieces.for_each(|piece| rest.push(piece));
    [first, rest.into_bytes()]
}

/// A log that can be read back.
pub(super) trait Readable {
    fn first(&self) -> u64;
    fn state(&self) -> Vec<Record>;
    fn fetch(&mut self, first: u64, last: u64, bytes: usize) -> Result<Fetched, FetchError>;
}

impl Readable for MemoryLog {
    fn first(&self) -> u64 {
        self.first()
    }

    fn state(&self) -> Vec<Record> {
        self.state()
    }

    fn fetch(&mut self, first: u64, last: u64, bytes: usize) -> Result<Fetched, FetchError> {
        Self::fetch(self, first, last, bytes)
    }
}

impl<D: LogDisk> Readable for DiskLog<D> {
    fn first(&self) -> u64 {
        self.first()
    }

    fn state(&self) -> Vec<Record> {
        self.state()
    }

    fn fetch(&mut self, first: u64, last: u64, bytes: usize) -> Result<Fetched, FetchError> {
        self.fetch(first, last, bytes)
    }
}

/// Everything, state first, then votes by instance; `at_once` bytes are read at a time.
pub(super) fn read_all(
    log: &mut impl Readable,
    at_once: usize,
) -> Result<Vec<(LogId, u64, Bytes)>, FetchError> {
    let state = state(log.state()).map(|(key, bytes)| (STATE_LOG, key, bytes));
    let mut found: Vec<_> = state.collect();
    let mut next = Some(log.first());
    while let Some(from) = next {
        let fetched = log.fetch(from, u64::MAX, at_once)?;
        next = fetched.next;
        let read = votes(fetched)?.into_iter();
        found.extend(read.map(|(first, bytes)| (VOTES_LOG, first, bytes)));
    }
    Ok(found)
}

/// The records of some positions: all of the state, of votes about `bytes`, from the first that is kept on.
pub(super) fn read_some(
    log: &mut impl Readable,
    which: LogId,
    range: &Range<u64>,
    bytes: usize,
) -> Result<Vec<(u64, Bytes)>, FetchError> {
    if which == STATE_LOG {
        let wanted = |record: &(u64, Bytes)| range.contains(&record.0);
        return Ok(state(log.state()).filter(wanted).collect());
    }
    let from = range.start.max(log.first());
    let Some(last) = range.end.checked_sub(1).filter(|last| *last >= from) else {
        return Ok(Vec::new());
    };
    let mut fetched = log.fetch(from, last, bytes)?;
    for record in &mut fetched.records {
        (record.first, record.last) = (record.first.max(from), record.last.min(last));
    }
    votes(fetched)
}

/// The state that an acceptor's log has kept by key, as the engine knows it.
fn state(records: Vec<Record>) -> impl Iterator<Item = (u64, Bytes)> {
    let keyed = records.into_iter().filter(|r| r.kind == Kind::State);
    keyed.map(|record| (record.first, Bytes::from(record.bytes)))
}

/// Votes that were read back, as the engine knows them.
///
/// # Errors
/// One is none.
fn votes(fetched: Fetched) -> Result<Vec<(u64, Bytes)>, FetchError> {
    let votes = fetched.records.into_iter().map(|record| {
        // Of a range, the instances that nothing newer was written over.
        let span = (record.last - record.first).checked_add(1)?;
        let bytes = VoteHead::with_span(Bytes::from(record.bytes), span)?;
        Some((record.first, bytes))
    });
    let votes: Option<Vec<_>> = votes.collect();
    votes.ok_or_else(|| {
        let error = "a record of an instance that is no vote";
        FetchError::Io(io::Error::new(io::ErrorKind::InvalidData, error))
    })
}

/// Whether a log is one of the two.
pub(super) fn is_one(log: LogId) -> bool {
    matches!(log, VOTES_LOG | STATE_LOG)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(log: LogId, position: u64, bytes: Vec<u8>) -> LogRecord {
        LogRecord::Put {
            log,
            position,
            bytes: bytes.into(),
        }
    }

    fn one(bytes: Vec<u8>) -> [Bytes; 2] {
        [bytes.into(), Bytes::new()]
    }

    #[test]
    fn a_record_has_its_bytes_in_whatever_pieces_they_come() {
        let bytes: Vec<u8> = head(1).into_iter().chain(0..100).collect();
        for cuts in [vec![], vec![3], vec![16], vec![40], vec![16, 17, 80]] {
            let mut pieces = Pieces::default();
            let mut from = 0;
            for to in cuts.into_iter().chain([bytes.len()]) {
                pieces.push(Bytes::copy_from_slice(&bytes[from..to]));
                from = to;
            }
            let put = LogRecord::Put {
                log: VOTES_LOG,
                position: 7,
                bytes: pieces,
            };
            let changes = Change::read(&[put]).expect("a vote");
            let Step::Put(record) = changes[0].step() else {
                panic!("a trim: {changes:?}");
            };
            assert_eq!([record.head, record.bytes].concat(), bytes);
            assert!(changes[0].bytes() > bytes.len());
        }
    }

    fn head(span: u64) -> Vec<u8> {
        VoteHead { round: 3, span }.encode().to_vec()
    }

    #[test]
    fn records_are_about_the_instances_that_their_heads_say() {
        let trim = LogRecord::Trim {
            log: VOTES_LOG,
            position: 5,
        };
        let records = [
            put(VOTES_LOG, 7, head(1)),
            put(STATE_LOG, 7, vec![]),
            put(VOTES_LOG, 8, head(4)),
            trim,
        ];
        let wanted = [
            Change::Put(Kind::Vote, 7, 7, one(head(1))),
            Change::Put(Kind::State, 7, 7, one(vec![])),
            Change::Put(Kind::Skip, 8, 11, one(head(4))),
            Change::Trim(5),
        ];
        assert_eq!(Change::read(&records).as_deref(), Some(&wanted[..]));
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        let trim = |log| LogRecord::Trim { log, position: 0 };
        let wrong = [
            vec![],
            vec![put(VOTES_LOG, 1, head(1)[..15].to_vec())],
            vec![put(VOTES_LOG, 1, head(0))],
            vec![put(VOTES_LOG, 2, head(u64::MAX))],
            vec![put(STATE_LOG, STATE_KEYS, vec![])],
            vec![trim(STATE_LOG)],
            vec![put(VOTES_LOG, 1, head(1)), put(LogId(1), 0, vec![0; 8])],
        ];
        for records in wrong {
            assert_eq!(Change::read(&records), None, "{records:?}");
        }
        let whole = [put(VOTES_LOG, 1, head(u64::MAX))];
        assert!(Change::read(&whole).is_some());
    }
}

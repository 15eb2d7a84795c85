//! Records that must not be forgotten when old segments are dropped: they are written again at the head of each new
//! one.

use std::collections::BTreeMap;

use super::record::{Kind, Record, RecordRef};

/// The state by key, and the newest promises, configuration, hint and trim.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Sticky {
    /// By their first instances, ascending: each holds until the next begins.
    promises: Vec<Record>,
    configuration: Option<Record>,
    decided: Option<Record>,
    keyed: BTreeMap<u64, Record>,
    /// The first instance that is kept, and the oldest segment that is needed.
    pub from: u64,
    pub oldest: u64,
}

impl Sticky {
    /// Takes over a record, if it is one of them.
    pub fn take(&mut self, record: RecordRef<'_>) {
        let owned = || Record {
            kind: record.kind,
            first: record.first,
            last: record.last,
            bytes: record.payload(),
        };
        match record.kind {
            Kind::Vote | Kind::Skip => {}
            Kind::Promise => {
                let before = |promise: &Record| promise.first < record.first;
                self.promises
                    .truncate(self.promises.partition_point(before));
                self.promises.push(owned());
            }
            Kind::Configuration => self.configuration = Some(owned()),
            Kind::Decided => self.decided = Some(owned()),
            Kind::State => {
                self.keyed.insert(record.first, owned());
            }
            Kind::Trim => {
                self.from = self.from.max(record.first);
                self.oldest = self.oldest.max(record.last);
            }
        }
        // A promise that ends where another begins, before what is kept, holds for nothing.
        let begun = self.promises.partition_point(|p| p.first <= self.from);
        self.promises.drain(..begun.saturating_sub(1));
    }

    /// All of them, as records.
    pub fn records(&self) -> Vec<Record> {
        let trim = Record {
            kind: Kind::Trim,
            first: self.from,
            last: self.oldest,
            bytes: Vec::new(),
        };
        let others = [&self.configuration, &self.decided];
        std::iter::once(trim)
            .chain(others.into_iter().flatten().cloned())
            .chain(self.keyed.values().cloned())
            .chain(self.promises.iter().cloned())
            .collect()
    }

    /// The same without the records that the log keeps for itself.
    pub fn of_caller(&self) -> Vec<Record> {
        let records = self.records().into_iter();
        records.filter(|record| record.kind != Kind::Trim).collect()
    }

    /// The bytes they take.
    pub fn encoded_bytes(&self) -> u64 {
        let records = self.records();
        let bytes = records.iter().map(|r| r.borrowed().encoded_bytes() as u64);
        bytes.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: Kind, first: u64, last: u64, bytes: &[u8]) -> Record {
        Record {
            kind,
            first,
            last,
            bytes: bytes.to_vec(),
        }
    }

    #[test]
    fn a_promise_holds_until_a_later_one_begins_there_or_before() {
        let mut sticky = Sticky::default();
        for (first, bytes) in [(0, b"a"), (10, b"b"), (20, b"c"), (15, b"d")] {
            sticky.take(record(Kind::Promise, first, u64::MAX, bytes).borrowed());
        }
        let firsts = |sticky: &Sticky| {
            let promises = sticky.promises.iter();
            promises.map(|p| (p.first, p.bytes[0])).collect::<Vec<_>>()
        };
        assert_eq!(firsts(&sticky), [(0, b'a'), (10, b'b'), (15, b'd')]);
        sticky.take(record(Kind::Trim, 12, 1, b"").borrowed());
        assert_eq!(firsts(&sticky), [(10, b'b'), (15, b'd')]);
        sticky.take(record(Kind::Trim, 15, 1, b"").borrowed());
        assert_eq!(firsts(&sticky), [(15, b'd')]);
        sticky.take(record(Kind::Promise, 3, u64::MAX, b"e").borrowed());
        assert_eq!(firsts(&sticky), [(3, b'e')]);
    }

    #[test]
    fn what_is_written_again_is_taken_over_as_it_was() {
        let mut sticky = Sticky::default();
        for taken in [
            record(Kind::Promise, 3, 9, b"p"),
            record(Kind::Configuration, 0, 0, b"old"),
            record(Kind::Configuration, 0, 0, b"new"),
            record(Kind::Decided, 7, 7, b""),
            record(Kind::State, 2, 0, b"two"),
            record(Kind::State, 0, 0, b""),
            record(Kind::State, 2, 0, b"later"),
            record(Kind::Trim, 5, 2, b""),
            record(Kind::Trim, 4, 1, b""),
        ] {
            sticky.take(taken.borrowed());
        }
        let mut again = Sticky::default();
        for record in sticky.records() {
            again.take(record.borrowed());
        }
        assert_eq!(again, sticky);
        assert_eq!((again.from, again.oldest), (5, 2));
        let keyed = again.keyed.iter();
        let keyed: Vec<_> = keyed.map(|(key, r)| (*key, &r.bytes[..])).collect();
        assert_eq!(keyed, [(0, &b""[..]), (2, b"later")]);
    }
}

//! A log in memory: the newest instances, and nothing survives.

use std::collections::BTreeMap;

use super::error::FetchError;
use super::fetch::Fetched;
use super::record::{Kind, Record, RecordRef};
use super::sticky::Sticky;

/// Records in memory, as [`super::DiskLog`] keeps them on disk. The number of records of instances is bounded; the
/// oldest instances go first.
#[derive(Debug)]
pub struct MemoryLog {
    limit: usize,
    /// By their first instances. They do not overlap.
    records: BTreeMap<u64, Record>,
    from: u64,
    sticky: Sticky,
}

impl MemoryLog {
    /// An empty one that keeps `limit` records of instances, and one at least.
    pub fn new(limit: usize) -> Self {
        Self {
            limit: limit.max(1),
            records: BTreeMap::new(),
            from: 0,
            sticky: Sticky::default(),
        }
    }

    /// The first instance that is kept.
    pub const fn first(&self) -> u64 {
        self.from
    }

    /// The last instance of which anything is kept.
    pub fn last(&self) -> Option<u64> {
        self.records.values().next_back().map(|record| record.last)
    }

    /// The state by key, and the newest promises (by their first instances, ascending), configuration and hint.
    pub fn state(&self) -> Vec<Record> {
        self.sticky.of_caller()
    }

    /// Takes records.
    pub fn append(&mut self, records: &[RecordRef<'_>]) {
        for record in records {
            self.sticky.take(*record);
            match record.kind {
                Kind::Vote => self.put(record, record.first, record.first),
                Kind::Skip => self.put(record, record.first, record.last),
                Kind::Trim => self.forget(record.first),
                Kind::Promise | Kind::Configuration | Kind::Decided | Kind::State => {}
            }
        }
        while self.records.len() > self.limit {
            let oldest = self.records.values().next().map(|record| record.last);
            // Behind the last instance of all there is no other record.
            self.forget(oldest.map_or(u64::MAX, |last| last.saturating_add(1)));
        }
    }

    /// Instances before `first` are not wanted any more.
    pub fn trim(&mut self, first: u64) {
        self.append(&[RecordRef {
            kind: Kind::Trim,
            first,
            last: 0,
            head: &[],
            bytes: &[],
        }]);
    }

    fn forget(&mut self, from: u64) {
        if from > self.from {
            self.cut(0, from - 1);
            self.from = from;
        }
    }

    fn put(&mut self, record: &RecordRef<'_>, first: u64, last: u64) {
        let first = first.max(self.from);
        if first > last {
            return;
        }
        self.cut(first, last);
        let owned = Record {
            kind: record.kind,
            first,
            last,
            bytes: record.payload(),
        };
        self.records.insert(first, owned);
    }

    /// Takes these instances out of all records.
    fn cut(&mut self, first: u64, last: u64) {
        loop {
            let before = self.records.range(..=last).next_back();
            let Some((key, _)) = before.filter(|(_, record)| record.last >= first) else {
                return;
            };
            let key = *key;
            let Some(record) = self.records.remove(&key) else {
                return;
            };
            if record.last > last {
                let mut behind = record.clone();
                behind.first = last + 1;
                self.records.insert(last + 1, behind);
            }
            if record.first < first {
                let mut before = record;
                before.last = first - 1;
                self.records.insert(before.first, before);
            }
        }
    }

    /// The records of the instances from `first` to `last`: payloads of about `bytes`, but at least one record.
    ///
    /// # Errors
    /// [`FetchError::Trimmed`].
    pub fn fetch(&self, first: u64, last: u64, bytes: usize) -> Result<Fetched, FetchError> {
        if first < self.from {
            return Err(FetchError::Trimmed { first: self.from });
        }
        let mut fetched = Fetched {
            records: Vec::new(),
            next: None,
        };
        if first > last {
            return Ok(fetched);
        }
        let around = self.records.range(..first).next_back();
        let around = around.filter(|(_, record)| record.last >= first);
        let mut taken = 0;
        for (at, record) in around.into_iter().chain(self.records.range(first..=last)) {
            if taken >= bytes && !fetched.records.is_empty() {
                fetched.next = Some(*at);
                break;
            }
            taken += record.bytes.len();
            fetched.records.push(record.clone());
        }
        Ok(fetched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vote(instance: u64) -> RecordRef<'static> {
        RecordRef {
            kind: Kind::Vote,
            first: instance,
            last: instance,
            head: &[],
            bytes: b"value",
        }
    }

    fn skip(first: u64, last: u64) -> RecordRef<'static> {
        RecordRef {
            kind: Kind::Skip,
            first,
            last,
            head: &[],
            bytes: b"",
        }
    }

    fn kept(log: &MemoryLog) -> Vec<(u64, u64)> {
        let fetched = log.fetch(log.first(), u64::MAX, usize::MAX).unwrap();
        fetched.records.iter().map(|r| (r.first, r.last)).collect()
    }

    #[test]
    fn the_newest_instances_are_kept_and_who_asks_further_back_is_told() {
        let mut log = MemoryLog::new(3);
        for instance in 1..=3 {
            log.append(&[vote(instance)]);
        }
        assert_eq!((log.first(), kept(&log)), (0, vec![(1, 1), (2, 2), (3, 3)]));
        log.append(&[vote(4)]);
        assert_eq!((log.first(), log.last()), (2, Some(4)));
        let refused = log.fetch(1, 4, 9);
        assert!(matches!(refused, Err(FetchError::Trimmed { first: 2 })));
        // A late record of an instance that is not kept is not kept.
        log.append(&[vote(1), skip(0, 1)]);
        assert_eq!(kept(&log), [(2, 2), (3, 3), (4, 4)]);
    }

    #[test]
    fn later_records_take_the_place_of_earlier_ones() {
        let mut log = MemoryLog::new(9);
        log.append(&[vote(5), skip(3, u64::MAX), vote(7), skip(1, 3)]);
        assert_eq!(kept(&log), [(1, 3), (4, 6), (7, 7), (8, u64::MAX)]);
        log.trim(5);
        assert_eq!(kept(&log), [(5, 6), (7, 7), (8, u64::MAX)]);
        let fetched = log.fetch(6, 7, 1).unwrap();
        assert_eq!(fetched.records.len(), 2);
        let fetched = log.fetch(7, u64::MAX, 1).unwrap();
        assert_eq!((fetched.records.len(), fetched.next), (1, Some(8)));
    }
}

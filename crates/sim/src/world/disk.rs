//! A host's disk: what was written, what is being written, and what a crash leaves of it.
//!
//! Records are written whole or not at all, as the storage below an engine promises; a torn write
//! leaves the first of a request's records.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use rota_core::contract::{Input, LogId, LogRecord, PersistError, PersistId};

use crate::plan::DiskLoss;
use crate::rng::Rng;

type Records = BTreeMap<(LogId, u64), Bytes>;

#[derive(Debug)]
struct Request {
    id: PersistId,
    records: Vec<LogRecord>,
    done_at: u64,
    error: Option<PersistError>,
}

/// A disk.
#[derive(Default, Debug)]
pub struct Disk {
    durable: Records,
    backup: Records,
    pending: VecDeque<Request>,
    /// What goes wrong with every write while a fault lasts.
    pub fails: Option<PersistError>,
}

impl Disk {
    /// Begins to write; says when that is done.
    pub fn persist(&mut self, id: PersistId, records: Vec<LogRecord>, done_at: u64) -> u64 {
        let before = self.pending.back().map_or(0, |request| request.done_at);
        let done_at = done_at.max(before);
        self.pending.push_back(Request {
            id,
            records,
            done_at,
            error: self.fails.clone(),
        });
        done_at
    }

    /// The next request that is done by `now`, if one is.
    pub fn written(&mut self, now: u64, rng: &mut Rng) -> Option<Input> {
        let done = self.pending.front()?.done_at <= now;
        let request = if done {
            self.pending.pop_front()?
        } else {
            return None;
        };
        let id = request.id;
        if let Some(error) = request.error {
            return Some(Input::PersistFailed { id, error });
        }
        for record in request.records {
            apply(&mut self.durable, record);
        }
        if rng.percent(20) {
            self.backup.clone_from(&self.durable);
        }
        Some(Input::Persisted { id })
    }

    /// The process has died: this much is lost.
    pub fn crash(&mut self, loss: DiskLoss, rng: &mut Rng) {
        let pending = std::mem::take(&mut self.pending);
        let sound = pending
            .into_iter()
            .filter(|request| request.error.is_none());
        let mut unsynced: Vec<LogRecord> = sound.flat_map(|request| request.records).collect();
        match loss {
            DiskLoss::Nothing => {}
            DiskLoss::Unsynced => unsynced.clear(),
            DiskLoss::Torn => unsynced.truncate(rng.index(unsynced.len() + 1)),
            DiskLoss::Everything => {
                unsynced.clear();
                self.durable.clear();
            }
            DiskLoss::Backup => {
                unsynced.clear();
                self.durable.clone_from(&self.backup);
            }
        }
        for record in unsynced {
            apply(&mut self.durable, record);
        }
    }

    /// What a starting process finds.
    pub fn records(&self) -> Vec<(LogId, u64, Bytes)> {
        let with_log =
            |(&(log, position), bytes): (&(LogId, u64), &Bytes)| (log, position, bytes.clone());
        self.durable.iter().map(with_log).collect()
    }

    /// Answers a request to read records back.
    pub fn fetch(&self, log: LogId, from: u64, to: u64) -> Input {
        let found = self.durable.range((log, from)..(log, to.max(from)));
        let records = found.map(|(&(_, position), bytes)| (position, bytes.clone()));
        Input::Fetched {
            log,
            from,
            to,
            records: records.collect(),
        }
    }
}

fn apply(records: &mut Records, record: LogRecord) {
    match record {
        LogRecord::Put {
            log,
            position,
            bytes,
        } => {
            records.insert((log, position), bytes);
        }
        LogRecord::Trim { log, position } => {
            records.retain(|&(in_log, at), _| in_log != log || at >= position);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: LogId = LogId(1);

    fn put(position: u64) -> LogRecord {
        let bytes = Bytes::from(vec![position as u8]);
        LogRecord::Put {
            log: LOG,
            position,
            bytes,
        }
    }

    fn positions(disk: &Disk) -> Vec<u64> {
        disk.records().iter().map(|&(_, at, _)| at).collect()
    }

    /// Position 1 is durable, 2 and 3 are on their way.
    fn half_written() -> Disk {
        let (mut disk, mut rng) = (Disk::default(), Rng::new(1));
        disk.persist(PersistId(1), vec![put(1)], 10);
        disk.persist(PersistId(2), vec![put(2), put(3)], 20);
        assert!(disk.written(9, &mut rng).is_none());
        assert!(matches!(
            disk.written(10, &mut rng),
            Some(Input::Persisted { id: PersistId(1) })
        ));
        disk
    }

    #[test]
    fn what_was_not_reported_as_durable_may_be_lost_or_kept_or_torn() {
        let mut rng = Rng::new(1);
        for (loss, left) in [
            (DiskLoss::Nothing, vec![1, 2, 3]),
            (DiskLoss::Unsynced, vec![1]),
            (DiskLoss::Everything, vec![]),
        ] {
            let mut disk = half_written();
            disk.crash(loss, &mut rng);
            assert_eq!(positions(&disk), left, "{loss:?}");
        }
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..50 {
            let mut disk = half_written();
            disk.crash(DiskLoss::Torn, &mut rng);
            seen.insert(positions(&disk));
        }
        assert_eq!(seen.len(), 3, "{seen:?}");
    }

    #[test]
    fn a_write_that_fails_is_reported_and_leaves_nothing() {
        let (mut disk, mut rng) = (Disk::default(), Rng::new(1));
        disk.fails = Some(PersistError::NoSpace);
        disk.persist(PersistId(4), vec![put(1)], 5);
        let answer = disk.written(5, &mut rng);
        assert!(matches!(answer, Some(Input::PersistFailed { .. })));
        disk.crash(DiskLoss::Nothing, &mut rng);
        assert!(positions(&disk).is_empty());
    }

    #[test]
    fn a_fetch_answers_with_what_lies_within_its_bounds() {
        let disk = half_written();
        let Input::Fetched { records, .. } = disk.fetch(LOG, 1, 2) else {
            panic!("not an answer");
        };
        assert_eq!(records.len(), 1);
    }
}

//! The disk of a node, with its logs.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use rota_core::contract::{LogId, LogRecord, PersistId};
use rota_paxos::{STATE_LOG, VOTES_LOG, VoteHead, state_key};

/// What survives what.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Mode {
    /// Nothing survives the process.
    #[default]
    Memory,
    /// What was answered survives the process.
    Async,
    /// What was answered survives a loss of power, too.
    Sync,
}

#[derive(Default)]
pub struct Disk {
    logs: BTreeMap<(LogId, u64), Bytes>,
    /// Handed over and not answered.
    pub waiting: VecDeque<(PersistId, Vec<LogRecord>)>,
    /// Answered, and lost if power is lost.
    unsynced: Vec<LogRecord>,
    /// Something that was answered may be gone.
    pub lost_some: bool,
}

impl Disk {
    /// How much the first requests that wait want to be written, up to this one.
    pub fn bytes(&self, upto: usize) -> u64 {
        let records = self.waiting.iter().take(upto + 1);
        let records = records.flat_map(|(_, records)| records);
        let bytes = records.map(|record| match record {
            LogRecord::Put { bytes, .. } => bytes.len() as u64,
            LogRecord::Trim { .. } => 0,
        });
        bytes.sum()
    }

    /// Everything up to a request is there: it is answered.
    pub fn answer(&mut self, upto: PersistId, mode: Mode) {
        while let Some((_, records)) = self.waiting.pop_front_if(|(id, _)| *id <= upto) {
            self.unsynced.extend(records);
        }
        if mode != Mode::Async {
            self.sync(usize::MAX);
        }
    }

    /// The first of what is not synced is.
    pub fn sync(&mut self, count: usize) {
        let count = count.min(self.unsynced.len());
        for record in self.unsynced.drain(..count) {
            // What may have lost something is so until it has a name again.
            self.lost_some &= !is_name(&record);
            put(&mut self.logs, &record);
        }
    }

    pub fn unsynced(&self) -> usize {
        self.unsynced.len()
    }

    /// The process is gone: of what was not answered a first part, of so many records, is there.
    pub fn end(&mut self, count: usize) {
        let waiting = std::mem::take(&mut self.waiting);
        let records = waiting.into_iter().flat_map(|(_, records)| records);
        self.unsynced.extend(records.take(count));
    }

    /// Power is gone: of what was not synced a first part, of so many records, is there.
    pub fn lose(&mut self, count: usize, mode: Mode) {
        self.sync(count);
        // Where what is answered is synced, only what was not answered is gone.
        self.lost_some |= mode == Mode::Async;
        self.unsynced.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.logs.is_empty()
    }

    /// It is replaced by an empty one.
    pub fn replace(&mut self) {
        *self = Self::default();
    }

    /// The process begins again: what it finds.
    pub fn found(&mut self) -> Vec<(LogId, u64, Bytes)> {
        let mut logs = self.logs.clone();
        for record in &self.unsynced {
            put(&mut logs, record);
        }
        let all = logs.into_iter().map(|((log, at), bytes)| (log, at, bytes));
        let (votes, state): (Vec<_>, Vec<_>) = all.partition(|(log, ..)| *log == VOTES_LOG);
        state.into_iter().chain(votes).collect()
    }
}

fn is_name(record: &LogRecord) -> bool {
    matches!(record, LogRecord::Put { log: STATE_LOG, position, .. } if *position == state_key::STORE)
}

fn put(logs: &mut BTreeMap<(LogId, u64), Bytes>, record: &LogRecord) {
    match record {
        LogRecord::Put {
            log,
            position,
            bytes,
        } => {
            logs.insert((*log, *position), bytes.clone().into_bytes());
        }
        LogRecord::Trim { log, position } => {
            let span = |bytes: &Bytes| VoteHead::read(bytes).map_or(1, |head| head.span);
            let is_old =
                |(of, at): &(LogId, u64), bytes: &Bytes| of == log && at + span(bytes) <= *position;
            logs.retain(|key, bytes| !is_old(key, bytes));
        }
    }
}

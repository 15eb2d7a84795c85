//! A host's disk: the records written, the requests that wait, and the rest that a crash leaves.
//!
//! Records are written whole or not at all, as the storage below an engine promises; a torn write
//! leaves the first of a request's records.
//!
//! Where an engine keeps a log ([`DisksPlan`]), requests that wait are written together and answered in their order. An
//! answer says, depending on the mode, that all is on the disk, or that it is in the hands of the system, where the end
//! of the process does not touch it and a loss of power does; or nothing. After a request has failed so does every
//! other one until the log is given up and opened again. A disk may hang, and be bad for good.

mod image;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use bytes::Bytes;
use rota_core::contract::{Input, LogId, LogRecord, PersistError, PersistId};
use rota_paxos::STATE_LOG;

use crate::plan::{DiskLoss, DiskMode, DisksPlan, MILLIS};
use crate::rng::Rng;
use image::Image;

/// The position of an acceptor's name: records that were lost no longer matter when the acceptor has another name.
const NAME: u64 = 4;

#[derive(Debug)]
struct Request {
    id: PersistId,
    records: Vec<LogRecord>,
    /// `None` while it waits.
    done_at: Option<u64>,
    error: Option<PersistError>,
}

impl Request {
    fn bytes(&self) -> u64 {
        let bytes = |record: &LogRecord| match record {
            LogRecord::Put { bytes, .. } => bytes.len() as u64,
            LogRecord::Trim { .. } => 0,
        };
        self.records.iter().map(bytes).sum()
    }
}

/// Whether an acceptor gets its name with this.
fn is_name(record: &LogRecord) -> bool {
    matches!(record, LogRecord::Put { log, position, .. } if *log == STATE_LOG && *position == NAME)
}

/// Records of a log that are to be read back, from one position to before another.
#[derive(Clone, Copy, Debug)]
struct Read {
    log: LogId,
    from: u64,
    to: u64,
    done_at: u64,
}

/// The bytes that are read back at once, about.
const READ_BYTES: usize = 8 << 10;

/// Something that was answered, and is on the disk only later.
#[derive(Debug)]
struct Unsynced {
    synced_at: u64,
    records: Vec<LogRecord>,
}

/// The end of a process or a machine, with which a disk loses something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Crash {
    /// The process.
    Process,
    /// The machine, with what its system had not written.
    Power,
}

/// A disk.
#[derive(Default, Debug)]
pub struct Disk {
    durable: Image,
    /// The disk at its last copy, and the records answered since; `None` if the disk has changed otherwise, too.
    backup: Image,
    since: Option<Vec<LogRecord>>,
    /// Answered requests that are not on the disk, in the order of their answers.
    unsynced: VecDeque<Unsynced>,
    pending: VecDeque<Request>,
    /// Records to read back, in the order of the requests.
    reads: VecDeque<Read>,
    /// The error of every write while a fault lasts.
    pub fails: Option<PersistError>,
    /// Nothing is answered while a fault lasts.
    pub hangs: bool,
    /// It is never well again.
    pub is_dead: bool,
    /// Something that was answered may be gone, and nobody with that name has said so yet.
    pub lost_some: bool,
    /// The error of the first write that failed since the log was opened.
    broken: Option<PersistError>,
}

impl Disk {
    /// Begins to write; says when that is done.
    pub fn persist(&mut self, id: PersistId, records: Vec<LogRecord>, done_at: u64) -> u64 {
        let before = self.pending.back().and_then(|request| request.done_at);
        let done_at = done_at.max(before.unwrap_or(0));
        self.pending.push_back(Request {
            id,
            records,
            done_at: Some(done_at),
            error: self.fails.clone(),
        });
        done_at
    }

    /// Takes a request, to be written when its turn comes: see [`Self::begin`].
    pub fn hand_over(&mut self, id: PersistId, records: Vec<LogRecord>) {
        self.pending.push_back(Request {
            id,
            records,
            done_at: None,
            error: None,
        });
    }

    /// Begins to write all that waits, unless something is being written; says when that is done.
    pub fn begin(&mut self, plan: &DisksPlan, now: u64, rng: &mut Rng) -> Option<u64> {
        let first = self.pending.front()?;
        if first.done_at.is_some() {
            return None;
        }
        let (least, most) = plan.latency;
        let takes = match plan.mode {
            DiskMode::Memory => 0,
            _ if rng.ppm(plan.slow) => rng.spread(most, plan.slow_for.max(most)),
            _ => rng.range(least, most),
        };
        let bytes: u64 = self.pending.iter().map(Request::bytes).sum();
        let takes = takes + (bytes * MILLIS).checked_div(plan.per_milli).unwrap_or(0);
        let done_at = Some(now + takes);
        for request in &mut self.pending {
            request.done_at = done_at;
        }
        done_at
    }

    /// The next request that is done by `now`, if one is.
    pub fn written(&mut self, plan: Option<&DisksPlan>, now: u64, rng: &mut Rng) -> Option<Input> {
        if self.hangs {
            return None;
        }
        let done = self.pending.front()?.done_at? <= now;
        let request = if done {
            self.pending.pop_front()?
        } else {
            return None;
        };
        let id = request.id;
        let error = match plan {
            Some(_) => self.broken.clone().or_else(|| self.fails.clone()),
            None => request.error,
        };
        if let Some(error) = error {
            if plan.is_some() && self.broken.is_none() {
                self.broken = Some(error.clone());
                self.fail(&error, request.records, rng);
            }
            if plan.is_some_and(|plan| plan.hides_failures) {
                return Some(Input::Persisted { id });
            }
            return Some(Input::PersistFailed { id, error });
        }
        if let Some(since) = &mut self.since {
            since.extend_from_slice(&request.records);
        }
        self.lost_some &= !request.records.iter().any(is_name);
        if let Some(DisksPlan { mode, lag, .. }) = plan
            && *mode == DiskMode::Async
        {
            self.sync(now);
            self.unsynced.push_back(Unsynced {
                synced_at: now + rng.below(*lag + 1),
                records: request.records,
            });
        } else {
            for record in request.records {
                self.durable.apply(record);
            }
        }
        if rng.percent(20) {
            self.copy();
        }
        Some(Input::Persisted { id })
    }

    /// Begins to read records back; says when that is done.
    pub fn read(
        &mut self,
        (log, from, to): (LogId, u64, u64),
        plan: &DisksPlan,
        at: (u64, &mut Rng),
    ) -> u64 {
        let (now, rng) = at;
        let (least, most) = plan.latency;
        let takes = match rng.ppm(plan.slow) {
            true => rng.spread(most, plan.slow_for.max(most)),
            false => rng.range(least, most),
        };
        let before = self.reads.back().map_or(0, |read| read.done_at);
        let done_at = (now + takes).max(before);
        self.reads.push_back(Read {
            log,
            from,
            to,
            done_at,
        });
        done_at
    }

    /// Whether something is to be read back.
    pub fn is_read(&self) -> bool {
        !self.reads.is_empty()
    }

    /// The next records that are read back by `now`, if some are. None are found where the disk is in trouble, and now
    /// and then: who asked does not know why.
    pub fn has_read(&mut self, plan: &DisksPlan, now: u64, rng: &mut Rng) -> Option<Input> {
        if self.hangs {
            return None;
        }
        let Read { log, from, to, .. } = self.reads.pop_front_if(|read| read.done_at <= now)?;
        let fails = self.fails.is_some() || self.broken.is_some() || rng.ppm(plan.unreadable);
        let mut answer = self.fetch(log, from, to);
        if let Input::Fetched { records, .. } = &mut answer {
            let mut bytes = 0;
            records.retain(|(_, record)| {
                let has_room = bytes < READ_BYTES && !fails;
                bytes += record.len();
                has_room
            });
        }
        Some(answer)
    }

    /// A backup is taken: only what is new is copied.
    fn copy(&mut self) {
        match self.since.replace(Vec::new()) {
            Some(since) => since
                .into_iter()
                .for_each(|record| self.backup.apply(record)),
            None => self.backup = self.seen(),
        }
    }

    /// A first part of a failed write may be there all the same; where there was no room nothing is.
    fn fail(&mut self, error: &PersistError, mut records: Vec<LogRecord>, rng: &mut Rng) {
        if *error == PersistError::NoSpace {
            return;
        }
        records.truncate(rng.index(records.len() + 1));
        // Nobody reads the log until it is opened again.
        self.keep(records);
    }

    /// Whether a request has failed: none will go well before the log is opened again.
    pub const fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// Whether it does what it should.
    pub const fn is_well(&self) -> bool {
        self.fails.is_none() && !self.hangs
    }

    /// Faults are over, but for those that last for ever.
    pub fn mend(&mut self) {
        if !self.is_dead {
            (self.fails, self.hangs) = (None, false);
        }
    }

    /// The log is given up: a first part of the unanswered records is there. `loses`: none of those, and a first part
    /// only of the answered records that are not on the disk.
    pub fn give_up(&mut self, now: u64, loses: bool, rng: &mut Rng) {
        self.sync(now);
        self.since = None;
        let is_broken = self.broken.take().is_some();
        let pending = std::mem::take(&mut self.pending).into_iter();
        let mut records: Vec<LogRecord> = pending.flat_map(|request| request.records).collect();
        records.truncate(rng.index(records.len() + 1));
        if is_broken {
            records.clear();
        }
        if loses {
            self.lost_some = true;
            let left = rng.index(self.unsynced.len() + 1);
            self.unsynced.truncate(left);
            records.clear();
        }
        self.keep(records);
    }

    /// There is no older copy either.
    pub fn lose_backup(&mut self) {
        self.backup.clear();
        self.since = None;
    }

    /// Adds these records, behind all that was answered.
    fn keep(&mut self, records: Vec<LogRecord>) {
        if let Some(last) = self.unsynced.back() {
            // These records go behind those that the system still has in its hands.
            let synced_at = last.synced_at;
            self.unsynced.push_back(Unsynced { synced_at, records });
            return;
        }
        for record in records {
            self.durable.apply(record);
        }
    }

    /// Moves records to the disk that were answered long enough ago.
    fn sync(&mut self, now: u64) {
        while let Some(done) = self.unsynced.pop_front_if(|one| one.synced_at <= now) {
            for record in done.records {
                self.durable.apply(record);
            }
        }
    }

    /// The process has died, or the machine: this much is lost.
    pub fn crash(&mut self, now: u64, what: Crash, loss: DiskLoss, rng: &mut Rng) {
        self.sync(now);
        self.since = None;
        self.reads.clear();
        let mut pending = std::mem::take(&mut self.pending);
        if self.broken.take().is_some() {
            pending.clear();
        }
        let sound = pending
            .into_iter()
            .filter(|request| request.error.is_none());
        let sound = sound.flat_map(|request| request.records);
        let mut kept: Vec<LogRecord> = Vec::new();
        if what == Crash::Power {
            let answered = std::mem::take(&mut self.unsynced);
            kept.extend(answered.into_iter().flat_map(|one| one.records));
        }
        kept.extend(sound);
        match loss {
            DiskLoss::Nothing => {}
            DiskLoss::Unsynced => kept.clear(),
            DiskLoss::Torn => kept.truncate(rng.index(kept.len() + 1)),
            DiskLoss::Everything => {
                kept.clear();
                self.unsynced.clear();
                self.durable.clear();
            }
            DiskLoss::Backup => {
                kept.clear();
                self.unsynced.clear();
                self.durable.clone_from(&self.backup);
            }
        }
        self.keep(kept);
    }

    /// The contents of the disk as its system shows them.
    fn seen(&self) -> Image {
        let mut seen = self.durable.clone();
        let unsynced = self.unsynced.iter().flat_map(|one| &one.records);
        unsynced.for_each(|record| seen.apply(record.clone()));
        seen
    }

    /// The records that a starting process finds.
    pub fn records(&self) -> Vec<(LogId, u64, Bytes)> {
        self.seen().records()
    }

    /// Answers a request to read records back.
    pub fn fetch(&self, log: LogId, from: u64, to: u64) -> Input {
        Input::Fetched {
            log,
            from,
            to,
            records: self.seen().between(log, from, to),
        }
    }
}

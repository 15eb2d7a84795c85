//! What an acceptor keeps: records in two logs, and what is said when they are durable.
//!
//! Everything is written, and said, in the order in which it came to be. No more is asked of the disk at a time than drivers
//! take: what does not fit waits here, in that order, and leaves as the disk answers. So nothing that has to be written at
//! once can be too much.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::base::Base;
use super::base_bytes::put_base_record;
use super::codec::{cast, put_config, put_slot};
use super::word::Word;
use crate::contract::{LogRecord, NodeId, Output, PersistId, Time};
use crate::mutants::{self, Mutant};
use crate::paxos::state_key::{BASE, COMPLETE, CONFIG, DECIDED, FLOOR, PROMISED, SLOT, STORE};
use crate::paxos::{
    self, Acceptor, Config, Instance, Mark, Promise, Round, STATE_LOG, Slot, VOTES_LOG, Vote,
};

/// With so much waiting for the disk a process takes no proposals, and so slows the ring, and asks for nothing that it
/// lacks, in bytes. No more is under way than this and one record.
const MOST_BYTES: usize = 16 << 20;

/// What may be said when all before it is durable.
#[derive(Clone, Debug)]
pub enum Effect {
    /// A word to a node.
    Say(NodeId, Word),
    /// Phase 1B.
    Promise(NodeId, Promise),
    /// The cluster is founded with this configuration.
    Found(Arc<Config>),
    /// The log has all that this acceptor is, and its name.
    Named,
}

/// What is to be written, and what follows when all before it is.
#[derive(Debug)]
enum Item {
    Write(LogRecord),
    /// Of the acceptor, not yet as it is written.
    Acceptor(paxos::Record, Mark),
    Then(Effect),
    /// All records of the acceptor are before it, and all that was learnt up to here.
    Mark(Mark, Instance),
}

#[derive(Debug)]
struct Waiting {
    id: PersistId,
    bytes: usize,
    done: Done,
}

/// What follows when a request is durable.
#[derive(Debug, Default)]
struct Done {
    mark: Option<Mark>,
    learnt: Instance,
    effects: Vec<Effect>,
}

impl Done {
    fn add(&mut self, later: Self) {
        self.mark = later.mark.or(self.mark);
        self.learnt = self.learnt.max(later.learnt);
        self.effects.extend(later.effects);
    }
}

/// Requests to make records durable.
#[derive(Debug, Default)]
pub struct Disk {
    last: u64,
    /// What depends on nothing that waits.
    state: Vec<LogRecord>,
    /// What speaks of votes, and must not be durable before they are.
    behind: Vec<LogRecord>,
    effects: Vec<Effect>,
    /// What there was no room for.
    queue: VecDeque<Item>,
    waiting: VecDeque<Waiting>,
    /// What is under way, in bytes.
    bytes: usize,
    /// Since when the disk has answered nothing, where it has something to answer.
    since: Option<Time>,
    /// It had to answer by then, and has had a little longer since.
    late: Option<Time>,
    /// What was in the queue last as a mark.
    marked: Option<(Mark, Instance)>,
    /// Up to where what was learnt is durable.
    learnt: Instance,
    /// Nothing is kept.
    forgets: bool,
    /// A request has failed, or took too long: nothing is promised and voted for before the log is open again.
    pub failed: bool,
    /// What is not needed any more is to be forgotten.
    pub trim_due: bool,
    /// What the log had when it was opened cannot be read: it is not opened again.
    pub damaged: bool,
}

fn bytes_of(record: &LogRecord) -> usize {
    match record {
        LogRecord::Put { bytes, .. } => bytes.len(),
        LogRecord::Trim { .. } => 0,
    }
}

fn state(key: u64, write: impl FnOnce(&mut Vec<u8>)) -> LogRecord {
    let mut bytes = Vec::new();
    write(&mut bytes);
    LogRecord::Put {
        log: STATE_LOG,
        position: key,
        bytes: bytes.into(),
    }
}

fn number(key: u64, number: u64) -> LogRecord {
    state(key, |out| out.extend(number.to_le_bytes()))
}

fn voted(vote: &Vote) -> LogRecord {
    LogRecord::Put {
        log: VOTES_LOG,
        position: vote.first,
        bytes: cast(vote),
    }
}

impl Disk {
    /// For an acceptor that forgets, or one that does not.
    pub fn new(forgets: bool) -> Self {
        Self {
            forgets,
            ..Self::default()
        }
    }

    /// Says something when all that has to be durable before it is.
    pub fn then(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    pub fn put_store(&mut self, store: u64) {
        self.behind.push(number(STORE, store));
    }

    pub fn put_config(&mut self, config: &Config) {
        let config = state(CONFIG, |out| put_config(out, config));
        self.state.push(config);
    }

    pub fn put_slot(&mut self, number: Round, slot: &Slot<Arc<Config>>) {
        let slot = state(SLOT, |out| {
            out.extend(number.to_le_bytes());
            put_slot(out, slot);
        });
        self.state.push(slot);
    }

    /// Where to begin when it is started again: with the values that are needed there and that no vote has.
    pub fn put_base(&mut self, base: &Base, values: impl IntoIterator<Item = Vote>) {
        self.behind
            .extend(values.into_iter().map(|vote| voted(&vote)));
        self.behind
            .push(state(BASE, |out| put_base_record(out, base)));
    }

    /// What is before this and kept here is what was decided: it is told as such.
    pub fn put_decided(&mut self, decided: Instance) {
        self.behind.push(number(DECIDED, decided));
    }

    /// This configuration is complete, for ever.
    pub fn put_complete(&mut self, complete: Round) {
        self.behind.push(number(COMPLETE, complete));
    }

    /// A record of an acceptor that the log lacks, though it was durable once.
    pub fn put_again(&mut self, record: paxos::Record) {
        self.queue.extend(encode(record).map(Item::Write));
    }

    /// What there is to write now. What waits for nothing any more is in `ready`. `learnt`: all before is learnt. `floor`:
    /// where the votes begin that are needed still.
    pub fn request(
        &mut self,
        now: Time,
        acceptor: &mut Acceptor,
        (learnt, floor): (Instance, Instance),
        ready: &mut Vec<Effect>,
    ) -> Option<Output> {
        if self.forgets || self.failed {
            let mark = acceptor.records().1;
            self.state.clear();
            self.behind.clear();
            if self.failed {
                self.effects.clear();
                self.queue.clear();
            } else {
                acceptor.on_durable(mark);
                self.learnt = learnt;
                ready.append(&mut self.effects);
            }
            return None;
        }
        self.take_over(acceptor, learnt, floor);
        if self.queue.is_empty() && self.state.is_empty() {
            return None;
        }
        self.next_request(now, acceptor, ready)
    }

    /// Everything that is new goes behind what waits, in the order in which it has to be durable.
    fn take_over(&mut self, acceptor: &mut Acceptor, learnt: Instance, floor: Instance) {
        let mut trims = core::mem::take(&mut self.trim_due);
        while let Some((record, mark)) = acceptor.next_record() {
            match record {
                paxos::Record::Trimmed(_) => trims = true,
                record => self.queue.push_back(Item::Acceptor(record, mark)),
            }
        }
        let behind = core::mem::take(&mut self.behind);
        let trim = trims.then_some(LogRecord::Trim {
            log: VOTES_LOG,
            position: floor,
        });
        if mutants::on(Mutant::U46) {
            self.queue.extend(trim.clone().map(Item::Write));
        }
        self.queue.extend(behind.into_iter().map(Item::Write));
        self.queue.extend(trim.map(Item::Write));
        let mark = acceptor.mark();
        if self.marked != Some((mark, learnt)) {
            self.marked = Some((mark, learnt));
            self.queue.push_back(Item::Mark(mark, learnt));
        }
        let effects = core::mem::take(&mut self.effects);
        self.queue.extend(effects.into_iter().map(Item::Then));
    }

    fn next_request(
        &mut self,
        now: Time,
        acceptor: &mut Acceptor,
        ready: &mut Vec<Effect>,
    ) -> Option<Output> {
        let mut records = core::mem::take(&mut self.state);
        let mut bytes = records.iter().map(bytes_of).sum();
        let mut done = Done::default();
        while self.bytes + bytes < MOST_BYTES || !self.is_record_next() {
            let record = match self.queue.pop_front() {
                Some(Item::Write(record)) => record,
                Some(Item::Acceptor(record, mark)) => {
                    done.mark = Some(mark);
                    match encode(record) {
                        Some(record) => record,
                        None => continue,
                    }
                }
                Some(Item::Mark(mark, learnt)) => {
                    (done.mark, done.learnt) = (Some(mark), learnt);
                    continue;
                }
                Some(Item::Then(effect)) => {
                    done.effects.push(effect);
                    continue;
                }
                None => break,
            };
            bytes += bytes_of(&record);
            records.push(record);
        }
        if mutants::on(Mutant::U64) {
            ready.append(&mut done.effects);
        }
        if records.is_empty() {
            match self.waiting.back_mut() {
                Some(last) => last.done.add(done),
                None => self.is_done(done, acceptor, ready),
            }
            return None;
        }
        self.last += 1;
        let id = PersistId(self.last);
        self.bytes += bytes;
        self.since.get_or_insert(now);
        self.waiting.push_back(Waiting { id, bytes, done });
        Some(Output::Persist { id, records })
    }

    fn is_record_next(&self) -> bool {
        let next = self.queue.front();
        matches!(next, Some(Item::Write(_) | Item::Acceptor(..)))
    }

    fn is_done(&mut self, done: Done, acceptor: &mut Acceptor, ready: &mut Vec<Effect>) {
        if let Some(mark) = done.mark {
            acceptor.on_durable(mark);
        }
        self.learnt = self.learnt.max(done.learnt);
        ready.extend(done.effects);
    }

    /// A request, and all before it, are durable: what may be said now.
    pub fn on_persisted(
        &mut self,
        now: Time,
        id: PersistId,
        acceptor: &mut Acceptor,
    ) -> Vec<Effect> {
        let mut ready = Vec::new();
        while let Some(first) = self.waiting.pop_front_if(|waiting| waiting.id <= id) {
            self.bytes -= first.bytes;
            (self.since, self.late) = (Some(now), None);
            self.is_done(first.done, acceptor, &mut ready);
        }
        if self.waiting.is_empty() {
            self.since = None;
        }
        ready
    }

    /// When a disk that may take so long has hung. Where the process itself did not run, its answers are at the door by
    /// then: it gets `grace` more, from when that is noticed.
    pub fn hangs_at(&self, patience: u64, grace: u64) -> Option<Time> {
        let late = self.late.map(|at| at.after(grace));
        late.or_else(|| self.since.map(|at| at.after(patience)))
    }

    /// The time that [`Self::hangs_at`] named has come. Whether that was the last.
    pub fn is_late(&mut self, now: Time) -> bool {
        self.late.replace(now).is_some()
    }

    /// A request failed, or took too long: nothing that was asked for counts.
    pub fn on_failed(&mut self) {
        *self = Self {
            last: self.last,
            learnt: self.learnt,
            forgets: self.forgets,
            damaged: self.damaged,
            failed: true,
            ..Self::default()
        };
    }

    /// Whether so much waits that nothing should be added.
    pub fn is_behind(&self) -> bool {
        self.bytes >= MOST_BYTES || !self.queue.is_empty()
    }

    /// Up to where what was learnt is durable.
    pub const fn learnt(&self) -> Instance {
        self.learnt
    }
}

/// What an acceptor's record is on the disk; trims are written elsewhere.
fn encode(record: paxos::Record) -> Option<LogRecord> {
    match record {
        paxos::Record::Promised(round) => Some(number(PROMISED, round)),
        paxos::Record::Voted(vote) => Some(voted(&vote)),
        paxos::Record::Floor(floor) => Some(number(FLOOR, floor)),
        paxos::Record::Trimmed(_) => None,
    }
}

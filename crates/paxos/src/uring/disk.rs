//! The disk of an acceptor: records in two logs, and the effects that follow when they are durable.
//!
//! All records are written, and all effects follow, in the order in which they came to be; but records that speak of no
//! votes (the register, the configuration, the complete configuration) go with the next request, before everything that
//! waits. The disk is asked for no more at a time than drivers take: the rest waits here, in that order, and leaves as
//! the disk answers. So nothing that has to be written at once can be too much.

mod put;

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::pace::Pace;
use super::voter::LogRepair;
use super::word::Word;
use super::written::{bytes_of, encode};
use crate as paxos;
use crate::{Acceptor, Config, Instance, Mark, Promise, VOTES_LOG};
use rota_core::contract::{LogRecord, NodeId, Output, PersistId, Time};
use rota_core::mutants::{self, Mutant};

/// A process asks for missing instances while no more than one part in this many of the allowed bytes is under way:
/// there has to be room for proposals.
const PART_OF_LACKING: usize = 4;

/// An effect that may follow when everything before it is durable.
#[derive(Clone, Debug)]
pub enum Effect {
    /// A message to a node.
    Say(NodeId, Word),
    /// Phase 1B.
    Promise(NodeId, Promise),
    /// The cluster is founded with this configuration.
    Found(Arc<Config>),
    /// The log has the whole state of this acceptor, and its name.
    Named,
}

/// A record to write, or something that follows when everything before it is durable.
#[derive(Debug)]
enum Item {
    Write(LogRecord),
    /// A record of the acceptor, not encoded yet.
    Acceptor(paxos::Record, Mark),
    Then(Effect),
    /// The mark of all records of the acceptor before it, and the instance up to which everything was learnt.
    Mark(Mark, Instance),
}

#[derive(Debug)]
struct Waiting {
    id: PersistId,
    asked: Time,
    bytes: usize,
    done: Done,
}

/// The consequences of a durable request.
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
    /// Records that depend on nothing that waits.
    state: Vec<LogRecord>,
    /// Records that speak of votes, and must not be durable before these are.
    behind: Vec<LogRecord>,
    /// Effects that follow when the state is durable, whatever waits.
    first: Vec<Effect>,
    effects: Vec<Effect>,
    /// Records and effects that there was no room for.
    queue: VecDeque<Item>,
    waiting: VecDeque<Waiting>,
    /// The bytes that are under way.
    bytes: usize,
    /// The pace of the disk.
    pub pace: Pace,
    /// The repair of the log, which lacks records since it was opened.
    pub refill: Option<LogRepair>,
    /// The mark that was put into the queue last.
    marked: Option<(Mark, Instance)>,
    /// The instance before which everything learnt is durable.
    learnt: Instance,
    /// The acceptor writes nothing.
    forgets: bool,
    /// A request has failed, or took too long: nothing is promised and voted for before the log is open again.
    pub failed: bool,
    /// Votes that are not needed any more are to be trimmed from the log.
    pub trim_due: bool,
    /// The records that the log had when it was opened cannot be read: it is not opened again.
    pub damaged: bool,
}

impl Disk {
    /// For an acceptor that writes nothing (`forgets`), or one with at most `most` bytes under way.
    pub fn new(forgets: bool, most: usize) -> Self {
        Self {
            forgets,
            pace: Pace::new(most),
            ..Self::default()
        }
    }

    /// Adds an effect that follows when everything put before it is durable.
    pub fn then(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Adds an effect that follows when the state that was put is durable: it does not speak of votes, and waits for
    /// none.
    pub fn then_first(&mut self, effect: Effect) {
        self.first.push(effect);
    }

    /// The next request. Effects that wait for nothing any more go to `ready`. `learnt`: everything before is learnt.
    /// `floor`: the first instance whose vote is still needed.
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
                self.first.clear();
                self.effects.clear();
                self.queue.clear();
            } else {
                acceptor.on_durable(mark);
                self.learnt = learnt;
                ready.append(&mut self.first);
                ready.append(&mut self.effects);
            }
            return None;
        }
        match &self.refill {
            Some(_) => self.take_over_some(acceptor),
            None => self.take_over(acceptor, learnt, floor),
        }
        if self.queue.is_empty() && self.state.is_empty() && self.first.is_empty() {
            return None;
        }
        self.next_request(now, acceptor, ready)
    }

    /// Takes over records while a log is refilled: those that the repair does not find itself. Nothing is said of
    /// votes.
    fn take_over_some(&mut self, acceptor: &mut Acceptor) {
        while let Some((record, _)) = acceptor.next_record() {
            let is_found = self
                .refill
                .as_ref()
                .is_some_and(|refill| refill.finds(&record));
            if !is_found {
                self.put_again(record);
            }
        }
        if !mutants::on(Mutant::U72) {
            self.behind.clear();
        }
        self.hand_over();
    }

    /// Moves the records that were put behind those that wait, and the effects behind them.
    pub fn hand_over(&mut self) {
        let behind = core::mem::take(&mut self.behind);
        self.queue.extend(behind.into_iter().map(Item::Write));
        let effects = core::mem::take(&mut self.effects);
        self.queue.extend(effects.into_iter().map(Item::Then));
    }

    /// Whether nothing is under way, and nothing waits.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.queue.is_empty()
    }

    /// Moves everything new behind everything that waits, in the order in which it has to be durable.
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
        let mut done = Done {
            effects: core::mem::take(&mut self.first),
            ..Done::default()
        };
        while self.bytes + bytes < self.pace.most() || !self.is_record_next() {
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
        self.bytes += bytes + usize::from(mutants::on(Mutant::I08));
        self.pace.on_request(now);
        self.waiting.push_back(Waiting {
            id,
            asked: now,
            bytes,
            done,
        });
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

    /// A request, and all before it, are durable. Returns the effects that follow now. `patience`: the time that a disk
    /// may take.
    pub fn on_persisted(
        &mut self,
        id: PersistId,
        acceptor: &mut Acceptor,
        (now, patience): (Time, u64),
    ) -> Vec<Effect> {
        let (mut ready, mut asked, before) = (Vec::new(), None, self.bytes);
        while let Some(first) = self.waiting.pop_front_if(|waiting| waiting.id <= id) {
            self.bytes -= first.bytes;
            asked = asked.or(Some(first.asked));
            self.is_done(first.done, acceptor, &mut ready);
        }
        if let Some(asked) = asked {
            let answered = (before - self.bytes, now.since(asked));
            self.pace
                .on_answer(now, answered, self.waiting.is_empty(), patience);
        }
        ready
    }

    /// A request has failed, or took too long: no request under way counts.
    pub fn on_failed(&mut self) {
        let mut pace = core::mem::take(&mut self.pace);
        pace.on_failed();
        *self = Self {
            pace,
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
        self.bytes >= self.pace.most() || !self.queue.is_empty()
    }

    /// Whether so much waits that nothing should be asked for.
    pub fn is_busy(&self) -> bool {
        let is_busy = self.bytes >= self.pace.most() / PART_OF_LACKING;
        self.is_behind() || is_busy && !mutants::on(Mutant::U79)
    }

    /// The bytes that the disk takes now.
    pub fn room(&self) -> usize {
        match self.is_behind() {
            true => 0,
            false => self.pace.most() - self.bytes,
        }
    }

    /// The instance before which everything learnt is durable.
    pub const fn learnt(&self) -> Instance {
        self.learnt
    }
}

impl Disk {
    /// Its invariants.
    pub fn check(&self) {
        let bytes: usize = self.waiting.iter().map(|waiting| waiting.bytes).sum();
        assert_eq!(self.bytes, bytes, "what is under way is counted");
        let ids = self.waiting.iter().map(|waiting| waiting.id);
        assert!(
            ids.is_sorted_by(|one, next| one < next),
            "requests are answered in order"
        );
        assert!(
            self.waiting
                .back()
                .is_none_or(|last| last.id.0 <= self.last),
            "ids grow"
        );
        assert!(
            !self.damaged || self.failed,
            "a log that cannot be read is given up"
        );
        assert!(
            !self.forgets || self.waiting.is_empty(),
            "nothing is asked of a disk that is not there"
        );
        assert!(
            !self.failed || self.waiting.is_empty(),
            "nothing that was asked for counts after a failure"
        );
        assert!(
            !self.failed || self.refill.is_none(),
            "a log that is away is not refilled"
        );
    }
}

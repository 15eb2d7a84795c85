//! Records that wait to be written, and effects that wait for them, in the order in which they have to be durable.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::super::written::{bytes_of, encode};
use super::Effect;
use super::under_way::Done;
use crate as paxos;
use crate::{Acceptor, Instance, Mark, VOTES_LOG};
use rota_core::contract::LogRecord;
use rota_core::mutants::{self, Mutant};

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

/// See the module's page.
#[derive(Debug, Default)]
pub struct Unwritten {
    /// Records that depend on nothing that waits.
    state: Vec<LogRecord>,
    /// Records that speak of votes, and must not be durable before these are.
    behind: Vec<LogRecord>,
    /// Effects that follow when the state is durable, whatever waits.
    first: Vec<Effect>,
    effects: Vec<Effect>,
    /// Records and effects that there was no room for.
    queue: VecDeque<Item>,
    /// The mark that was put into the queue last.
    marked: Option<(Mark, Instance)>,
}

impl Unwritten {
    /// A record that depends on nothing that waits.
    pub fn put(&mut self, records: impl IntoIterator<Item = LogRecord>) {
        self.state.extend(records);
    }

    /// Records that speak of votes.
    pub fn put_behind(&mut self, records: impl IntoIterator<Item = LogRecord>) {
        self.behind.extend(records);
    }

    /// A record that comes behind everything in the queue.
    pub fn put_last(&mut self, record: Option<LogRecord>) {
        self.queue.extend(record.map(Item::Write));
    }

    /// An effect that follows when everything put before it is durable.
    pub fn then(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// An effect that follows when the state that was put is durable.
    pub fn then_first(&mut self, effect: Effect) {
        self.first.push(effect);
    }

    /// Whether there is nothing to ask the disk for.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.state.is_empty() && self.first.is_empty()
    }

    /// Whether something waits for room at the disk.
    pub fn waits(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Nothing is written: no record is, and all effects follow.
    pub fn skip(&mut self, ready: &mut Vec<Effect>) {
        self.state.clear();
        self.behind.clear();
        ready.append(&mut self.first);
        ready.append(&mut self.effects);
    }

    /// Records that speak of votes are not written.
    pub fn forget_behind(&mut self) {
        self.behind.clear();
    }

    /// Moves the records that were put behind those that wait, and the effects behind them.
    pub fn hand_over(&mut self) {
        self.take_behind();
        self.take_effects();
    }

    fn take_behind(&mut self) {
        let behind = core::mem::take(&mut self.behind);
        self.queue.extend(behind.into_iter().map(Item::Write));
    }

    fn take_effects(&mut self) {
        let effects = core::mem::take(&mut self.effects);
        self.queue.extend(effects.into_iter().map(Item::Then));
    }

    /// Moves everything new behind everything that waits, in the order in which it has to be durable. `trims`: votes
    /// before `floor` are to be trimmed.
    pub fn take_over(
        &mut self,
        acceptor: &mut Acceptor,
        mut trims: bool,
        (learnt, floor): (Instance, Instance),
    ) {
        while let Some((record, mark)) = acceptor.next_record() {
            match record {
                paxos::Record::Trimmed(_) => trims = true,
                record => self.queue.push_back(Item::Acceptor(record, mark)),
            }
        }
        let trim = trims.then_some(LogRecord::Trim {
            log: VOTES_LOG,
            position: floor,
        });
        if mutants::on(Mutant::U46) {
            self.queue.extend(trim.clone().map(Item::Write));
        }
        self.take_behind();
        self.queue.extend(trim.map(Item::Write));
        let mark = acceptor.mark();
        if self.marked != Some((mark, learnt)) {
            self.marked = Some((mark, learnt));
            self.queue.push_back(Item::Mark(mark, learnt));
        }
        self.take_effects();
    }

    /// The records of the next request, their bytes, and what follows. `takes`: whether so many bytes may be under way,
    /// and another record.
    pub fn next(&mut self, takes: impl Fn(usize) -> bool) -> (Vec<LogRecord>, usize, Done) {
        let mut records = core::mem::take(&mut self.state);
        let mut bytes = records.iter().map(bytes_of).sum();
        let mut done = Done {
            effects: core::mem::take(&mut self.first),
            ..Done::default()
        };
        while takes(bytes) || !self.is_record_next() {
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
        (records, bytes, done)
    }

    fn is_record_next(&self) -> bool {
        let next = self.queue.front();
        matches!(next, Some(Item::Write(_) | Item::Acceptor(..)))
    }
}

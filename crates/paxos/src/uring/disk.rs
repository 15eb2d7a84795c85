//! The disk of an acceptor: records in two logs, and the effects that follow when they are durable.
//!
//! All records are written, and all effects follow, in the order in which they came to be; but records that speak of no
//! votes (the register, the configuration, the complete configuration) go with the next request, before everything that
//! waits. The disk is asked for no more at a time than drivers take: the rest waits here, in that order, and leaves as
//! the disk answers. So nothing that has to be written at once can be too much.
//!
//! `unwritten` has what waits, in its order, and `under_way` the requests that the disk has not answered.

mod put;
mod under_way;
mod unwritten;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use super::voter::LogRepair;
use super::word::Word;
use crate::{Acceptor, Config, Instance, Promise};
use rota_core::contract::{NodeId, Output, PersistId, Time};
use rota_core::mutants::{self, Mutant};
use under_way::{Done, UnderWay};
use unwritten::Unwritten;

/// An effect that may follow when everything before it is durable.
#[derive(Clone, Debug)]
pub enum Effect {
    /// A message to a node.
    Say(NodeId, Word),
    /// Phase 1B. It lacks the votes of these instances, which only the log has.
    Promise(NodeId, Promise, Range<Instance>),
    /// The cluster is founded with this configuration.
    Found(Arc<Config>),
    /// The log has the whole state of this acceptor, and its name.
    Named,
}

/// The log at the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Log {
    /// It is open.
    #[default]
    Open,
    /// A request has failed, or took too long: nothing is promised and voted for before the log is open again.
    Failed,
    /// The records that it had when it was opened cannot be read: it is not opened again.
    Damaged,
}

/// Requests to make records durable.
#[derive(Debug, Default)]
pub struct Disk {
    log: Log,
    /// The acceptor writes nothing.
    forgets: bool,
    unwritten: Unwritten,
    under_way: UnderWay,
    /// The repair of the log, which lacks records since it was opened.
    refill: Option<LogRepair>,
    /// The instance before which everything learnt is durable.
    learnt: Instance,
    /// Votes that are not needed any more are to be trimmed from the log.
    trim_due: bool,
}

impl Disk {
    /// For an acceptor that writes nothing (`forgets`), or one with at most `most` bytes under way.
    pub fn new(forgets: bool, most: usize) -> Self {
        Self {
            forgets,
            under_way: UnderWay::new(most),
            ..Self::default()
        }
    }

    /// The log was opened; `damaged`: its records cannot be read.
    pub const fn on_open(&mut self, damaged: bool) {
        self.log = match damaged {
            true => Log::Damaged,
            false => Log::Open,
        };
    }

    /// Whether the log is away: a request has failed or took too long, or its records cannot be read.
    pub const fn has_failed(&self) -> bool {
        !matches!(self.log, Log::Open)
    }

    /// Whether the records of the log cannot be read.
    pub const fn is_damaged(&self) -> bool {
        matches!(self.log, Log::Damaged)
    }

    /// Adds an effect that follows when everything put before it is durable.
    pub fn then(&mut self, effect: Effect) {
        self.unwritten.then(effect);
    }

    /// Adds an effect that follows when the state that was put is durable: it does not speak of votes, and waits for
    /// none.
    pub fn then_first(&mut self, effect: Effect) {
        self.unwritten.then_first(effect);
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
        if self.has_failed() {
            acceptor.records();
            self.unwritten = Unwritten::default();
            return None;
        }
        if self.forgets {
            let mark = acceptor.records().1;
            acceptor.on_durable(mark);
            self.learnt = learnt;
            self.unwritten.skip(ready);
            return None;
        }
        match &self.refill {
            Some(_) => self.take_over_some(acceptor),
            None => {
                let trims = core::mem::take(&mut self.trim_due);
                self.unwritten.take_over(acceptor, trims, (learnt, floor));
            }
        }
        if self.unwritten.is_empty() {
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
            self.unwritten.forget_behind();
        }
        self.hand_over();
    }

    /// Moves the records that were put behind those that wait, and the effects behind them.
    pub fn hand_over(&mut self) {
        self.unwritten.hand_over();
    }

    /// Whether nothing is under way, and nothing waits.
    pub fn is_idle(&self) -> bool {
        self.under_way.is_empty() && !self.unwritten.waits()
    }

    fn next_request(
        &mut self,
        now: Time,
        acceptor: &mut Acceptor,
        ready: &mut Vec<Effect>,
    ) -> Option<Output> {
        let under_way = &self.under_way;
        let next = self.unwritten.next(|bytes| under_way.takes(bytes));
        let (records, bytes, mut done) = next;
        if mutants::on(Mutant::U64) {
            ready.append(&mut done.effects);
        }
        if records.is_empty() {
            if let Some(done) = self.under_way.follow(done) {
                is_done(done, (acceptor, &mut self.learnt), ready);
            }
            return None;
        }
        let id = self.under_way.ask(now, bytes, done);
        Some(Output::Persist { id, records })
    }

    /// A request, and all before it, are durable. Effects that follow now go to `ready`. `patience`: the time that a
    /// disk may take.
    pub fn on_persisted(
        &mut self,
        id: PersistId,
        acceptor: &mut Acceptor,
        at: (Time, u64),
        ready: &mut Vec<Effect>,
    ) {
        let learnt = &mut self.learnt;
        let each = |done| is_done(done, (&mut *acceptor, &mut *learnt), ready);
        self.under_way.on_persisted(id, at, each);
    }

    /// A request has failed, or took too long: no request under way counts.
    pub fn on_failed(&mut self) {
        self.log = Log::Failed;
        self.unwritten = Unwritten::default();
        self.under_way.on_failed();
        (self.refill, self.trim_due) = (None, false);
    }

    /// The repair of the log, if it lacks records since it was opened.
    pub const fn refill(&mut self) -> Option<&mut LogRepair> {
        self.refill.as_mut()
    }

    /// Whether the log lacks records since it was opened.
    pub const fn is_refilled(&self) -> bool {
        self.refill.is_some()
    }

    /// The log gets the records that it lacks from here on.
    pub fn begin_refill(&mut self, repair: LogRepair) {
        self.refill = Some(repair);
    }

    /// The log has everything. Votes that it has and that are not needed are trimmed.
    pub fn end_refill(&mut self) {
        (self.refill, self.trim_due) = (None, true);
    }

    /// The time at which the disk has hung: see [`UnderWay::hangs_at`].
    pub fn hangs_at(&self, patience: u64, grace: u64) -> Option<Time> {
        self.under_way.hangs_at(patience, grace)
    }

    /// That time has come. Returns whether that was the last.
    pub fn is_late(&mut self, now: Time) -> bool {
        self.under_way.is_late(now)
    }

    /// Whether so much waits that nothing should be added.
    pub fn is_behind(&self) -> bool {
        self.under_way.room() == 0 || self.unwritten.waits()
    }

    /// Whether so much waits that nothing should be asked for.
    pub fn is_busy(&self) -> bool {
        let is_busy = self.under_way.is_busy();
        self.is_behind() || is_busy && !mutants::on(Mutant::U79)
    }

    /// The bytes that the disk takes now.
    pub fn room(&self) -> usize {
        match self.is_behind() {
            true => 0,
            false => self.under_way.room(),
        }
    }

    /// The instance before which everything learnt is durable.
    pub const fn learnt(&self) -> Instance {
        self.learnt
    }

    /// Its invariants.
    pub fn check(&self) {
        self.under_way.check();
        assert!(
            !self.forgets || self.under_way.is_empty(),
            "nothing is asked of a disk that is not there"
        );
        assert!(
            !self.has_failed() || self.under_way.is_empty(),
            "nothing that was asked for counts after a failure"
        );
        assert!(
            !self.has_failed() || self.refill.is_none(),
            "a log that is away is not refilled"
        );
    }
}

/// A request is durable, of this acceptor, and with it everything that was learnt before.
fn is_done(
    done: Done,
    (acceptor, learnt): (&mut Acceptor, &mut Instance),
    ready: &mut Vec<Effect>,
) {
    if let Some(mark) = done.mark {
        acceptor.on_durable(mark);
    }
    *learnt = done.learnt.max(*learnt);
    ready.extend(done.effects);
}

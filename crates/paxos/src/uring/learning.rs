//! The learner of a process and its application: the decided values in order, those that count, and those that were
//! delivered.

use bytes::Bytes;

use super::accounts::Command;
use super::backlog::Backlog;
use super::context::Context;
use super::hand_out::DeliveryQueue;
use super::own::InFlight;
use super::reading::{Reader, Reading};
use super::resume::Snapshots;
use super::snapshot::Snapshot;
use super::voter::Voter;
use crate::{Instance, Learner, Proposers, Value, ValueId, Vote};
use rota_core::contract::Delivery;
use rota_core::mutants::{self, Mutant};

/// The kind of a decided value.
#[derive(Clone, Copy, Debug)]
pub enum Counted {
    /// It counts: its name, and its size in bytes.
    Value(ValueId, usize),
    /// It has counted before, or another value has to count first.
    Never,
    /// It is no value of a proposer.
    Other,
}

/// See the module's page.
#[derive(Debug)]
pub struct Learning {
    pub learner: Learner,
    /// The snapshot of everything that was learnt.
    learnt: Snapshot,
    /// The snapshot of everything that was delivered.
    pub(super) delivered: Snapshot,
    pub(super) bases: Snapshots,
    pub hand_out: DeliveryQueue,
    backlog: Backlog,
    /// The application was told that everything before this instance was delivered or carries nothing.
    passed: Instance,
}

impl Learning {
    /// A learner that has learnt nothing.
    pub fn new(cx: &Context) -> Self {
        Self {
            learner: Learner::new(1),
            learnt: Snapshot::default(),
            delivered: Snapshot::default(),
            bases: Snapshots::default(),
            hand_out: DeliveryQueue::new(&cx.settings),
            backlog: Backlog::new(cx.settings.acceptor.hold_bytes),
            passed: 1,
        }
    }

    /// Everything before this is learnt.
    pub fn next(&self) -> Instance {
        self.learner.next()
    }

    /// The snapshot of everything that was learnt.
    pub const fn learnt(&self) -> &Snapshot {
        &self.learnt
    }

    /// Whether everything that was learnt is delivered.
    pub fn is_settled(&self) -> bool {
        self.delivered.next >= self.next() && self.hand_out.is_empty()
    }

    /// A process starts, whose acceptor knows everything before `decided`.
    pub fn start(&mut self, cx: &Context, voter: &Voter, decided: Instance) {
        self.hand_out.start(cx.me);
        let base = voter.trimmed();
        self.learner = Learner::new(base.next);
        self.learnt = base.clone();
        self.begin_delivering(base);
        for vote in voter.record().from(base.next) {
            let Some(vote) = vote.part(base.next, decided) else {
                break;
            };
            self.learner.on_chosen(&vote);
        }
    }

    /// The next decided value. A process that keeps nothing learns only while the application has room, and has got
    /// what was kept before.
    pub fn next_decided(&mut self, remembers: bool) -> Option<Vote> {
        let is_told = self.delivered.next >= self.next();
        let may_learn = remembers || self.hand_out.has_room() && is_told;
        if may_learn { self.learner.take() } else { None }
    }

    /// Counts the next decided value.
    pub fn count(&mut self, vote: &Vote) -> Counted {
        let counts = self.learnt.advance(vote);
        let size = (vote.end(), vote.value.bytes());
        self.backlog.add(size, self.learnt.accounts.bound());
        match &vote.value {
            Value::Packet { id, frame } if counts => Counted::Value(*id, frame.len()),
            Value::Packet { .. } => Counted::Never,
            Value::Members(..) | Value::Skip(_) => Counted::Other,
        }
    }

    /// The bytes of learnt values that partitions with accounts need.
    pub fn needed_bytes(&self) -> u64 {
        self.backlog.from(self.learnt.accounts.needed())
    }

    /// The first instance that may not be forgotten: instances that only pins need are kept as far as there is room,
    /// the newest first.
    pub fn needed(&self, hold_bytes: u64) -> Option<Instance> {
        let accounts = &self.learnt.accounts;
        let bound = accounts.bound();
        if self.backlog.from(bound) < hold_bytes {
            return bound;
        }
        let last = self.backlog.last(hold_bytes);
        bound.map(|bound| accounts.needed().unwrap_or(last).min(last).max(bound))
    }

    /// The first instance of which the application was told nothing.
    pub const fn told_to(&self) -> Instance {
        self.delivered.next
    }

    /// Hands learnt values, which the acceptor keeps, to the application, as far as that has room.
    pub fn hand_out_more(
        &mut self,
        cx: &Context,
        (voter, reading): (&Voter, &mut Reading),
        own: &mut InFlight,
    ) {
        let next = self.next();
        while self.delivered.next < next && self.hand_out.has_room() {
            if self.delivered.next < voter.kept() {
                // The application was so slow that its next value is forgotten.
                let base = match mutants::on(Mutant::U57) {
                    true => &self.learnt,
                    false => voter.trimmed(),
                };
                self.miss(cx, base.clone(), own);
                continue;
            }
            let at = self.delivered.next;
            let vote = match at < voter.resident() {
                true => reading.first(at..voter.resident().min(next)),
                false => voter.record().at(at),
            };
            let vote = vote.and_then(|vote| self.next_part(&vote, next));
            let Some(vote) = vote else {
                return;
            };
            self.hand_out_one(cx, &vote, own);
        }
        if self.delivered.next >= voter.resident() {
            reading.forget(Reader::Application);
        }
    }

    /// Hands the value that was learnt last, and is kept nowhere, to the application.
    pub fn hand_out_at_once(&mut self, cx: &Context, vote: &Vote, own: &mut InFlight) {
        while let Some(part) = self.next_part(vote, Instance::MAX) {
            self.hand_out_one(cx, &part, own);
        }
    }

    fn hand_out_one(&mut self, cx: &Context, vote: &Vote, own: &mut InFlight) {
        let counts = self.delivered.advance(vote);
        match &vote.value {
            Value::Packet { id, frame } if counts => {
                if id.process == cx.me {
                    own.on_told(id.counter);
                }
                if super::value::is_account(frame) {
                    if cx.settings.learner.feeds_merge {
                        self.notice(vote.first, frame);
                    }
                    return self.on_delivered();
                }
                self.hand_out.packet(vote.first, *id, frame.clone());
            }
            Value::Members(_, members) if counts => {
                let (inside, own) = (members.contains(&cx.me), own.told());
                self.hand_out
                    .members(vote.first, members.clone(), inside, own);
            }
            Value::Packet { .. } | Value::Members(..) | Value::Skip(_) => {}
        }
        self.on_delivered();
    }

    /// A command on the accounts: a notice is for the merge that this ring feeds, and so is a hold, whose partition may
    /// subscribe by it.
    fn notice(&mut self, instance: Instance, value: &Bytes) {
        let command = super::value::account(value).map(|(command, _)| command);
        if let Some(notice) = command.and_then(Command::told) {
            self.hand_out.notice(instance, notice);
        }
    }

    /// The next values for the application are forgotten: it goes on at a snapshot.
    fn miss(&mut self, cx: &Context, base: Snapshot, own: &mut InFlight) {
        let from = self.delivered.next;
        if let Some(counted) = base.counted(cx.me) {
            own.on_told(counted);
        }
        let inside = base.table.members().any(|member| member == cx.me);
        self.hand_out.missed(from, &base, inside, own.told());
        self.delivered = base;
        self.on_delivered();
    }

    /// Others have forgotten everything before this snapshot, which is not learnt here. Own messages before it are
    /// known to be delivered.
    pub fn begin_at(&mut self, cx: &Context, base: &Snapshot, own: &mut InFlight) {
        self.learner.skip_to(base.next);
        self.learnt = base.clone();
        if mutants::on(Mutant::U10) {
            self.learnt.table = Proposers::default();
        }
        if let Some(counted) = base.counted(cx.me) {
            own.on_counted(counted);
        }
        if self.delivered.next < base.next {
            self.miss(cx, base.clone(), own);
        }
    }

    /// The mutant: what is missing is left out.
    pub fn leave_out(&mut self, upto: Instance) {
        self.learner.skip_to(upto);
        (self.learnt.next, self.delivered.next) = (upto, upto);
    }

    /// The next delivery.
    pub fn next_delivery(&mut self, cx: &Context) -> Option<Delivery> {
        let early = mutants::on(Mutant::U92).then(|| self.pass(cx)).flatten();
        let delivery = early.or_else(|| self.hand_out.next());
        delivery.or_else(|| self.pass(cx))
    }

    /// Tells up to which instance everything was delivered, if that was not told.
    fn pass(&mut self, cx: &Context) -> Option<Delivery> {
        let next = self.delivered.next;
        let is_news = cx.settings.learner.feeds_merge && next > self.passed;
        is_news.then(|| {
            self.passed = next;
            Delivery::Passed { next }
        })
    }

    /// The application begins behind its state. `is_kept`: the acceptor has the values before, and they are learnt from
    /// it.
    pub(super) fn begin_behind(&mut self, base: Snapshot, is_kept: bool) {
        if !is_kept {
            self.learner.skip_to(base.next);
            self.learnt = base.clone();
        }
        self.delivered = base;
        self.on_delivered();
    }

    /// Its invariants.
    pub fn check(&self) {
        assert_eq!(
            self.learnt.next,
            self.learner.next(),
            "what follows is known of all that is learnt"
        );
        assert!(
            self.passed <= self.delivered.next,
            "no more is passed than delivered"
        );
        assert!(
            self.bases.next() > self.delivered.next,
            "a base is told at its place"
        );
        self.learner.check();
        self.learnt.table.check();
        self.learnt.accounts.check();
        self.hand_out.check();
    }
}

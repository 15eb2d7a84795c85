//! The acceptor of a process, with its log: what it promises, votes for and forgets, and that nothing of it is told before it is
//! durable.
//!
//! While the log is away the acceptor promises nothing and votes for nothing, and everybody is told so. What it knows it keeps
//! in memory, and goes on learning. When the log is open again it is brought to what memory has, which is never less than what was
//! told to be durable ([`refill`]); then the acceptor is one again.

mod log;
mod refill;

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::context::Context;
use super::disk::{Disk, Effect};
use super::found::Found;
use super::snapshot::Snapshot;
use crate::{Acceptor, AcceptorId, Config, Instance, Round, Slot, Verdict, Vote, Votes};
use rota_core::contract::{Output, Process, Time};
use rota_core::mutants::{self, Mutant};

pub use log::Reopened;
pub use refill::LogRepair;

/// A hint at what is decided is written once for so many instances.
const HINT_EVERY: u64 = 32;

/// So many records are forgotten at once: others wait meanwhile.
const MOST_AT_ONCE: usize = 4096;

/// What an acceptor lacked when it promised.
#[derive(Clone, Copy, Debug)]
pub struct Lack {
    /// To whom, and for which round.
    pub coordinator: Process,
    pub round: Round,
    /// All before this is decided.
    pub upto: Instance,
}

/// See the module's page.
#[derive(Debug)]
pub struct Voter {
    /// Its node is one of those that vote.
    is_acceptor: bool,
    acceptor: Acceptor,
    /// Its log has all that it is, and its name.
    named: bool,
    /// It has not voted for all that was proposed in this round, and so votes for nothing more in it.
    early: bool,
    /// What it lacked when it promised, until the round begins: the coordinator may wait for it.
    lack: Option<Lack>,
    /// What follows from everything that it has forgotten.
    trimmed: Snapshot,
    /// The hint that was written last.
    hinted: Instance,
    disk: Disk,
    /// For so many times as long as at first the disk is waited for.
    hang_patience: u64,
    /// When the log was given up last.
    gave_up: Time,
    /// What may be told now.
    ready: Vec<Effect>,
}

impl Voter {
    /// An acceptor without a name or a log.
    pub fn new(cx: &Context) -> Self {
        let node = cx.me.node;
        Self {
            is_acceptor: cx.settings.acceptors.contains(&node),
            acceptor: Acceptor::new(AcceptorId { node, store: 0 }),
            named: false,
            early: false,
            lack: None,
            trimmed: Snapshot::default(),
            hinted: 0,
            disk: Disk::new(cx.settings.forgets, cx.settings.disk_bytes),
            hang_patience: 1,
            gave_up: Time(0),
            ready: Vec::new(),
        }
    }

    /// What was found in the log of a process that starts. `drawn`: the name of a store that has none.
    pub fn start(&mut self, cx: &Context, found: &mut Found, drawn: u64) {
        self.on_configuration(cx, None);
        self.disk.failed = found.damaged;
        self.disk.damaged = found.damaged;
        let drawn = if mutants::on(Mutant::U12) { 1 } else { drawn };
        let store = found.store.unwrap_or(drawn);
        let node = cx.me.node;
        self.acceptor = found.acceptor(AcceptorId { node, store });
        self.named = found.store.is_some() || cx.settings.forgets;
        self.trimmed = core::mem::take(&mut found.base);
        self.hinted = found.decided;
    }

    /// Whether its node is one of those that vote: the newest configuration says so, and before the first one the settings,
    /// which may differ from node to node.
    pub fn on_configuration(&mut self, cx: &Context, config: Option<&Config>) {
        let node = cx.me.node;
        let of_settings = cx.settings.acceptors.contains(&node);
        self.is_acceptor = match config {
            Some(config) => {
                let mut acceptors = config.acceptors.iter();
                acceptors.any(|who| who.node == node) || of_settings && mutants::on(Mutant::U75)
            }
            None => of_settings,
        };
        (self.lack, self.early) = (None, false);
    }

    /// Whether its node is one of those that vote.
    pub const fn is_acceptor(&self) -> bool {
        self.is_acceptor
    }

    /// Whether it votes in the newest configuration, or may in the next.
    pub const fn votes(&self) -> bool {
        self.is_acceptor && self.named && !self.disk.failed
    }

    /// Whether it votes for nothing in this round any more.
    pub const fn is_mute(&self) -> bool {
        !self.votes() || self.early
    }

    /// Whether it waits for a name: it would be taken into the ring without a vote.
    pub const fn waits_for_name(&self) -> bool {
        self.is_acceptor && !self.named && !self.disk.failed
    }

    /// Whether what is learnt is kept, and can be read again: in memory also while the log is away.
    pub fn remembers(&self) -> bool {
        self.is_acceptor && !(self.disk.failed && mutants::on(Mutant::U60))
    }

    /// As whom it votes.
    pub fn id(&self) -> AcceptorId {
        self.acceptor.id()
    }

    /// Everything before this is forgotten.
    pub fn kept(&self) -> Instance {
        self.acceptor.kept()
    }

    /// Its votes, and what it has learnt.
    pub fn record(&self) -> &Votes {
        self.acceptor.votes()
    }

    /// What follows from everything that it has forgotten.
    pub const fn trimmed(&self) -> &Snapshot {
        &self.trimmed
    }

    /// How far its votes in the newest round go, as far as they are durable.
    pub fn voted(&self) -> (Round, Instance) {
        self.acceptor.voted()
    }

    /// Up to where what was learnt is durable.
    pub const fn learnt(&self) -> Instance {
        self.disk.learnt()
    }

    /// What it lacked when it promised.
    pub const fn lack(&self) -> Option<&Lack> {
        self.lack.as_ref()
    }

    /// A proposal of the round that starts so.
    pub fn accept(&mut self, (start, kept): (Instance, Instance), vote: &Vote) {
        if self.votes() {
            // An earlier round is refused; then a word with a newer configuration is on its way.
            let verdict = self.acceptor.accept(start, kept, vote);
            self.early |= verdict == Ok(Verdict::Early) && !mutants::on(Mutant::U50);
        }
    }

    /// What was decided is kept.
    pub fn learn(&mut self, vote: Vote) {
        self.acceptor.learn(vote);
    }

    /// Phase 1B: it promises, having learnt everything before `next`. Where it lacks something before `from` it promises once
    /// more when it has learnt that.
    pub fn promise(&mut self, to: Process, (round, from): (Round, Instance), next: Instance) {
        if !mutants::on(Mutant::N18) {
            self.hold(next);
        }
        if let Ok(promise) = self.acceptor.prepare(round, from, next) {
            self.when_durable(Effect::Promise(to.node, promise), Mutant::U01);
        }
    }

    /// It lacks something that the coordinator of a round knows; or nothing any more.
    pub const fn lacks(&mut self, lack: Option<Lack>) {
        self.lack = lack;
    }

    /// When it has learnt what it lacked it promises once more, unless the round has begun with others: then it would tell
    /// all that it has voted for since. `round`: the newest one that has begun.
    pub fn promise_again(&mut self, next: Instance, round: Round) {
        if !mutants::on(Mutant::U41) {
            self.lack.take_if(|lack| round >= lack.round);
        }
        let Some(lack) = self.lack.take_if(|lack| next >= lack.upto) else {
            return;
        };
        if self.votes() && !mutants::on(Mutant::U36) {
            self.promise(lack.coordinator, (lack.round, lack.upto), next);
        }
    }

    /// The next start of this process need not ask others for what is below.
    pub fn hint(&mut self, next: Instance) {
        let is_due = next >= self.hinted + HINT_EVERY && !mutants::on(Mutant::U45);
        if is_due && self.votes() {
            let ahead = if mutants::on(Mutant::U14) {
                HINT_EVERY
            } else {
                0
            };
            self.hold(next + ahead);
        }
    }

    /// What is before this, and kept here, is what was decided. That is durable when whatever is said next is.
    fn hold(&mut self, upto: Instance) {
        if upto > self.hinted {
            self.hinted = upto;
            self.disk.put_decided(upto);
        }
    }

    /// It forgets what is far behind `next`, up to where everything was learnt here, but nothing that a majority has not
    /// learnt before `learnt`, and nothing that somebody needs: what is from `needed` on.
    pub fn trim(
        &mut self,
        cx: &Context,
        (next, needed): (Instance, Option<Instance>),
        learnt: impl FnOnce() -> Instance,
    ) {
        debug_assert_eq!(
            self.acceptor.kept(),
            self.trimmed.next,
            "who has forgotten has a base"
        );
        let keep = match mutants::on(Mutant::U56) {
            true => cx.settings.kept_instances / 16,
            false => cx.settings.kept_instances,
        };
        // Not one by one.
        let slack = (keep / 16).max(1);
        let needed = needed.filter(|_| !mutants::on(Mutant::U119));
        let is_needed = needed.is_some_and(|needed| needed <= self.trimmed.next);
        if next >= self.trimmed.next + keep + slack && !is_needed {
            // What others have to learn yet is not forgotten: if this one dies, nobody else may be able to tell. Nor may they when
            // they are restarted, but for what their hints say.
            let hinted = match mutants::on(Mutant::U80) {
                true => 0,
                false => HINT_EVERY,
            };
            let below = learnt().saturating_sub(hinted).min(next - keep);
            let below = below.min(needed.unwrap_or(below));
            if below > self.trimmed.next {
                self.trim_to(cx, below);
            }
        }
    }

    /// Everything below is forgotten here.
    fn trim_to(&mut self, cx: &Context, below: Instance) {
        let mut base = self.trimmed.clone();
        // What is more follows soon: others wait for this one.
        let votes = self.acceptor.votes().from(base.next);
        let mut votes = votes.take_while(|vote| vote.first < below);
        let last = votes.nth(MOST_AT_ONCE);
        drop(votes);
        let below = below.min(last.map_or(below, |vote| vote.first));
        let votes = self.acceptor.votes().from(base.next);
        for vote in votes.map_while(|vote| vote.part(0, below)) {
            if !mutants::on(Mutant::U11) {
                base.advance(&vote);
            }
        }
        base.next = below;
        self.rest_on(cx, base, None);
    }

    /// Everything before a base is forgotten. `lacks`: of the values that go on behind it none is among the votes; they become
    /// votes of this round at least.
    pub fn rest_on(&mut self, cx: &Context, mut base: Snapshot, lacks: Option<Round>) {
        let most = 4 * cx.settings.kept_instances;
        base.forget_open(base.next.saturating_sub(most));
        self.acceptor.trim(base.next);
        let lacks = lacks.filter(|_| !mutants::on(Mutant::U62));
        let values = lacks.map_or_else(Vec::new, |number| base.values(self.label(number)));
        self.disk.put_base(&base, values);
        self.trimmed = base;
    }

    /// A round in which nothing else was or will be voted for in what is decided: no vote for the same is of a higher one.
    fn label(&self, number: Round) -> Round {
        self.acceptor.promised().max(number)
    }

    /// This configuration is the newest.
    pub fn put_config(&mut self, config: &Config) {
        if self.is_acceptor {
            self.disk.put_config(config);
        }
    }

    /// The first configuration: were it told before it is durable, this process could found the cluster twice.
    pub fn found(&mut self, config: Arc<Config>) {
        self.disk.put_config(&config);
        self.when_durable(Effect::Found(config), Mutant::U52);
    }

    /// This configuration is complete.
    pub fn put_complete(&mut self, number: Round) {
        if self.is_acceptor && !mutants::on(Mutant::U44) {
            self.disk.put_complete(number);
        }
    }

    /// An answer of the register, and what it has to remember of that.
    pub fn answer(&mut self, slot: Option<(Round, &Slot<Arc<Config>>)>, answer: Effect) {
        if let Some((number, slot)) = slot {
            self.disk.put_slot(number, slot);
        }
        match mutants::on(Mutant::U90) {
            true => self.disk.then(answer),
            // The next configuration must not wait for votes at a disk that is behind.
            false if !mutants::on(Mutant::U02) => self.disk.then_first(answer),
            false => self.ready.push(answer),
        }
    }

    /// Says something when all before it is durable; the mutant, at once.
    fn when_durable(&mut self, effect: Effect, early: Mutant) {
        if mutants::on(early) {
            self.ready.push(effect);
        } else {
            self.disk.then(effect);
        }
    }

    /// What has to be written now. `next`: all before is learnt.
    pub fn request(&mut self, now: Time, next: Instance) -> Option<Output> {
        let places = (next, self.trimmed.floor());
        self.disk
            .request(now, &mut self.acceptor, places, &mut self.ready)
    }

    /// What may be told now.
    pub fn take_ready(&mut self) -> Vec<Effect> {
        core::mem::take(&mut self.ready)
    }

    /// Whether something may be told now.
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }
}

impl Voter {
    /// Its invariants.
    pub fn check(&self) {
        assert_eq!(
            self.acceptor.kept(),
            self.trimmed.next,
            "an acceptor knows what follows from what it has forgotten"
        );
        assert!(
            self.trimmed.floor() <= self.trimmed.next,
            "open messages begin before a base"
        );
        assert!(
            !self.disk.failed || !self.named,
            "a log that is away has no name"
        );
        assert!(
            self.lack.is_none() || self.is_acceptor,
            "only acceptors promise"
        );
        assert!(self.hang_patience >= 1, "a disk is waited for");
        self.acceptor.check();
        self.disk.check();
        self.trimmed.table.check();
    }
}

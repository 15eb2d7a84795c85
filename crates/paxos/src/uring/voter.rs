//! The acceptor of a process, with its log: its promises, votes and trims, none of which is told before it is durable.
//!
//! While the log is away the acceptor promises nothing and votes for nothing, and everybody is told so. It keeps its
//! state in memory, and goes on learning. When the log is open again it is brought to the state in memory, which is
//! never less than what was told to be durable ([`refill`]); then the acceptor votes again.

mod archive;
mod log;
mod memory;
mod refill;

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::context::Context;
use super::disk::{Disk, Effect};
use super::found::Found;
use super::snapshot::Snapshot;
use super::word::Word;
use crate::{Acceptor, AcceptorId, Config, Instance, Round, Slot, Verdict, Vote, Votes};
use archive::Archive;
use memory::{Forgetting, HINT_EVERY};
use rota_core::contract::{NodeId, Output, Process, Time};
use rota_core::mutants::{self, Mutant};

pub use log::Reopened;
pub use refill::LogRepair;

/// The instances that an acceptor lacked when it promised.
#[derive(Clone, Copy, Debug)]
pub struct Lack {
    /// The coordinator and the round of the promise.
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
    /// Everything that was learnt before this instance is kept here, or forgotten with a snapshot.
    kept_to: Instance,
    /// Its log has its whole state, and its name.
    named: bool,
    /// It has not voted for all that was proposed in this round, and so votes for nothing more in it.
    early: bool,
    /// The instances that it lacked when it promised, until the round begins: the coordinator may wait for it.
    lack: Option<Lack>,
    /// The snapshot of everything that it has forgotten.
    trimmed: Snapshot,
    /// The votes that only the log has.
    archive: Archive,
    /// The snapshot that is next, while values of it are read back.
    forgetting: Option<Forgetting>,
    /// The hint that was written last.
    hinted: Instance,
    disk: Disk,
    /// The time for which the disk is waited for, as a multiple of the first.
    hang_patience: u64,
    /// The time at which the log was last given up.
    gave_up: Time,
    /// The effects that may follow now.
    ready: Vec<Effect>,
}

impl Voter {
    /// An acceptor without a name or a log.
    pub fn new(cx: &Context) -> Self {
        let node = cx.me.node;
        Self {
            is_acceptor: cx.settings.acceptors.contains(&node),
            acceptor: Acceptor::new(AcceptorId { node, store: 0 }),
            kept_to: 1,
            named: false,
            early: false,
            lack: None,
            trimmed: Snapshot::default(),
            archive: Archive::default(),
            forgetting: None,
            hinted: 0,
            disk: Disk::new(
                cx.settings.acceptor.forgets,
                cx.settings.acceptor.disk_bytes,
            ),
            hang_patience: 1,
            gave_up: Time(0),
            ready: Vec::new(),
        }
    }

    /// Takes the state that was found in the log of a process that starts. `drawn`: the name of a store that has none.
    pub fn start(&mut self, cx: &Context, found: &mut Found, drawn: u64) {
        self.on_settings(cx);
        self.disk.on_open(found.damaged);
        let drawn = if mutants::on(Mutant::U12) { 1 } else { drawn };
        let store = found.store.unwrap_or(drawn);
        let node = cx.me.node;
        self.acceptor = found.acceptor(AcceptorId { node, store });
        self.named = found.store.is_some() || cx.settings.acceptor.forgets;
        self.trimmed = core::mem::take(&mut found.base);
        self.kept_to = self.trimmed.next;
        self.hinted = found.decided;
    }

    /// Whether its node is one of those that vote before there is a configuration: the settings say so, which may differ
    /// from node to node.
    fn on_settings(&mut self, cx: &Context) {
        self.is_acceptor = cx.settings.acceptors.contains(&cx.me.node);
        (self.lack, self.early) = (None, false);
    }

    /// Another configuration is the newest. `has_seat`: its node is one of those that vote.
    pub fn on_configuration(&mut self, cx: &Context, has_seat: bool) {
        let of_settings = cx.settings.acceptors.contains(&cx.me.node);
        self.is_acceptor = has_seat || of_settings && mutants::on(Mutant::U75);
        (self.lack, self.early) = (None, false);
    }

    /// Its node is one of those that vote from here on. `learnt`: the snapshot of everything that was learnt, some of
    /// which may be kept nowhere here: the acceptor begins behind it then.
    pub fn take_seat(
        &mut self,
        cx: &Context,
        (learnt, complete): (&Snapshot, Round),
        lacks: &Reopened<'_>,
    ) {
        self.is_acceptor = true;
        let number = lacks.config.map_or(0, |config| config.number);
        if learnt.next > self.kept_to && !mutants::on(Mutant::U157) {
            self.rest_on(cx, learnt.clone(), Some(number));
        }
        match lacks.config.filter(|_| self.named) {
            Some(config) => {
                self.disk.put_config(config);
                self.disk.put_complete(complete);
            }
            // A log that is away gets everything when it is open again.
            None if !self.disk.has_failed() => self.name(cx, lacks),
            None => {}
        }
    }

    /// Says something to a node when everything before `next` is durable, which was learnt.
    pub fn offer(&mut self, to: NodeId, word: Word, next: Instance) {
        self.hold(next);
        self.when_durable(Effect::Say(to, word), Mutant::U160);
    }

    /// Its node is not one of those that vote any more: its log stays as it is.
    pub const fn leave_seat(&mut self) {
        (self.is_acceptor, self.lack, self.early) = (false, None, false);
    }

    /// Everything that was learnt before this instance is kept here, or forgotten with a snapshot.
    pub const fn kept_to(&self) -> Instance {
        self.kept_to
    }

    /// Whether its node is one of those that vote.
    pub const fn is_acceptor(&self) -> bool {
        self.is_acceptor
    }

    /// Whether it votes in the newest configuration, or may in the next.
    pub const fn votes(&self) -> bool {
        self.is_acceptor && self.named && !self.disk.has_failed()
    }

    /// Whether it votes for nothing in this round any more.
    pub const fn abstains(&self) -> bool {
        !self.votes() || self.early
    }

    /// Whether it waits for a name: it would be taken into the ring without a vote.
    pub const fn waits_for_name(&self) -> bool {
        self.is_acceptor && !self.named && !self.disk.has_failed()
    }

    /// Whether learnt values are kept, and can be read again: also while the log is away, as far as memory has them.
    pub fn remembers(&self) -> bool {
        self.is_acceptor && !(self.disk.has_failed() && mutants::on(Mutant::U60))
    }

    /// The name under which it votes.
    pub fn id(&self) -> AcceptorId {
        self.acceptor.id()
    }

    /// The first instance that is not forgotten.
    pub fn kept(&self) -> Instance {
        self.acceptor.kept()
    }

    /// Its votes, and what it has learnt, as far as they are in memory: from [`Self::resident`] on.
    pub fn record(&self) -> &Votes {
        self.acceptor.votes()
    }

    /// The snapshot of everything that it has forgotten.
    pub const fn trimmed(&self) -> &Snapshot {
        &self.trimmed
    }

    /// The last round with a durable vote, and the first instance of that round without one.
    pub fn voted(&self) -> (Round, Instance) {
        self.acceptor.voted()
    }

    /// The instance before which everything learnt is durable.
    pub const fn learnt(&self) -> Instance {
        self.disk.learnt()
    }

    /// The instances that it lacked when it promised.
    pub const fn lack(&self) -> Option<&Lack> {
        self.lack.as_ref()
    }

    /// Votes for a proposal of the round that starts at `start`.
    pub fn accept(&mut self, (start, kept): (Instance, Instance), vote: &Vote) {
        if self.votes() {
            // An earlier round is refused; then a word with a newer configuration is on its way.
            let verdict = self.acceptor.accept(start, kept, vote);
            self.early |= verdict == Ok(Verdict::Early) && !mutants::on(Mutant::U50);
        }
    }

    /// Keeps a decided value.
    pub fn learn(&mut self, vote: Vote) {
        self.kept_to = self.kept_to.max(vote.end());
        self.acceptor.learn(vote);
    }

    /// Phase 1B: it promises, having learnt everything before `next`. If it lacks instances before `from` it promises
    /// once more when it has learnt them.
    pub fn promise(&mut self, to: Process, (round, from): (Round, Instance), next: Instance) {
        if !mutants::on(Mutant::N18) {
            self.hold(next);
        }
        if let Ok(promise) = self.acceptor.prepare(round, from, next) {
            let lacks = self.archived(from);
            self.when_durable(Effect::Promise(to.node, promise, lacks), Mutant::U01);
        }
    }

    /// It lacks instances that the coordinator of a round knows; or none any more.
    pub const fn lacks(&mut self, lack: Option<Lack>) {
        self.lack = lack;
    }

    /// Promises once more when it has learnt the instances that it lacked, unless the round has begun with other
    /// promises: then it would tell all its votes since. `round`: the newest one that has begun.
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

    /// Writes a hint: the next start of this process need not ask others for the instances below. Where acceptors change
    /// (`few` is false) one that comes has not kept what was before, so it is written each time.
    pub fn hint(&mut self, next: Instance, few: bool) {
        let every = if few { HINT_EVERY } else { 1 };
        let is_due = next >= self.hinted + every && !mutants::on(Mutant::U45);
        if is_due && self.votes() {
            let ahead = if mutants::on(Mutant::U14) {
                HINT_EVERY
            } else {
                0
            };
            self.hold(next + ahead);
        }
    }

    /// The votes before this instance that are kept here are for decided values. That is durable when the next effect
    /// follows.
    fn hold(&mut self, upto: Instance) {
        if upto > self.hinted {
            self.hinted = upto;
            self.disk.put_decided(upto);
        }
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

    /// Takes an answer of the register, and the state that the register has to remember for it.
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

    /// Adds an effect that follows when everything before it is durable; with the mutant, at once.
    fn when_durable(&mut self, effect: Effect, early: Mutant) {
        if mutants::on(early) {
            self.ready.push(effect);
        } else {
            self.disk.then(effect);
        }
    }

    /// The next request to the disk. `next`: everything before is learnt.
    pub fn request(&mut self, now: Time, next: Instance) -> Option<Output> {
        let places = (next, self.trimmed.floor());
        self.disk
            .request(now, &mut self.acceptor, places, &mut self.ready)
    }

    /// The effects that may follow now.
    pub fn take_ready(&mut self) -> Vec<Effect> {
        core::mem::take(&mut self.ready)
    }

    /// Whether effects may follow now.
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
            !self.disk.has_failed() || !self.named,
            "a log that is away has no name"
        );
        assert!(
            self.lack.is_none() || self.is_acceptor,
            "only acceptors promise"
        );
        assert!(self.hang_patience >= 1, "a disk is waited for");
        self.archive
            .check(self.acceptor.kept(), self.acceptor.resident());
        self.acceptor.check();
        self.disk.check();
        self.trimmed.table.check();
        self.trimmed.accounts.check();
    }
}

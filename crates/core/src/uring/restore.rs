//! What becomes of an acceptor when its process starts, and when its log fails and is opened again.
//!
//! While the log is away the acceptor promises nothing and votes for nothing, and everybody is told so. What it knows it keeps
//! in memory, and goes on learning. When the log is open again it is brought to what memory has, which is never less than what was
//! told to be durable; then the acceptor is one again.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;

use super::engine::URing;
use super::found::Found;
use super::refill::Refill;
use super::word::Word;
use crate::contract::{LogId, Output, PersistId, StartState, Time};
use crate::mutants::{self, Mutant};
use crate::paxos::{AcceptorId, Instance, Learner, Record, Round, Vote};
use crate::random::Random;

/// A log that has hung or failed again and again is waited for up to so many times as long.
const MOST_PATIENCE: u64 = 16;

/// After so many times the patience without a failure it is waited for as at first.
const FORGIVEN: u64 = 200;

impl URing {
    pub(super) fn on_start(&mut self, start: StartState) {
        self.started = true;
        self.me = start.me;
        self.own.start(start.me);
        self.hand_out.start(start.me);
        self.random = Random::of(&start);
        let mut found = Found::read(start.records, start.lost_some);
        (self.disk.failed, self.disk.damaged) = (found.damaged, found.damaged);
        let id = self.name(found.store);
        self.acceptor = found.acceptor(id);
        self.named = found.store.is_some() || self.settings.forgets;
        if let Some((number, slot)) = found.slot.filter(|_| !mutants::on(Mutant::U17)) {
            self.register.restore(number, slot);
        }
        self.complete = found.complete;
        self.base = found.base;
        self.learner = Learner::new(self.base.next);
        self.counted = self.base.clone();
        self.begin_telling();
        self.learn_own(found.decided);
        self.election.start(self.now);
        if let Some(config) = found.config {
            self.register.forget(config.number);
            self.peers.found(config.founded);
            self.config = Some(config);
            self.on_outside();
        }
        self.begin_behind_state();
        if !self.named && self.is_acceptor() && !self.disk.damaged {
            // Where a first part of this is written, it is a store without a name, which is as good as none.
            self.write_all(BTreeMap::new());
        }
        self.try_to_found();
    }

    /// Under which name this acceptor votes: its store's, or a new one.
    fn name(&mut self, store: Option<u64>) -> AcceptorId {
        let drawn = self.random.below(u64::MAX - 1) + 1;
        let drawn = if mutants::on(Mutant::U12) { 1 } else { drawn };
        AcceptorId {
            node: self.me.node,
            store: store.unwrap_or(drawn),
        }
    }

    /// What this process knew to be decided when it ended.
    fn learn_own(&mut self, decided: Instance) {
        self.told_decided = decided;
        for vote in self.acceptor.votes().from(self.base.next) {
            let Some(vote) = vote.part(self.base.next, decided) else {
                break;
            };
            self.learner.on_chosen(&vote);
        }
    }

    pub(super) fn on_persisted(&mut self, id: PersistId) {
        let patience = self.settings.patience.disk;
        let at = (self.now, patience);
        let done = self.disk.on_persisted(id, &mut self.acceptor, at);
        self.ready.extend(done);
    }

    /// Nothing is known of what was requested: this acceptor votes for nothing before its log is open again.
    pub(super) fn give_up_log(&mut self) {
        if self.disk.failed {
            return;
        }
        self.counters.uring_logs_given_up += 1;
        self.disk.on_failed();
        // What waited for it is not said.
        (self.lack, self.named, self.founding) = (None, false, false);
        let disk = self.settings.patience.disk;
        let is_rare = self.now.since(self.gave_up) > FORGIVEN * disk;
        self.hang_patience = match is_rare {
            true => 2,
            false => (2 * self.hang_patience).min(MOST_PATIENCE),
        };
        self.gave_up = self.now;
        self.out.push_back(Output::Reopen);
        let here = Word::Here(self.here());
        self.peers.say_to_all(&here);
        self.look_again();
    }

    /// When the disk has taken too long.
    pub(super) fn hangs_at(&self) -> Option<Time> {
        let patience = self.settings.patience;
        // Where the ring waits for it there is no more patience than at first: where values are multicast it does so for the
        // first vote.
        let is_waited_for = self.is_full() || self.settings.multicast.is_some();
        let times = match is_waited_for && !mutants::on(Mutant::U73) {
            true => 1,
            false => self.hang_patience,
        };
        let most = patience.disk * times;
        let at = self.disk.pace.hangs_at(most, patience.heartbeat)?;
        (!mutants::on(Mutant::U48)).then_some(at)
    }

    pub(super) fn on_late_disk(&mut self) {
        if self.disk.pace.is_late(self.now) {
            self.give_up_log();
        }
    }

    /// The log is open again, or an empty one is. It gets what it lacks; then this acceptor votes again. It is the same one,
    /// whatever the log has lost: the process has not ended, and remembers all that it was.
    pub(super) fn on_reopened(&mut self, records: Vec<(LogId, u64, Bytes)>, lost_some: bool) {
        if !self.disk.failed || self.disk.damaged {
            return;
        }
        let found = Found::read(records, lost_some);
        let own = self.acceptor.id().store;
        // Nobody knows whose another one's is.
        let is_others = found.store.is_some_and(|store| store != own);
        self.disk.damaged = found.damaged || is_others;
        self.disk.failed = self.disk.damaged;
        if self.disk.damaged {
            return;
        }
        let votes = found.votes.into_iter().map(|vote| (vote.first, vote));
        self.write_all(votes.collect());
    }

    /// Everything that this acceptor is and the log lacks is written; then it has its name.
    fn write_all(&mut self, has: BTreeMap<Instance, Vote>) {
        self.named = false;
        if self.settings.forgets {
            self.named = true;
            return;
        }
        if let Some(config) = &self.config {
            self.disk.put_config(config);
            let next = config.number + 1;
            if let Some(slot) = self.register.slot(next) {
                self.disk.put_slot(next, slot);
            }
        }
        let (promised, floor) = (self.acceptor.promised(), self.acceptor.floor());
        self.disk.put_first(Record::Promised(promised));
        self.disk.put_first(Record::Floor(floor));
        self.disk.refill = Some(Refill::new(has));
    }

    /// A round in which nothing else was or will be voted for in what is decided: no vote for the same is of a higher one.
    pub(super) fn label(&self) -> Round {
        self.acceptor.promised().max(self.number())
    }
}

//! What is decided, in order, and which of it counts.

use alloc::vec::Vec;

use super::base::Base;
use super::engine::URing;
use crate::contract::Delivery;
use crate::mutants::{self, Mutant};
use crate::paxos::{AcceptorId, Instance, Proposers, Value, Vote};

/// A hint at what is decided is written once for so many instances.
const HINT_EVERY: u64 = 32;

impl URing {
    /// Own votes that have become durable, and what follows from all of them.
    pub(super) fn vote_and_learn(&mut self) {
        let (round, next) = self.acceptor.voted();
        self.learner.on_voted(round, self.acceptor.id(), next);
        while let Some(vote) = self.next_decided() {
            self.counters.uring_values_decided += 1;
            self.count(&vote);
            if self.remembers() {
                self.acceptor.learn(vote);
                continue;
            }
            while let Some(part) = self.next_part(&vote, Instance::MAX) {
                self.hand_out_one(&part);
            }
        }
        self.hand_out_more();
        self.promise_again();
        self.on_reached();
        self.hint();
        self.trim();
    }

    fn on_reached(&mut self) {
        let number = self.number();
        if self.learner.round() != number {
            return;
        }
        let reached = self.learner.reached();
        if let Some(leading) = &mut self.leading {
            leading.on_reached(reached, self.now);
            if leading.knows_what_counts() {
                leading.machine.on_reached(reached);
            }
            if leading.machine.is_complete(reached) {
                self.on_complete(number);
            }
        }
        let voted = |at: usize| self.learner.voted()[at];
        let low = self.reached_by_all(voted);
        // Some do not vote in a round, but learn.
        let has = || self.reached_by_all(|at| voted(at).max(self.learnt[at]));
        let has = self.settings.multicast.is_some().then(has);
        if let Some(stream) = &mut self.stream {
            stream.forget(low, reached);
            if let Some(has) = has {
                stream.pass(has);
            }
        }
    }

    /// All acceptors in the ring have reached this instance, each the one of its place in the configuration.
    fn reached_by_all(&self, reached: impl Fn(usize) -> Instance) -> Instance {
        let Some(config) = &self.config else {
            return 0;
        };
        let in_ring = |node| config.ring.iter().any(|process| process.node == node);
        let is_mute = |at: usize| self.mute.get(at).is_some_and(|mute| *mute);
        let acceptors = config.acceptors.iter().enumerate();
        let voting = acceptors
            .filter(|(at, who)| in_ring(who.node) && !is_mute(*at) && self.is_voting(**who));
        voting.map(|(at, _)| reached(at)).min().unwrap_or(0)
    }

    /// Whether an acceptor is one, as far as is known: its log may have failed.
    fn is_voting(&self, who: AcceptorId) -> bool {
        if who.node == self.me.node {
            return self.votes() && self.acceptor.id() == who;
        }
        let here = self.peers.at(who.node).and_then(|peer| peer.here);
        here.is_none_or(|here| here.acceptor == Some(who))
    }

    /// Whether what is learnt is kept, and can be read again: in memory also while the log is away.
    fn remembers(&self) -> bool {
        self.is_acceptor() && !(self.disk.failed && mutants::on(Mutant::U60))
    }

    /// Who keeps nothing learns only what the application has room for.
    fn next_decided(&mut self) -> Option<Vote> {
        let may_learn = self.remembers() || self.hand_out.has_room();
        if may_learn { self.learner.take() } else { None }
    }

    /// What follows from what was decided next, but for the application.
    fn count(&mut self, vote: &Vote) {
        let counts = self.counted.advance(vote);
        let Value::Packet { id, frame } = &vote.value else {
            return;
        };
        if !counts {
            self.counters.uring_values_uncounted += 1;
            return;
        }
        if let Some(stream) = &mut self.stream {
            stream.counted(*id);
        }
        self.grow(*id, frame.len());
        let of_before = mutants::on(Mutant::U22) && id.process.node == self.me.node;
        if id.process == self.me || of_before {
            self.own.on_counted(id.counter);
        }
    }

    /// As far as the application has room, it gets what was learnt.
    fn hand_out_more(&mut self) {
        let next = self.learner.next();
        while self.told.next < next && self.hand_out.has_room() {
            if self.told.next < self.acceptor.kept() {
                // It was so slow that this is forgotten.
                let base = match mutants::on(Mutant::U57) {
                    true => &self.counted,
                    false => &self.base,
                };
                self.miss(base.clone());
                continue;
            }
            let vote = self.acceptor.votes().at(self.told.next);
            let vote = vote.and_then(|vote| self.next_part(&vote, next));
            let Some(vote) = vote else {
                return;
            };
            self.hand_out_one(&vote);
        }
    }

    fn hand_out_one(&mut self, vote: &Vote) {
        let counts = self.told.advance(vote);
        match &vote.value {
            Value::Packet { id, frame } if counts => {
                if id.process == self.me {
                    self.own.on_told(id.counter);
                }
                self.hand_out.packet(vote.first, *id, frame.clone());
            }
            Value::Members(_, members) if counts => {
                let (inside, own) = (members.contains(&self.me), self.own.told());
                self.hand_out
                    .members(vote.first, members.clone(), inside, own);
            }
            Value::Packet { .. } | Value::Members(..) | Value::Skip(_) => {}
        }
        self.on_told();
    }

    /// Up to where everything was delivered, if that was not said.
    pub(super) fn pass(&mut self) -> Option<Delivery> {
        let next = self.told.next;
        let is_news = self.settings.feeds_merge && next > self.passed;
        is_news.then(|| {
            self.passed = next;
            Delivery::Passed { next }
        })
    }

    /// What comes next for the application is forgotten: it goes on at another place.
    fn miss(&mut self, base: Base) {
        let from = self.told.next;
        if let Some(counted) = base.counted(self.me) {
            self.own.on_told(counted);
        }
        let inside = base.table.members().any(|member| member == self.me);
        self.hand_out.missed(from, &base, inside, self.own.told());
        self.told = base;
        self.on_told();
    }

    /// The next start of this process need not ask others for what is below.
    fn hint(&mut self) {
        let next = self.learner.next();
        let is_due = next >= self.told_decided + HINT_EVERY && !mutants::on(Mutant::U45);
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
    pub(super) fn hold(&mut self, upto: Instance) {
        if upto > self.told_decided {
            self.told_decided = upto;
            self.disk.put_decided(upto);
        }
    }

    /// An acceptor forgets what is far behind.
    fn trim(&mut self) {
        if !self.is_acceptor() {
            return;
        }
        debug_assert_eq!(
            self.acceptor.kept(),
            self.base.next,
            "who has forgotten has a base"
        );
        let next = self.learner.next();
        self.note_learnt(match mutants::on(Mutant::U63) {
            true => next,
            false => self.disk.learnt(),
        });
        let keep = match mutants::on(Mutant::U56) {
            true => self.settings.kept_instances / 16,
            false => self.settings.kept_instances,
        };
        // Not one by one.
        let slack = (keep / 16).max(1);
        if next >= self.base.next + keep + slack {
            // What others have to learn yet is not forgotten: if this one dies, nobody else may be able to tell. Nor may they when
            // they are restarted, but for what their hints say.
            let hinted = match mutants::on(Mutant::U80) {
                true => 0,
                false => HINT_EVERY,
            };
            let learnt = self.learnt_by_majority().saturating_sub(hinted);
            let below = learnt.min(next - keep);
            if below > self.base.next {
                self.trim_to(below);
            }
        }
    }

    /// This acceptor votes for nothing in this round any more: others are told along the ring, and do not wait for it.
    pub(super) fn note_mute(&mut self) {
        let votes = self.votes() && !self.early;
        if votes || !self.is_acceptor() || mutants::on(Mutant::U34) {
            return;
        }
        let mute = self.own_place().and_then(|at| self.mute.get_mut(at));
        if let Some(mute) = mute {
            *mute = true;
        }
    }

    /// The index of this acceptor in the configuration.
    fn own_place(&self) -> Option<usize> {
        let id = self.acceptor.id();
        self.config.as_ref().and_then(|config| config.place(id))
    }

    /// What this acceptor has learnt, as far as it is durable, for the others.
    fn note_learnt(&mut self, next: Instance) {
        let learnt = self.own_place().and_then(|at| self.learnt.get_mut(at));
        if let Some(learnt) = learnt.filter(|learnt| **learnt < next) {
            *learnt = next;
            self.election.moved = self.now;
        }
    }

    fn learnt_by_majority(&self) -> Instance {
        let Some(config) = &self.config else {
            return 0;
        };
        let learnt = |who| config.place(who).and_then(|at| self.learnt.get(at));
        config.reached_by_majority(|who| learnt(who).copied().unwrap_or(0))
    }

    /// Everything before a base is forgotten. `lacks`: of the values that go on behind it none is among the votes.
    fn rest_on(&mut self, mut base: Base, lacks: bool) {
        let most = 4 * self.settings.kept_instances;
        base.forget_open(base.next.saturating_sub(most));
        self.acceptor.trim(base.next);
        let lacks = lacks && !mutants::on(Mutant::U62);
        let values = if lacks {
            base.values(self.label())
        } else {
            Vec::new()
        };
        self.disk.put_base(&base, values);
        self.base = base;
    }

    /// Everything below is forgotten here.
    fn trim_to(&mut self, below: Instance) {
        let mut base = self.base.clone();
        let votes = self.acceptor.votes().from(base.next);
        for vote in votes.map_while(|vote| vote.part(0, below)) {
            if !mutants::on(Mutant::U11) {
                base.advance(&vote);
            }
        }
        base.next = below;
        self.rest_on(base, false);
    }

    /// Others have forgotten everything before this.
    pub(super) fn begin_at(&mut self, base: Base) {
        let next = self.learner.next();
        if base.next <= next {
            return;
        }
        self.learner.skip_to(base.next);
        self.counted = base.clone();
        if mutants::on(Mutant::U10) {
            self.counted.table = Proposers::default();
        }
        if let Some(counted) = base.counted(self.me) {
            self.own.on_counted(counted);
        }
        if let Some(stream) = &mut self.stream {
            stream.counted_to(base.next, |who| base.counted(who));
        }
        if self.told.next < base.next {
            self.miss(base.clone());
        }
        if self.is_acceptor() {
            self.rest_on(base, true);
        }
    }
}

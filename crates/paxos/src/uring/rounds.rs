//! The round of a configuration: phase 1, and then one proposal after the other.

use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

use super::codec::vote_bytes;
use super::engine::URing;
use super::lead::RoundCoordinator;
use super::learning::Counted;
use super::membership::Membership;
use super::voter::Lack;
use super::word::Word;
use crate::{Config, Instance, Progress, Promise, Round, Value, ValueId, Vote};
use rota_core::contract::{NodeId, Process};
use rota_core::mutants::{self, Mutant};

impl URing {
    /// This process coordinates from here on, if the configuration says so.
    pub(super) fn begin_to_lead(&mut self, config: &Arc<Config>) {
        self.leading = None;
        if config.coordinator != self.cx.me {
            return;
        }
        self.counters.uring_rounds_led += 1;
        let (next, complete) = (self.learning.next(), self.membership.complete());
        self.leading = Some(RoundCoordinator::new(
            config.clone(),
            next,
            complete,
            self.cx.now,
        ));
        self.say_prepare(None);
    }

    /// Phase 1A: to one acceptor, or to all whose promise is missing.
    pub(super) fn say_prepare(&mut self, to: Option<NodeId>) {
        let asks = self.leading.as_ref().and_then(RoundCoordinator::asks);
        let Some((round, from)) = asks else {
            return;
        };
        let word = Word::Prepare(round, from);
        for node in self.unpromised() {
            if to.is_none_or(|to| to == node) {
                self.say(node, word.clone());
            }
        }
    }

    /// The nodes whose promises may help a round that this process coordinates to begin.
    pub(super) fn unpromised(&self) -> Vec<NodeId> {
        let leading = self.leading.as_ref().zip(self.membership.config());
        leading.map_or_else(Vec::new, |(leading, config)| leading.unpromised(config))
    }

    /// Phase 1A at an acceptor. `from`: everything before is decided, and the coordinator knows the values.
    pub(super) fn on_prepare(&mut self, process: Process, round: Round, from: Instance) {
        let Some(config) = self.membership.config() else {
            return;
        };
        if round < config.number {
            let known = Word::Known(config.clone());
            return self.say(process.node, known);
        }
        let is_asked = round == config.number
            && config.coordinator == process
            && self.voter.votes()
            && config.asks(self.voter.id())
            && self.may_be_asked();
        if !is_asked || from == 0 {
            return;
        }
        let learner = &mut self.learning.learner;
        self.voter.promise(process, (round, from), learner.next());
        // The round may have begun meanwhile, with the promises of others.
        let lacks = from > learner.next() && learner.round() < round;
        self.voter.lacks(lacks.then_some(Lack {
            coordinator: process,
            round,
            upto: from,
        }));
        if lacks {
            learner.end_round(from);
            self.catch_up.seek_again();
            let informants = self.membership.informants(&self.cx, &self.links);
            self.catch_up.ask_first(process.node, &informants);
        }
    }

    pub(super) fn on_promise(&mut self, node: NodeId, part: Promise, more: bool) {
        let config = self.membership.config();
        let is_asked = config.is_some_and(|config| config.asks(part.acceptor));
        if part.acceptor.node != node || !is_asked {
            // Perhaps it was asked, for the configuration before.
            self.counters.uring_messages_stale += 1;
            return;
        }
        let Some(leading) = &mut self.leading else {
            return;
        };
        if leading.has_begun() {
            return;
        }
        let (progress, news) = leading.on_promise(part, more);
        // A round takes as long to begin as there is something to tell.
        if news > 0 {
            self.membership.election.on_told(news, self.cx.now);
        }
        self.on_progress(progress);
    }

    /// A configuration is known to be complete: fewer may have to be asked.
    pub(super) fn on_complete(&mut self, number: Round) {
        if self.membership.on_complete(number) {
            self.voter.put_complete(number);
            self.look_again();
        }
    }

    /// Something has changed for a round that has not begun.
    pub(super) fn look_again(&mut self) {
        let complete = self.membership.complete();
        if let Some(leading) = &mut self.leading {
            let progress = leading.on_complete(complete);
            self.on_progress(progress);
        }
    }

    fn on_progress(&mut self, progress: Progress) {
        let Some(leading) = &mut self.leading else {
            return;
        };
        match progress {
            Progress::Waiting => {}
            Progress::Behind if mutants::on(Mutant::U38) => {
                leading.ask_again();
                self.say_prepare(None);
            }
            // An acceptor that lacks instances knows it, and asks for them.
            Progress::Behind => {}
            Progress::Begun => self.begin_round(),
        }
    }

    /// Phase 1 has ended: proposes again the values that may have been decided, and then the members from here on.
    fn begin_round(&mut self) {
        let config = self.membership.config().cloned();
        let (Some(leading), Some(config)) = (&mut self.leading, config) else {
            return;
        };
        let Some(start) = leading.begin() else {
            return;
        };
        let votes = leading.open(&config);
        self.start_round(&config, start);
        for vote in votes {
            self.adopt(vote, true);
        }
    }

    /// The round has begun, and starts here.
    pub(super) fn start_round(&mut self, config: &Arc<Config>, start: (Instance, Instance)) {
        self.round.start = start;
        self.learning.learner.begin(config, start.0);
        self.catch_up.seek_again();
    }
}

/// Phase 2.
impl URing {
    /// Proposes values that have come, each if it is the next of its proposer. Not more than the own disk has room for.
    pub(super) fn lead(&mut self) {
        if let Some(leading) = &mut self.leading {
            leading.admit(self.learning.learnt());
        }
        let mut room = self.voter.room();
        while room > 0
            && let Some(id) = self.next_value()
        {
            // Each value is adopted before the next is chosen: it adds to what slow acceptors lack.
            if let Some(vote) = self.propose(id) {
                room = room.saturating_sub(vote_bytes(&vote));
                self.adopt(vote, false);
            }
        }
    }

    /// Proposes a skip of all instances before one. `false` if this process may propose nothing.
    pub(super) fn skip_to(&mut self, next: Instance) -> bool {
        if self.proposed().is_none() {
            return false;
        }
        let leading = self.leading.as_mut();
        if let Some(vote) = leading.and_then(|leading| leading.skip_to(next)) {
            self.adopt(vote, true);
        }
        true
    }

    /// The value that is to be proposed next: none while the own disk has no room for it.
    fn next_value(&mut self) -> Option<ValueId> {
        if self.voter.is_full() {
            return None;
        }
        let table = self.leading.as_ref()?.table()?;
        self.stream.as_mut()?.next_value(table)
    }

    /// Proposes a value if it is the next of its proposer; otherwise it is forgotten.
    fn propose(&mut self, id: ValueId) -> Option<Vote> {
        let frame = self.stream.as_mut()?.take_value(id);
        match self.leading.as_mut()?.propose(id, frame) {
            Ok(vote) => return vote,
            Err(true) => self.counters.uring_values_early += 1,
            Err(false) => self.counters.uring_values_late += 1,
        }
        None
    }

    /// The next proposal of this round, from its first instance on.
    pub(super) fn adopt_next(&mut self, first: Instance, (value, whole): (Value, bool)) {
        let round = self.number();
        let vote = Vote {
            first,
            round,
            value,
        };
        self.adopt(vote, whole);
    }

    /// Takes a proposal of this round: votes for it, learns it, and passes it on.
    fn adopt(&mut self, vote: Vote, whole: bool) {
        self.voter.accept(self.round.start, &vote);
        // An acceptor that votes keeps the proposal anyway, and others ask it: were a proposal forgotten by all, nobody
        // could learn the decided value.
        let may_forget = !self.voter.votes() || mutants::on(Mutant::U70);
        let learner = &mut self.learning.learner;
        if !may_forget || learner.kept() < super::MOST_KEPT {
            learner.on_proposal(vote.clone());
        }
        if let Some(stream) = &mut self.stream {
            stream.propose(vote, whole);
        }
    }

    /// Adopts proposals that have waited for their values.
    pub(super) fn release(&mut self) {
        while let Some(stream) = &mut self.stream
            && let Some((first, proposed)) = stream.release()
        {
            self.adopt_next(first, proposed);
        }
    }

    /// Takes a value on its way to the coordinator, if it may still count. `false` if its proposer has more under way
    /// than it may.
    pub(super) fn on_value(&mut self, id: ValueId, frame: Bytes) -> bool {
        let counted = self.learning.learnt().counted(id.process);
        let table = self.leading.as_ref().and_then(RoundCoordinator::table);
        let stream = self.stream.as_mut();
        let stream = stream.filter(|stream| stream.may_count(id, counted, table));
        stream.is_none_or(|stream| stream.carry(id, frame))
    }
}

/// Decisions.
impl URing {
    /// Counts own votes that have become durable, and learns what follows from all votes.
    pub(super) fn learn(&mut self) {
        let (round, next) = self.voter.voted();
        let learner = &mut self.learning.learner;
        learner.on_voted(round, self.voter.id(), next);
        let remembers = self.voter.remembers();
        while let Some(vote) = self.learning.next_decided(remembers) {
            self.counters.uring_values_decided += 1;
            self.count(&vote);
            match remembers {
                true => self.voter.learn(vote),
                false => self
                    .learning
                    .hand_out_at_once(&self.cx, &vote, &mut self.own),
            }
        }
        let from = (&self.voter, &mut self.outbox.reading);
        self.learning.hand_out_more(&self.cx, from, &mut self.own);
        let (next, begun) = (self.learning.next(), self.learning.learner.round());
        self.voter.promise_again(next, begun);
        self.on_reached();
        self.voter
            .hint(next, self.accounts().acceptor_list().is_none());
        self.trim(next);
    }

    /// Counts the next decided value, for everything but the application.
    fn count(&mut self, vote: &Vote) {
        let (id, bytes) = match self.learning.count(vote) {
            Counted::Value(id, bytes) => (id, bytes),
            Counted::Never => {
                self.counters.uring_values_uncounted += 1;
                return;
            }
            Counted::Other => return,
        };
        let is_own = id.process == self.cx.me;
        if let Some(stream) = &mut self.stream {
            stream.counted(self.cx.now, id, bytes);
        }
        let of_before = mutants::on(Mutant::U22) && id.process.node == self.cx.me.node;
        if is_own || of_before {
            self.own.on_counted(id.counter);
        }
    }

    /// Takes notice of the instances that a majority has voted for, and of those that all voting acceptors have.
    fn on_reached(&mut self) {
        let number = self.number();
        let learner = &self.learning.learner;
        if learner.round() != number {
            return;
        }
        let reached = learner.reached();
        let leading = self.leading.as_mut();
        let is_complete = leading.is_some_and(|leading| leading.on_reached(reached, self.cx.now));
        if is_complete && self.know_all_before() {
            self.on_complete(number);
        }
        let (Some(stream), Some(config)) = (&mut self.stream, self.membership.config()) else {
            return;
        };
        let votes = |who| Membership::is_voting(&self.links, &self.voter, who);
        let voted = self.learning.learner.voted();
        stream.forget(
            self.round.reached_by_all(config, votes, |at| voted[at]),
            reached,
        );
        // Some acceptors do not vote in a round, but learn.
        let learnt = self.round.learnt();
        let has = |at: usize| voted[at].max(learnt[at]);
        stream.pass(|| self.round.reached_by_all(config, votes, has));
    }

    /// Whether a majority of the acceptors has learnt everything before the round, where acceptors change: those before
    /// may have forgotten values that nobody else has, and are not asked any more when this configuration is complete.
    fn know_all_before(&self) -> bool {
        let is_fixed = self.accounts().acceptor_list().is_none() || mutants::on(Mutant::U162);
        let learnt = |config: &Arc<Config>| self.round.learnt_by_majority(config);
        is_fixed || self.membership.config().map_or(0, learnt) >= self.round.start.0
    }

    /// The acceptor forgets instances that are far behind.
    fn trim(&mut self, next: Instance) {
        if !self.voter.is_acceptor() {
            return;
        }
        let learnt = match mutants::on(Mutant::U63) {
            true => next,
            false => self.voter.learnt(),
        };
        if let Some(at) = self.own_place()
            && self.round.on_learnt(at, learnt) == Some(true)
        {
            self.membership.election.on_nearer(self.cx.now);
        }
        let (round, config) = (&self.round, self.membership.config());
        let learnt = || config.map_or(0, |config| round.learnt_by_majority(config));
        let needed = self.learning.needed(self.cx.settings.acceptor.hold_bytes);
        self.voter.trim(&self.cx, (next, needed), learnt);
        self.read_to_forget();
        self.voter.part_with_some(&self.cx, next);
    }

    /// The index of this acceptor in the configuration.
    pub(super) fn own_place(&self) -> Option<usize> {
        let config = self.membership.config()?;
        config.place(self.voter.id())
    }
}

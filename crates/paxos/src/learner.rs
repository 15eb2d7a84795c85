//! A learner: the decided values, in order.
//!
//! A learner takes the proposals and the votes of one round, the newest that it knows of. It has seen the decisions
//! before the start of that round, or a process that has seen them tells it the decided values
//! ([`Learner::on_chosen`]): the proposal of an earlier round need not be the value as which its instance was decided.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use super::config::{AcceptorId, Config};
use super::value::{Instance, Round, Vote};
use super::votes::Votes;
use rota_core::mutants::{self, Mutant};

/// The machine.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Learner {
    /// The first instance that was not taken.
    next: Instance,
    config: Option<Arc<Config>>,
    /// By acceptor: the first instance of this round without its vote.
    voted: Vec<Instance>,
    /// The first instance of this round without the votes of a majority.
    reached: Instance,
    /// The first instance that is not known to be decided.
    decided: Instance,
    /// Proposals of this round.
    proposed: Votes,
    /// Decided values that were not taken: those of earlier rounds, and those that other processes have told.
    chosen: Votes,
}

impl Learner {
    /// A learner that wants everything from this instance on.
    pub fn new(next: Instance) -> Self {
        Self {
            next,
            config: None,
            voted: Vec::new(),
            reached: 0,
            decided: next,
            proposed: Votes::default(),
            chosen: Votes::default(),
        }
    }

    /// The first instance that was not taken.
    pub fn next(&self) -> Instance {
        self.next
    }

    /// The first instance that is not known to be decided.
    pub fn decided(&self) -> Instance {
        self.decided
    }

    /// The first instance of this round without the votes of a majority: [`Self::decided`] may be ahead of it, by
    /// decisions of earlier rounds.
    pub fn reached(&self) -> Instance {
        self.reached
    }

    /// By acceptor of the round's configuration: the first instance without its vote.
    pub fn voted(&self) -> &[Instance] {
        &self.voted
    }

    /// The round it follows; 0 if none.
    pub fn round(&self) -> Round {
        self.config.as_ref().map_or(0, |config| config.number)
    }

    /// Whether the learner may lack many decided instances: it knows that it lacks more than `instances`, or has not
    /// followed any round yet.
    pub fn is_behind(&self, instances: u64) -> bool {
        self.next + instances < self.decided || self.voted.is_empty()
    }

    /// The number of proposals and decided values that are kept.
    pub fn kept(&self) -> usize {
        self.proposed.len() + self.chosen.len()
    }

    /// A round has begun and starts at this instance: everything before is decided. The learner does not follow earlier
    /// rounds any more.
    pub fn begin(&mut self, config: &Arc<Config>, start: Instance) {
        if config.number <= self.round() {
            return;
        }
        self.end_round(start);
        self.config = Some(config.clone());
        self.voted = vec![start; config.acceptors.len()];
        self.reached = start;
    }

    /// The round that it followed is over, and everything before this instance is decided: a process that knows the
    /// values says so. The learner forgets the proposals of the round that have no majority.
    pub fn end_round(&mut self, decided: Instance) {
        let proposed = core::mem::take(&mut self.proposed);
        let reached = if mutants::on(Mutant::M40) {
            Instance::MAX
        } else {
            self.reached
        };
        let kept = proposed.from(self.next);
        for vote in kept.map_while(|vote| vote.part(0, reached)) {
            self.chosen.put(vote);
        }
        self.config = None;
        self.decided = self.decided.max(decided);
    }

    /// A proposal of this round.
    pub fn on_proposal(&mut self, vote: Vote) {
        if vote.round != self.round() {
            return;
        }
        // A part of a range of skipped instances may have been taken: the part that was learnt in another round.
        if let Some(vote) = vote.part(self.next, Instance::MAX) {
            self.proposed.put(vote);
        }
    }

    /// An acceptor has voted for all instances of this round before this one.
    pub fn on_voted(&mut self, round: Round, who: AcceptorId, next: Instance) {
        let Some(config) = self.config.as_ref().filter(|config| config.number == round) else {
            return;
        };
        let Some(at) = config.place(who) else {
            return;
        };
        self.voted[at] = self.voted[at].max(next);
        let voted = &self.voted;
        let of = |who: AcceptorId| config.place(who).map_or(0, |at| voted[at]);
        let reached = if mutants::on(Mutant::N11) {
            voted.iter().copied().max().unwrap_or(0)
        } else {
            config.reached_by_majority(of)
        };
        self.reached = self.reached.max(reached);
        self.decided = self.decided.max(reached);
    }

    /// Takes a decided value from a process that knows it.
    pub fn on_chosen(&mut self, vote: &Vote) {
        if let Some(vote) = vote.part(self.next, Instance::MAX) {
            self.decided = self.decided.max(vote.end());
            self.chosen.put(vote);
        }
    }

    /// A process says that everything before this instance is decided.
    pub fn on_decided(&mut self, next: Instance) {
        self.decided = self.decided.max(next);
    }

    /// Everything before this instance is forgotten, or the application has it: the learner goes on from there.
    pub fn skip_to(&mut self, next: Instance) {
        self.next = self.next.max(next);
        self.decided = self.decided.max(next);
        self.forget(next);
    }

    /// Takes the next decided value.
    pub fn take(&mut self) -> Option<Vote> {
        let vote = self.taken()?;
        self.next = vote.end();
        Some(vote)
    }

    /// One part of a range of skipped instances may be in `chosen` and another in `proposed`: each keeps the rest
    /// behind the other's part.
    fn taken(&mut self) -> Option<Vote> {
        let next = self.next;
        let begins = self.chosen.take(next);
        let goes_on = || self.chosen.at(next).filter(|_| !mutants::on(Mutant::N20));
        if let Some(part) = begins.or_else(goes_on) {
            let part = part.part(next, Instance::MAX)?;
            self.forget(part.end());
            return Some(part);
        }
        // A decided instance need not have the value that this round has proposed: only a majority of the round's votes
        // says so.
        let vote = self.proposed.at(next)?;
        let part = vote.part(next, self.reached)?;
        match mutants::on(Mutant::N20) {
            true => self.proposed.trim(part.end()),
            false => self.forget(part.end()),
        }
        Some(part)
    }

    /// Nothing below this instance is wanted any more.
    fn forget(&mut self, below: Instance) {
        self.proposed.trim(below);
        self.chosen.trim(below);
    }

    /// The first run of decided instances whose values it does not know: another process has to be asked for them.
    pub fn missing(&self) -> Option<Range<Instance>> {
        self.missing_from(self.next)
    }

    /// The same of instances from this one on.
    pub fn missing_from(&self, at: Instance) -> Option<Range<Instance>> {
        let known = |at: Instance| self.chosen.hole(self.proposed.hole(at));
        let begins = |votes: &Votes, at| votes.from(at).next().map(|vote| vote.first);
        let mut at = at.max(self.next);
        while at < self.decided {
            let behind = known(at);
            if behind == at {
                let ends = [begins(&self.proposed, at), begins(&self.chosen, at)];
                let upto = ends.into_iter().flatten().min().unwrap_or(self.decided);
                return Some(at..upto.min(self.decided));
            }
            at = behind;
        }
        None
    }
}

impl Learner {
    /// Its invariants.
    pub fn check(&self) {
        assert!(self.next >= 1, "instances count from 1");
        assert!(self.decided >= self.next, "what was taken is decided");
        assert!(
            self.reached <= self.decided,
            "what a majority has voted for is decided"
        );
        if let Some(config) = &self.config {
            assert_eq!(
                self.voted.len(),
                config.acceptors.len(),
                "each acceptor has its place"
            );
            let most = self.voted.iter().max();
            assert!(
                most.is_none_or(|most| self.reached <= *most),
                "a majority has not voted for more than anybody"
            );
        }
        for votes in [&self.proposed, &self.chosen] {
            let first = votes.first();
            assert!(
                first.is_none_or(|first| first >= self.next),
                "what was taken is forgotten"
            );
            votes.check();
        }
    }
}

//! A learner: what is decided, in order.
//!
//! It is told of proposals and of votes of one round, the newest that it knows of. What was decided before that started
//! it has seen, or is told as such by somebody who has ([`Learner::on_chosen`]): that an instance is decided does not
//! say that what was proposed in it in an earlier round is what it was decided as.

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
    /// The first instance of this round that not a majority has voted for.
    reached: Instance,
    /// The first instance that is not known to be decided.
    decided: Instance,
    /// Proposals of this round.
    proposed: Votes,
    /// What is known to be decided and was not taken, where that is not in `proposed`.
    chosen: Votes,
}

impl Learner {
    /// One that wants everything from this instance on.
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

    /// The first instance of this round that not a majority has voted for: [`Self::decided`] may be ahead of it, by
    /// what was decided in earlier rounds.
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

    /// Whether it may lack much that is decided: it knows that it lacks more than so many instances, or has not followed
    /// any round yet.
    pub fn is_behind(&self, instances: u64) -> bool {
        self.next + instances < self.decided || self.voted.is_empty()
    }

    /// How much is kept, in proposals.
    pub fn kept(&self) -> usize {
        self.proposed.len() + self.chosen.len()
    }

    /// A round has begun, which starts at this instance: all before is decided. Earlier ones are not followed any more.
    pub fn begin(&mut self, config: &Arc<Config>, start: Instance) {
        if config.number <= self.round() {
            return;
        }
        self.end_round(start);
        self.config = Some(config.clone());
        self.voted = vec![start; config.acceptors.len()];
        self.reached = start;
    }

    /// The round that it followed is over, and all before this instance is decided: somebody says so who knows as what.
    /// What the round has proposed and not decided is forgotten.
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
        // Of skipped instances a part may have been taken: what another round was told of them.
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

    /// Somebody who knows what was decided says so.
    pub fn on_chosen(&mut self, vote: &Vote) {
        if let Some(vote) = vote.part(self.next, Instance::MAX) {
            self.decided = self.decided.max(vote.end());
            self.chosen.put(vote);
        }
    }

    /// Everything before this instance is forgotten, or the application has it: it goes on from there.
    pub fn skip_to(&mut self, next: Instance) {
        self.next = self.next.max(next);
        self.decided = self.decided.max(next);
        self.forget(next);
    }

    /// What was decided next.
    pub fn take(&mut self) -> Option<Vote> {
        let vote = self.taken()?;
        self.next = vote.end();
        Some(vote)
    }

    /// Of skipped instances a part may be known from one place and a part from another: each place has what is left of
    /// it behind the other's.
    fn taken(&mut self) -> Option<Vote> {
        let next = self.next;
        let begins = self.chosen.take(next);
        let goes_on = || self.chosen.at(next).filter(|_| !mutants::on(Mutant::N20));
        if let Some(part) = begins.or_else(goes_on) {
            let part = part.part(next, Instance::MAX)?;
            self.forget(part.end());
            return Some(part);
        }
        // That something is decided does not say that this round has proposed it: only a majority of its votes does.
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

    /// Instances that are decided, and of which it does not know as what: somebody has to be asked for them.
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

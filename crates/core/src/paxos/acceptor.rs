//! An acceptor: what it has promised, and what it has voted for.
//!
//! Whatever it says has to be durable before: the caller takes [`Acceptor::records`], makes them so, and then says
//! [`Acceptor::on_durable`]. Until then the promise must not be sent, and [`Acceptor::voted`] does not tell of the
//! votes.

use alloc::vec::Vec;

use super::config::AcceptorId;
use super::value::{Instance, Round, Vote};
use super::votes::Votes;
use crate::mutants::{self, Mutant};

/// What has to be durable.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Record {
    /// No vote in an earlier round from here on.
    Promised(Round),
    /// A vote; it takes the place of earlier ones for its instances.
    Voted(Vote),
    /// Everything below is forgotten.
    Trimmed(Instance),
}

/// Up to where something is durable, when all records that were taken before are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Mark {
    promised: Round,
    round: Round,
    next: Instance,
}

/// The round was too low.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    /// What was promised.
    pub promised: Round,
}

/// Phase 1B: what an acceptor tells the coordinator of a new round.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Promise {
    /// For this round.
    pub round: Round,
    /// Whose.
    pub acceptor: AcceptorId,
    /// From which instance on it tells its votes.
    pub from: Instance,
    /// It has what was decided in all instances before this one, or has forgotten that.
    pub held: Instance,
    /// Everything before this instance is decided, and it has forgotten as what.
    pub kept: Instance,
    /// Its votes from there on.
    pub votes: Vec<Vote>,
}

/// What became of a proposal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// A vote was cast.
    Voted,
    /// It had been before.
    Known,
    /// Something before it in this round is not here yet.
    Early,
}

/// How far the votes of the last round go.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Streak {
    round: Round,
    next: Instance,
}

/// The machine.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Acceptor {
    id: AcceptorId,
    promised: Round,
    streak: Streak,
    votes: Votes,
    /// Below this everything is forgotten.
    kept: Instance,
    fresh: Vec<Record>,
    durable: Mark,
}

impl Acceptor {
    /// With an empty store.
    pub fn new(id: AcceptorId) -> Self {
        Self {
            id,
            promised: 0,
            streak: Streak::default(),
            votes: Votes::default(),
            kept: 1,
            fresh: Vec::new(),
            durable: Mark::default(),
        }
    }

    /// What a store remembers. How far votes went in the last round is not: they count again from where the round
    /// starts, if it asks again.
    pub fn restore(id: AcceptorId, records: impl IntoIterator<Item = Record>) -> Self {
        let mut this = Self::new(id);
        for record in records {
            match record {
                Record::Promised(round) => this.promised = this.promised.max(round),
                Record::Voted(vote) => {
                    this.promised = this.promised.max(vote.round);
                    this.votes.put(vote);
                }
                Record::Trimmed(below) => this.forget(below),
            }
        }
        this.durable.promised = this.promised;
        this
    }

    /// Which it is.
    pub fn id(&self) -> AcceptorId {
        self.id
    }

    /// The highest round it has promised, perhaps not durably yet.
    pub fn promised(&self) -> Round {
        self.promised
    }

    /// Whether the promise of a round may be sent.
    pub fn has_promised(&self, round: Round) -> bool {
        self.durable.promised >= round || mutants::on(Mutant::N01) || mutants::on(Mutant::N02)
    }

    /// Everything below this instance is forgotten.
    pub fn kept(&self) -> Instance {
        self.kept
    }

    /// All its votes.
    pub fn votes(&self) -> &Votes {
        &self.votes
    }

    /// Phase 1A. `held`: from [`Self::kept`] on it has what was decided in all instances before this one, and has learnt
    /// that ([`Self::learn`]); if its learner began behind [`Self::kept`], what is before is to be trimmed first. The
    /// answer may leave when [`Self::has_promised`] says so.
    ///
    /// # Errors
    /// A higher round was promised.
    pub fn prepare(
        &mut self,
        round: Round,
        from: Instance,
        held: Instance,
    ) -> Result<Promise, Refused> {
        let promised = self.promised;
        if round < promised {
            return Err(Refused { promised });
        }
        if round > promised && !mutants::on(Mutant::N01) {
            self.promised = round;
            self.fresh.push(Record::Promised(round));
        }
        Ok(Promise {
            round,
            acceptor: self.id,
            from,
            held: held.max(self.kept),
            kept: self.kept,
            votes: self.votes.from(from).collect(),
        })
    }

    /// Phase 2A of a round that starts at `start`: a vote, if all before it in this round were voted for. What is before
    /// `kept` somebody has forgotten; it is forgotten here, too, so that a majority knows that it was decided.
    ///
    /// # Errors
    /// A higher round was promised.
    pub fn accept(
        &mut self,
        start: Instance,
        kept: Instance,
        vote: &Vote,
    ) -> Result<Verdict, Refused> {
        let promised = self.promised;
        if vote.round < promised && !mutants::on(Mutant::N03) {
            return Err(Refused { promised });
        }
        let mut streak = self.streak;
        if streak.round != vote.round {
            streak = Streak {
                round: vote.round,
                next: start,
            };
        }
        if vote.first < streak.next {
            return Ok(Verdict::Known);
        }
        if vote.first > streak.next && !mutants::on(Mutant::N04) {
            return Ok(Verdict::Early);
        }
        streak.next = vote.end();
        self.streak = streak;
        self.promised = self.promised.max(vote.round);
        if !mutants::on(Mutant::N16) {
            self.trim(kept);
        }
        if let Some(kept) = vote.part(self.kept, Instance::MAX) {
            self.write(kept);
        }
        Ok(Verdict::Voted)
    }

    /// What was decided: kept, so that it can be told to others. It counts as a vote in the round in which it was.
    pub fn learn(&mut self, vote: Vote) {
        let Some(vote) = vote.part(self.kept, Instance::MAX) else {
            return;
        };
        let known = self.votes.at(vote.first);
        let known = known.and_then(|known| known.part(vote.first, vote.end()));
        // In one round there is one value for each instance.
        let differs = |known: Vote| known.round != vote.round && known.value != vote.value;
        if known.is_none_or(differs) {
            self.write(vote);
        }
    }

    /// Forgets everything below this instance, which is decided, and which nobody will ask for.
    pub fn trim(&mut self, below: Instance) {
        if below > self.kept {
            self.forget(below);
            self.fresh.push(Record::Trimmed(below));
        }
    }

    /// What has to be made durable, and what is said to be when it is.
    pub fn records(&mut self) -> (Vec<Record>, Mark) {
        let mark = Mark {
            promised: self.promised,
            round: self.streak.round,
            next: self.streak.next,
        };
        (core::mem::take(&mut self.fresh), mark)
    }

    /// All records that were taken with this mark, and before, are durable.
    pub fn on_durable(&mut self, mark: Mark) {
        self.durable = self.durable.max(mark);
    }

    /// The round it voted in last, and the first instance in that without a vote, as far as that is durable.
    pub fn voted(&self) -> (Round, Instance) {
        if mutants::on(Mutant::N05) {
            return (self.streak.round, self.streak.next);
        }
        (self.durable.round, self.durable.next)
    }

    fn write(&mut self, vote: Vote) {
        self.fresh.push(Record::Voted(vote.clone()));
        self.votes.put(vote);
    }

    fn forget(&mut self, below: Instance) {
        self.kept = self.kept.max(below);
        self.votes.trim(self.kept);
    }
}

impl Promise {
    /// The vote that tells of this instance.
    pub fn at(&self, instance: Instance) -> Option<&Vote> {
        let after = self.votes.partition_point(|vote| vote.first <= instance);
        let vote = self.votes.get(after.checked_sub(1)?)?;
        (vote.end() > instance).then_some(vote)
    }

    /// The first instance behind this one at which a vote begins.
    pub fn begins_after(&self, instance: Instance) -> Option<Instance> {
        let after = self.votes.partition_point(|vote| vote.first <= instance);
        self.votes.get(after).map(|vote| vote.first)
    }

    /// The first instance behind all its votes.
    pub fn end(&self) -> Instance {
        self.votes.last().map_or(0, Vote::end)
    }

    /// Whether votes ascend, do not overlap, and are of earlier rounds: a peer may say anything.
    pub fn is_sound(&self) -> bool {
        let ascend = self
            .votes
            .windows(2)
            .all(|pair| pair[0].end() <= pair[1].first);
        let first = self
            .votes
            .first()
            .is_none_or(|vote| vote.first >= self.from);
        let rounds = self.votes.iter().all(|vote| vote.round <= self.round);
        ascend && first && rounds
    }
}

//! An acceptor: what it has promised, and what it has voted for.
//!
//! Whatever it says has to be durable before: the caller takes [`Acceptor::records`], makes them so, and then says
//! [`Acceptor::on_durable`]. Until then the promise must not be sent, and [`Acceptor::voted`] does not tell of the
//! votes.
//!
//! # What it keeps
//!
//! Two places are not to be confused. Below [`Acceptor::kept`] it has forgotten its votes: only its own process says so
//! ([`Acceptor::trim`]), which has passed them. Below [`Acceptor::floor`] everything is known to be decided, and some acceptor has
//! forgotten as what: no round starts there. A vote raises the floor, so that a majority knows it, and forgets nothing.
//!
//! What it has learnt ([`Acceptor::learn`]) is a vote, in a round that is not lower than the one in which it was decided. So of all
//! votes for an instance those of the highest round are for what was decided, if anything was: whoever holds it by its own vote
//! or because it was told.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::config::AcceptorId;
use super::promise::Promise;
use super::value::{Instance, Round, Vote};
use super::votes::Votes;
use rota_core::invariants::FEW;
use rota_core::mutants::{self, Mutant};

/// What has to be durable.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Record {
    /// No vote in an earlier round from here on.
    Promised(Round),
    /// A vote; it takes the place of earlier ones for its instances.
    Voted(Vote),
    /// Everything below is decided, and nobody need know as what.
    Floor(Instance),
    /// Everything below is forgotten here.
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
    /// The highest promise that has a record of its own: that of another may be in votes alone, which are forgotten.
    recorded: Round,
    /// Below this everything is forgotten.
    kept: Instance,
    /// Below this everything is decided.
    floor: Instance,
    /// Not taken yet, each with what is said when it is durable.
    fresh: VecDeque<(Record, Mark)>,
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
            recorded: 0,
            kept: 1,
            floor: 1,
            fresh: VecDeque::new(),
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
                Record::Floor(floor) => this.floor = this.floor.max(floor),
                Record::Trimmed(below) => this.forget(below),
            }
        }
        this.durable.promised = this.promised;
        // Of votes it is not known whether they are kept.
        this.recorded = 0;
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

    /// Everything below this instance is decided, and some acceptor has forgotten as what. Never below [`Self::kept`].
    pub fn floor(&self) -> Instance {
        self.floor
    }

    /// All its votes.
    pub fn votes(&self) -> &Votes {
        &self.votes
    }

    /// Phase 1A. `held`: from [`Self::kept`] on it has what was decided in all instances before this one, and has learnt
    /// that ([`Self::learn`]); if its learner began behind [`Self::kept`], what is before is to be trimmed first. The
    /// answer may leave when [`Self::has_promised`] says so, and all that was learnt before is durable: what is told to be
    /// held is held for ever.
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
            self.record_promise();
        }
        Ok(Promise {
            round,
            acceptor: self.id,
            from,
            held: held.max(self.floor),
            kept: match mutants::on(Mutant::N22) {
                true => self.kept,
                false => self.floor,
            },
            votes: self.votes.from(from).collect(),
        })
    }

    /// Phase 2A of a round that starts at `start`: a vote, if all before it in this round were voted for. What is before
    /// `kept` somebody has forgotten: this acceptor knows from here on that it is decided, so that a majority does.
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
        // First of all: what is said to be durable with this record must not name the vote behind it.
        if kept > self.floor && !mutants::on(Mutant::N16) {
            self.floor = kept;
            self.push(Record::Floor(kept));
            if mutants::on(Mutant::N23) {
                self.trim(kept);
            }
        }
        streak.next = vote.end();
        self.streak = streak;
        self.promised = self.promised.max(vote.round);
        match vote.part(self.kept, Instance::MAX) {
            Some(kept) => self.write(kept),
            // No vote says that this round was promised.
            None => self.record_promise(),
        }
        Ok(Verdict::Voted)
    }

    /// What was decided, in a round that is not lower than the one in which it was: kept as a vote in that round, where it is not
    /// known of as high a one. Of a range of skipped instances some parts may be, and others not.
    ///
    /// As its round has begun no vote in an earlier one is cast any more: it would take the place of what was decided.
    pub fn learn(&mut self, vote: Vote) {
        let mut at = vote.first.max(self.kept);
        while let Some(rest) = vote.part(at, Instance::MAX) {
            let (known, upto) = self.known(&rest);
            at = upto;
            if known.is_none_or(|round| round < vote.round)
                && let Some(part) = rest.part(rest.first, upto)
            {
                if !mutants::on(Mutant::N24) {
                    self.promised = self.promised.max(part.round);
                }
                self.write(part);
            }
        }
    }

    /// In which round the first instance of a vote is known, if it is, and up to where that is so of the others.
    fn known(&self, vote: &Vote) -> (Option<Round>, Instance) {
        let known = self.votes.at(vote.first);
        if mutants::on(Mutant::N17)
            && let Some(known) = known.as_ref().filter(|known| known.value == vote.value)
        {
            return (Some(Round::MAX), known.end().min(vote.end()));
        }
        if let Some(known) = known {
            let end = if mutants::on(Mutant::N19) {
                vote.end()
            } else {
                known.end().min(vote.end())
            };
            return (Some(known.round), end);
        }
        let next = self.votes.from(vote.first).next();
        let next = next.map_or(vote.end(), |next| next.first);
        (None, next.min(vote.end()))
    }

    /// Forgets everything below this instance, which is decided, and which nobody will ask for. The process has passed it,
    /// and knows what follows from it.
    pub fn trim(&mut self, below: Instance) {
        if below > self.kept {
            self.record_promise();
            self.forget(below);
            self.push(Record::Trimmed(below));
        }
    }

    /// What was promised is written, unless it was.
    fn record_promise(&mut self) {
        if self.recorded < self.promised {
            self.recorded = self.promised;
            self.push(Record::Promised(self.promised));
        }
    }

    /// What has to be made durable, and what is said to be when it is.
    pub fn records(&mut self) -> (Vec<Record>, Mark) {
        let fresh = core::mem::take(&mut self.fresh);
        let records = fresh.into_iter().map(|(record, _)| record);
        (records.collect(), self.mark())
    }

    /// The next record that has to be made durable, in order, and what is said to be when it and those before are.
    pub fn next_record(&mut self) -> Option<(Record, Mark)> {
        self.fresh.pop_front()
    }

    /// What is said to be durable when all records are that it ever handed out, if none are left to hand out.
    pub fn mark(&self) -> Mark {
        Mark {
            promised: self.promised,
            round: self.streak.round,
            next: self.streak.next,
        }
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

    fn push(&mut self, record: Record) {
        self.fresh.push_back((record, self.mark()));
    }

    fn write(&mut self, vote: Vote) {
        self.push(Record::Voted(vote.clone()));
        self.votes.put(vote);
    }

    fn forget(&mut self, below: Instance) {
        self.kept = self.kept.max(below);
        self.floor = self.floor.max(below);
        self.votes.trim(self.kept);
    }
}

impl Acceptor {
    /// Its invariants.
    pub fn check(&self) {
        let mark = self.mark();
        assert!(self.kept >= 1, "instances count from 1");
        assert!(self.floor >= self.kept, "what is forgotten is decided");
        assert!(
            self.recorded <= self.promised,
            "what has a record was promised"
        );
        assert!(self.streak.round <= self.promised, "a vote is a promise");
        assert!(self.durable <= mark, "nothing is durable that was not said");
        assert!(
            self.durable.promised <= self.promised,
            "a durable promise stands"
        );
        let first = self.votes.first();
        assert!(
            first.is_none_or(|first| first >= self.kept),
            "votes that are forgotten are gone"
        );
        let marks = self.fresh.iter().map(|(_, mark)| *mark);
        assert!(self.fresh.len() > FEW || marks.is_sorted(), "marks ascend");
        self.votes.check();
    }
}

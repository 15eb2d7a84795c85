//! An acceptor: its promises and its votes.
//!
//! An acceptor may tell only what is durable: the caller takes [`Acceptor::records`], makes them durable, and then
//! calls [`Acceptor::on_durable`]. Until then the caller must not send the promise, and [`Acceptor::voted`] does not
//! count the votes.
//!
//! # The state of an acceptor
//!
//! Two bounds are not to be confused. The acceptor has forgotten its votes below [`Acceptor::kept`]: only its own
//! process raises that bound ([`Acceptor::trim`]), after it has passed the votes. Everything below [`Acceptor::floor`]
//! is known to be decided, and some acceptor has forgotten the values: no round starts there. A vote raises the floor,
//! so that a majority knows it, and forgets nothing.
//!
//! The acceptor keeps a decided value that it has learnt ([`Acceptor::learn`]) as a vote, in a round that is not lower
//! than the one in which the value was decided. So of all votes for an instance, those of the highest round are for the
//! decided value, if there is one, whether an acceptor has voted for the value or was told it. The first of them may be
//! in its store alone ([`Acceptor::part_with`]). They are not forgotten: who tells them reads them back.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::config::AcceptorId;
use super::promise::Promise;
use super::value::{Instance, Round, Vote};
use super::votes::Votes;
use rota_core::invariants::FEW;
use rota_core::mutants::{self, Mutant};

/// A record that has to be durable.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Record {
    /// No vote in an earlier round from here on.
    Promised(Round),
    /// A vote; it takes the place of earlier ones for its instances.
    Voted(Vote),
    /// Everything below is decided, and nobody need know the values.
    Floor(Instance),
    /// Everything below is forgotten here.
    Trimmed(Instance),
}

/// The promise and the votes that are durable when all records taken so far are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Mark {
    promised: Round,
    round: Round,
    next: Instance,
}

/// The round was too low.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    /// The round that was promised.
    pub promised: Round,
}

/// The answer to a proposal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// A vote was cast.
    Voted,
    /// The vote was cast before.
    Known,
    /// A proposal before it in this round is not here yet.
    Early,
}

/// The votes of the last round, as the first instance without one.
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
    /// The highest promise that has a record of its own. A later promise may be in votes alone, which are forgotten.
    recorded: Round,
    /// Below this everything is forgotten.
    kept: Instance,
    /// Below this everything is decided.
    floor: Instance,
    /// The votes before this are not in memory: the store has them.
    resident: Instance,
    /// Records that were not taken yet, each with the mark that holds when it is durable.
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
            resident: 1,
            fresh: VecDeque::new(),
            durable: Mark::default(),
        }
    }

    /// An acceptor from the records of its store. The store does not tell how far the votes of the last round went:
    /// they count again from the start of the round, if it proposes again.
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
        // The promise may be in votes alone, which are forgotten: it counts as not recorded.
        this.recorded = 0;
        this
    }

    /// The name of this acceptor.
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

    /// Everything below this instance is decided, and some acceptor has forgotten the values. Never below
    /// [`Self::kept`].
    pub fn floor(&self) -> Instance {
        self.floor
    }

    /// The votes before this instance are not in memory. Never below [`Self::kept`].
    pub fn resident(&self) -> Instance {
        self.resident
    }

    /// Its votes that are in memory.
    pub fn votes(&self) -> &Votes {
        &self.votes
    }

    /// Takes the first vote out of memory, if it is for instances before this one: those are learnt, and in the store.
    pub fn part_with(&mut self, below: Instance) -> Option<Vote> {
        let first = self.votes.from(self.resident).next()?;
        let is_next = first.first == self.resident && first.end() <= below;
        self.resident = if is_next { first.end() } else { return None };
        self.votes.take(first.first)
    }

    /// Phase 1A. `held`: from [`Self::kept`] on the acceptor has learnt ([`Self::learn`]) the decided values of all
    /// instances before this one; if its learner began behind [`Self::kept`], the instances before are to be trimmed
    /// first. The promise lacks the votes before [`Self::resident`], which are to be read back first: for an instance
    /// without a vote the coordinator would propose another value. It may leave when [`Self::has_promised`] says so and
    /// everything learnt before is durable: an acceptor holds for ever what it tells that it holds.
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

    /// Phase 2A of a round that starts at `start`: the acceptor votes if it has voted for all proposals before in this
    /// round. Some acceptor has forgotten the values before `kept`: this acceptor knows from here on that those
    /// instances are decided, so that a majority does.
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
        // This record comes first: its mark must not include the vote behind it.
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
            // No vote is written that says that this round was promised.
            None => self.record_promise(),
        }
        Ok(Verdict::Voted)
    }

    /// Keeps a decided value as a vote in `vote.round`, which is not lower than the round in which it was decided,
    /// unless it has a vote of as high a round. It may have such votes for some parts of a range of skipped instances,
    /// and not for others.
    ///
    /// The acceptor votes in no earlier round any more: such a vote would take the place of the decided value.
    pub fn learn(&mut self, vote: Vote) {
        let mut at = vote.first.max(self.resident);
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

    /// The round of the kept vote for the first instance of `vote`, if there is one, and the first instance behind for
    /// which that may differ.
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

    /// Forgets everything below this instance: all of it is decided, and nobody will ask for it. The process has passed
    /// it, and knows what follows from it.
    pub fn trim(&mut self, below: Instance) {
        if below > self.kept {
            self.record_promise();
            self.forget(below);
            self.push(Record::Trimmed(below));
        }
    }

    /// Adds a record of the promise, unless there is one.
    fn record_promise(&mut self) {
        if self.recorded < self.promised {
            self.recorded = self.promised;
            self.push(Record::Promised(self.promised));
        }
    }

    /// The records to make durable, and the mark that holds when they are.
    pub fn records(&mut self) -> (Vec<Record>, Mark) {
        let fresh = core::mem::take(&mut self.fresh);
        let records = fresh.into_iter().map(|(record, _)| record);
        (records.collect(), self.mark())
    }

    /// The next record to make durable, in order, and the mark that holds when it and those before are.
    pub fn next_record(&mut self) -> Option<(Record, Mark)> {
        self.fresh.pop_front()
    }

    /// The mark that holds when all records that it ever handed out are durable, if none are left to hand out.
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

    /// The last round with a durable vote, and the first instance of that round without one.
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
        // A vote that is not in memory is for the same value: that is decided.
        if let Some(resident) = vote.part(self.resident, Instance::MAX) {
            self.votes.put(resident);
        }
    }

    fn forget(&mut self, below: Instance) {
        self.kept = self.kept.max(below);
        self.floor = self.floor.max(below);
        self.resident = self.resident.max(below);
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
        let first = self.votes.first().unwrap_or(self.resident);
        assert!(
            first >= self.resident && self.resident >= self.kept,
            "votes that are forgotten, or were taken out of memory, are gone"
        );
        let marks = self.fresh.iter().map(|(_, mark)| *mark);
        assert!(self.fresh.len() > FEW || marks.is_sorted(), "marks ascend");
        self.votes.check();
    }
}

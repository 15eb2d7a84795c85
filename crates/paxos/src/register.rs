//! The register by which the acceptors of a configuration agree on the next one: Paxos for a single value, with ballots
//! of its own.
//!
//! The register arbitrates and nothing else: of all candidates for the configuration after number `n` one gets its way,
//! and all others are told which. The chosen coordinator still has to ask the acceptors for their promises before it
//! may propose anything.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::config::AcceptorId;
use super::value::Round;
use rota_core::contract::Process;
use rota_core::mutants::{self, Mutant};

/// An attempt. No process uses one twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ballot {
    /// Compared first.
    pub count: u64,
    /// The process that makes the attempt.
    pub by: Process,
}

/// A message about the configuration with some number. `T` is the configuration.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Word<T> {
    /// Phase 1A.
    Prepare(Ballot),
    /// Phase 1B, with the accepted configuration, if there is one.
    Promise(Ballot, Option<(Ballot, T)>),
    /// Phase 2A.
    Accept(Ballot, T),
    /// Phase 2B.
    Accepted(Ballot),
    /// The first ballot was too low for an acceptor, which has promised the second.
    Refused(Ballot, Ballot),
}

/// The state of an acceptor for one number. It has to be durable before the acceptor answers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Slot<T> {
    /// The acceptor takes no ballot below it.
    pub promised: Option<Ballot>,
    /// The accepted configuration, and its ballot.
    pub accepted: Option<(Ballot, T)>,
}

/// An acceptor's part, for all numbers that are not decided yet.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Register<T> {
    /// The configurations up to this number are known.
    known: Round,
    slots: BTreeMap<Round, Slot<T>>,
}

impl<T: Clone> Default for Register<T> {
    fn default() -> Self {
        Self {
            known: 0,
            slots: BTreeMap::new(),
        }
    }
}

impl<T: Clone> Register<T> {
    /// Takes the state of a number from the store.
    pub fn restore(&mut self, number: Round, slot: Slot<T>) {
        self.slots.insert(number, slot);
    }

    /// The state of a number, to be stored.
    pub fn slot(&self, number: Round) -> Option<&Slot<T>> {
        self.slots.get(&number)
    }

    /// The configurations up to this number are known: the register forgets their state, as candidates that ask are
    /// told the configurations.
    pub fn forget(&mut self, number: Round) {
        self.known = self.known.max(number);
        if !mutants::on(Mutant::I03) {
            self.slots = self.slots.split_off(&number.saturating_add(1));
        }
    }

    /// The answer to a candidate, if there is one. Not to be sent before [`Self::slot`] is durable.
    pub fn on_word(&mut self, number: Round, word: Word<T>) -> Option<Word<T>> {
        let is_question = matches!(word, Word::Prepare(_) | Word::Accept(..));
        if number <= self.known || !is_question {
            return None;
        }
        let slot = self.slots.entry(number).or_insert(Slot {
            promised: None,
            accepted: None,
        });
        let (Word::Prepare(ballot) | Word::Accept(ballot, _)) = &word else {
            return None;
        };
        let ballot = *ballot;
        if let Some(promised) = slot.promised.filter(|promised| ballot < *promised)
            && !mutants::on(Mutant::N13)
        {
            return Some(Word::Refused(ballot, promised));
        }
        slot.promised = Some(ballot);
        match word {
            Word::Accept(_, value) => {
                slot.accepted = Some((ballot, value));
                Some(Word::Accepted(ballot))
            }
            _ => Some(Word::Promise(ballot, slot.accepted.clone())),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Phase<T> {
    One {
        promised: BTreeSet<AcceptorId>,
        best: Option<(Ballot, T)>,
    },
    Two {
        value: T,
        accepted: BTreeSet<AcceptorId>,
    },
}

/// A candidate, which wants a certain configuration to follow. A refused one tries again with [`Candidate::again`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Candidate<T> {
    number: Round,
    voters: Vec<AcceptorId>,
    wanted: T,
    ballot: Ballot,
    phase: Phase<T>,
    /// The highest ballot that an acceptor has promised to another candidate.
    seen: u64,
}

impl<T: Clone> Candidate<T> {
    /// A candidate for the configuration with this number, which the acceptors of the one before agree on. `count`:
    /// higher than in any ballot that this process has used for this number.
    pub fn new(number: Round, voters: Vec<AcceptorId>, me: Process, count: u64, wanted: T) -> Self {
        Self {
            number,
            voters,
            wanted,
            ballot: Ballot { count, by: me },
            phase: Phase::One {
                promised: BTreeSet::new(),
                best: None,
            },
            seen: 0,
        }
    }

    /// The number of the wanted configuration.
    pub fn number(&self) -> Round {
        self.number
    }

    /// The acceptors that are asked.
    pub fn voters(&self) -> &[AcceptorId] {
        &self.voters
    }

    /// The message to all of [`Self::voters`] now, and again until they have answered.
    pub fn word(&self) -> Word<T> {
        match &self.phase {
            Phase::One { .. } => Word::Prepare(self.ballot),
            Phase::Two { value, .. } => Word::Accept(self.ballot, value.clone()),
        }
    }

    /// Tries again, with a higher ballot than any it knows of, and for the configuration that is wanted now, if that is
    /// another. `promised`: the ballot promised by this process's own acceptor.
    pub fn again(&mut self, promised: Option<Ballot>, wanted: Option<T>) {
        self.wanted = wanted.unwrap_or_else(|| self.wanted.clone());
        let promised = promised.map_or(0, |ballot| ballot.count);
        let known = self.ballot.count.max(self.seen).max(promised);
        self.ballot.count = known.saturating_add(1);
        self.phase = Phase::One {
            promised: BTreeSet::new(),
            best: None,
        };
    }

    /// Takes the answer of an acceptor. Returns the chosen configuration, which may be another candidate's, if the
    /// answer decides it. [`Self::word`] may be another one after this.
    pub fn on_word(&mut self, who: AcceptorId, word: Word<T>) -> Option<T> {
        if !self.voters.contains(&who) {
            return None;
        }
        let majority = self.voters.len() / 2 + 1;
        match (word, &mut self.phase) {
            (Word::Refused(ballot, promised), _) if ballot == self.ballot => {
                self.seen = self.seen.max(promised.count);
            }
            (Word::Promise(ballot, accepted), Phase::One { promised, best })
                if ballot == self.ballot =>
            {
                promised.insert(who);
                let higher =
                    |(ballot, _): &(Ballot, T)| best.as_ref().is_none_or(|(best, _)| ballot > best);
                if let Some(accepted) = accepted.filter(higher)
                    && !mutants::on(Mutant::N14)
                {
                    *best = Some(accepted);
                }
                if promised.len() >= majority {
                    let best = best.take().map(|(_, value)| value);
                    self.phase = Phase::Two {
                        value: best.unwrap_or_else(|| self.wanted.clone()),
                        accepted: BTreeSet::new(),
                    };
                }
            }
            (Word::Accepted(ballot), Phase::Two { value, accepted }) if ballot == self.ballot => {
                accepted.insert(who);
                return (accepted.len() >= majority).then(|| value.clone());
            }
            _ => {}
        }
        None
    }
}

impl<T: Clone> Register<T> {
    /// Its invariants.
    pub fn check(&self) {
        for (number, slot) in &self.slots {
            assert!(
                *number > self.known,
                "nothing is remembered of what is known"
            );
            let accepted = slot.accepted.as_ref().map(|(ballot, _)| *ballot);
            assert!(
                accepted <= slot.promised,
                "what was accepted is not above what was promised"
            );
        }
    }
}

impl<T: Clone> Candidate<T> {
    /// Its invariants.
    pub fn check(&self) {
        let majority = self.voters.len() / 2 + 1;
        let (answered, is_decided_by) = match &self.phase {
            Phase::One { promised, best } => {
                assert!(
                    best.is_none() || !promised.is_empty(),
                    "what was accepted came with a promise"
                );
                (promised, majority)
            }
            Phase::Two { accepted, .. } => (accepted, self.voters.len() + 1),
        };
        assert!(
            answered.iter().all(|who| self.voters.contains(who)),
            "only voters are counted"
        );
        assert!(
            answered.len() < is_decided_by,
            "phase 1 ends with a majority"
        );
    }
}

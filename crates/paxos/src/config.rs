//! The configuration of a round: its acceptors, its coordinator, and the order of its ring.

use alloc::vec::Vec;

use super::value::Round;
use rota_core::contract::{NodeId, Process};
use rota_core::mutants::{self, Mutant};

/// An acceptor is what it remembers: a node together with a number that was drawn when its store was made. A node that
/// has lost its store is another acceptor, which votes only when a configuration has it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AcceptorId {
    /// The node of the store.
    pub node: NodeId,
    /// Its store.
    pub store: u64,
}

/// A configuration. Every message of the protocol carries its number.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// The foundation: a number drawn for the first configuration. Configurations with another one belong to another
    /// cluster.
    pub founded: u64,
    /// One more than that of the configuration it follows; also the round in which it votes.
    pub number: Round,
    /// The process that proposes in this round. It is not named by its node: a restarted node must not go on with a
    /// round that it does not remember.
    pub coordinator: Process,
    /// The members, in the order of the ring.
    pub ring: Vec<Process>,
    /// The acceptors that vote. Some of them may be outside the ring.
    pub acceptors: Vec<AcceptorId>,
    /// Other sets of acceptors, of earlier configurations, in which a value may have been decided that a
    /// majority of [`Self::acceptors`] does not have.
    pub prior: Vec<Prior>,
}

/// The acceptors of an earlier configuration.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Prior {
    /// The last configuration that had this set.
    pub number: Round,
    /// The set.
    pub acceptors: Vec<AcceptorId>,
}

impl Config {
    /// The configuration that follows this one. `complete`: the last configuration with a majority of acceptors that is
    /// known to hold everything decided before it; 0 if there is none.
    pub fn next(
        &self,
        complete: Round,
        coordinator: Process,
        ring: Vec<Process>,
        acceptors: Vec<AcceptorId>,
    ) -> Self {
        let mut prior = self.prior.clone();
        let least = complete + u64::from(mutants::on(Mutant::N21));
        prior.retain(|set| set.number >= least && !same(&set.acceptors, &self.acceptors));
        prior.push(Prior {
            number: self.number,
            acceptors: self.acceptors.clone(),
        });
        prior.retain(|set| !same(&set.acceptors, &acceptors));
        Self {
            founded: self.founded,
            number: self.number.saturating_add(1),
            coordinator,
            ring,
            acceptors,
            prior,
        }
    }

    /// Whether a node has one of the acceptors that vote.
    pub fn has_acceptor_of(&self, node: NodeId) -> bool {
        has_acceptor_of(&self.acceptors, node)
    }

    /// The index of an acceptor among those that vote.
    pub fn place(&self, who: AcceptorId) -> Option<usize> {
        self.acceptors.iter().position(|other| *other == who)
    }

    /// Acceptors that are more than half of all.
    pub fn majority(&self) -> usize {
        self.acceptors.len() / 2 + 1
    }

    /// Whether the acceptors with `has` are a majority of each set that has to be asked when the round begins. Of the
    /// prior sets these are the ones of configurations from `complete` on, which may have become known after this
    /// configuration was made.
    pub fn may_begin(&self, complete: Round, has: impl Fn(&AcceptorId) -> bool) -> bool {
        let prior = self.prior.iter().filter(|set| set.number >= complete);
        let sets = prior.map(|set| &set.acceptors).chain([&self.acceptors]);
        let mut sets = sets.map(|set| (set.iter().filter(|who| has(who)).count(), set.len()));
        sets.all(|(there, all)| 2 * there > all)
    }

    /// Whether an acceptor is asked for a promise when the round begins.
    pub fn asks(&self, who: AcceptorId) -> bool {
        let prior = self.prior.iter().map(|set| &set.acceptors);
        let mut sets = prior.chain([&self.acceptors]);
        sets.any(|set| set.contains(&who))
    }

    /// The largest of these numbers, one for each acceptor, that a majority has reached. 0 if there is none.
    pub fn reached_by_majority(&self, reached: impl Fn(AcceptorId) -> u64) -> u64 {
        let mut reached: Vec<u64> = self.acceptors.iter().map(|who| reached(*who)).collect();
        reached.sort_unstable_by(|one, other| other.cmp(one));
        let last = self.majority() - 1;
        reached.get(last).copied().unwrap_or(0)
    }
}

/// Whether a node has one of these acceptors.
pub fn has_acceptor_of(set: &[AcceptorId], node: NodeId) -> bool {
    set.iter().any(|who| who.node == node)
}

/// Whether two sets have the same acceptors.
fn same(one: &[AcceptorId], other: &[AcceptorId]) -> bool {
    one.len() == other.len() && one.iter().all(|who| other.contains(who))
}

//! Phase 1B: the promise of an acceptor to the coordinator of a new round.

use alloc::vec::Vec;

use super::config::AcceptorId;
use super::value::{Instance, Round, Vote};

/// Phase 1B: the promise of an acceptor to the coordinator of a new round.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Promise {
    /// The promised round.
    pub round: Round,
    /// The acceptor that promises.
    pub acceptor: AcceptorId,
    /// The first instance of which it tells its votes.
    pub from: Instance,
    /// It has the decided values of all instances before this one, or some acceptor has forgotten them.
    pub held: Instance,
    /// Everything before this instance is decided, and some acceptor has forgotten the values
    /// ([`super::Acceptor::floor`]).
    pub kept: Instance,
    /// Its votes from `from` on.
    pub votes: Vec<Vote>,
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

    /// Whether the votes ascend, do not overlap, begin at `from` or behind, and are of no later round: a peer may say
    /// anything.
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

//! The acceptors of an engine that votes, and the list of those that are to vote, which is changed while it runs.

use std::fmt;

use rota_core::contract::{NodeId, Time};
use rota_net::realtime_nanos;
use rota_paxos::uring::acceptor_list::Unfit;

use crate::engine::NodeEngine;

/// Who votes, and who is to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Voters {
    /// The number of the newest list; 0 if none was made, and the acceptors are those of the configuration.
    pub number: u64,
    /// The nodes that are to vote, ascending.
    pub listed: Vec<NodeId>,
    /// The nodes that do, ascending.
    pub voting: Vec<NodeId>,
}

/// A change of the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VoterChange {
    /// This node is to vote, too.
    Add(NodeId),
    /// This node is not to vote any more.
    Remove(NodeId),
    /// The second node is to vote in place of the first.
    Replace(NodeId, NodeId),
}

/// Why a change is not ordered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum VoterError {
    /// The engine has no acceptors.
    NoVotes,
    /// There is no configuration yet.
    NotFounded,
    /// This node is to vote already.
    Listed(NodeId),
    /// This node is not to vote.
    NotListed(NodeId),
    /// The engine refuses the list.
    Unfit(Unfit),
}

impl fmt::Display for VoterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoVotes => f.write_str("this engine has no acceptors: no node of it votes"),
            Self::NotFounded => f.write_str(
                "the ring is not founded yet: its acceptors are those of the configuration",
            ),
            Self::Listed(node) => write!(f, "node {node} is to vote already"),
            Self::NotListed(node) => write!(f, "node {node} is not to vote anyway"),
            Self::Unfit(Unfit::Away(nodes)) => {
                let unfit = Unfit::Away(nodes.clone());
                write!(
                    f,
                    "{unfit}: bring them back, or say --force if they will be back"
                )
            }
            Self::Unfit(unfit) => unfit.fmt(f),
        }
    }
}

impl std::error::Error for VoterError {}

impl VoterChange {
    /// The nodes that are to vote after this change of those that are.
    fn apply(self, mut nodes: Vec<NodeId>) -> Result<Vec<NodeId>, VoterError> {
        let (comes, goes) = match self {
            Self::Add(node) => (Some(node), None),
            Self::Remove(node) => (None, Some(node)),
            Self::Replace(old, new) => (Some(new), Some(old)),
        };
        if let Some(node) = goes {
            let at = nodes.iter().position(|listed| *listed == node);
            nodes.remove(at.ok_or(VoterError::NotListed(node))?);
        }
        if let Some(node) = comes {
            if nodes.contains(&node) || goes == Some(node) {
                return Err(VoterError::Listed(node));
            }
            nodes.push(node);
        }
        nodes.sort_unstable();
        Ok(nodes)
    }
}

impl NodeEngine {
    /// Who votes, and who is to, as far as this node knows; `None` where the engine has no acceptors, or is one of
    /// several rings, whose loop has commands ordered.
    pub fn voters(&self) -> Option<Voters> {
        let Self::URing(engine) = self else {
            return None;
        };
        let list = engine.accounts().acceptor_list();
        let mut voting = engine.acceptors();
        voting.sort_unstable();
        let listed = match list.is_none() {
            true => voting.clone(),
            false => list.nodes().iter().copied().collect(),
        };
        Some(Voters {
            number: list.number(),
            listed,
            voting,
        })
    }

    /// Has the next list of those that are to vote ordered. Returns its number and its nodes: it counts when
    /// [`Self::voters`] has that number, with these nodes unless another list came first. `forced`: though no majority of
    /// them is there now.
    ///
    /// # Errors
    /// [`VoterError`].
    pub fn change_voters(
        &mut self,
        now: Time,
        change: VoterChange,
        forced: bool,
    ) -> Result<(u64, Vec<NodeId>), VoterError> {
        let voters = self.voters().ok_or(VoterError::NoVotes)?;
        if voters.voting.is_empty() {
            return Err(VoterError::NotFounded);
        }
        let nodes = change.apply(voters.listed)?;
        let Self::URing(engine) = self else {
            return Err(VoterError::NoVotes);
        };
        let command = engine.next_list(&nodes, voters.number, forced);
        let command = command.map_err(VoterError::Unfit)?;
        match engine.order_account(now, (&command, realtime_nanos())) {
            true => Ok((voters.number + 1, nodes)),
            false => Err(VoterError::Unfit(Unfit::Busy)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(numbers: &[u16]) -> Vec<NodeId> {
        let ids = numbers.iter().filter_map(|number| NodeId::new(*number));
        ids.collect()
    }

    #[test]
    fn changes_of_a_list() {
        let [one, two, three, four] = ids(&[1, 2, 3, 4])[..] else {
            panic!("four");
        };
        for (change, nodes) in [
            (VoterChange::Add(four), Ok(ids(&[1, 2, 3, 4]))),
            (VoterChange::Add(two), Err(VoterError::Listed(two))),
            (VoterChange::Remove(one), Ok(ids(&[2, 3]))),
            (VoterChange::Remove(four), Err(VoterError::NotListed(four))),
            (VoterChange::Replace(one, four), Ok(ids(&[2, 3, 4]))),
            (VoterChange::Replace(one, two), Err(VoterError::Listed(two))),
            (
                VoterChange::Replace(three, three),
                Err(VoterError::Listed(three)),
            ),
            (
                VoterChange::Replace(four, one),
                Err(VoterError::NotListed(four)),
            ),
        ] {
            assert_eq!(change.apply(ids(&[1, 2, 3])), nodes, "{change:?}");
        }
    }
}

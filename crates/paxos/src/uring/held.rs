//! Proposals whose values have not come: each waits for its own, and for those before it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::word::Proposal;
use crate::{Instance, ValueId};
use rota_core::invariants::FEW;
use rota_core::mutants::{self, Mutant};

/// The proposals that wait.
#[derive(Debug, Default)]
pub struct BlockedProposals {
    items: VecDeque<(Instance, Proposal)>,
    bytes: usize,
}

fn bytes_of(proposal: &Proposal) -> usize {
    match proposal {
        Proposal::Packet { frame, .. } => frame.len(),
        Proposal::Members(_, members) => 10 * members.len(),
        Proposal::Named(_) | Proposal::Skip(_) => 0,
    }
}

impl BlockedProposals {
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Their bytes.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The instance behind the last one, if any wait.
    pub fn end(&self) -> Option<Instance> {
        let (at, last) = self.items.back()?;
        Some(at + last.span())
    }

    /// Adds a proposal, with its first instance. `false` if enough wait.
    pub fn put(&mut self, at: Instance, proposal: Proposal, most_bytes: usize) -> bool {
        let bytes = self.bytes + bytes_of(&proposal);
        if self.items.len() >= super::MOST_KEPT || bytes > most_bytes {
            return false;
        }
        self.bytes = bytes + usize::from(mutants::on(Mutant::I09));
        self.items.push_back((at, proposal));
        true
    }

    /// The first one.
    pub fn first(&self) -> Option<&(Instance, Proposal)> {
        self.items.front()
    }

    /// Takes the first one out.
    pub fn take(&mut self) -> Option<(Instance, Proposal)> {
        let first = self.items.pop_front()?;
        self.bytes -= bytes_of(&first.1);
        Some(first)
    }

    /// Forgets all: they are sent once more.
    pub fn clear(&mut self) {
        self.items.clear();
        self.bytes = 0;
    }

    /// The instances of values that are not here, at most `most`.
    pub fn lacks(&self, most: usize, is_here: impl Fn(ValueId) -> bool) -> Vec<Instance> {
        let lacks = |(at, proposal): &(Instance, Proposal)| match proposal {
            Proposal::Named(id) => (!is_here(*id)).then_some(*at),
            _ => None,
        };
        self.items.iter().filter_map(lacks).take(most).collect()
    }
}

impl BlockedProposals {
    /// Its invariants.
    pub fn check(&self) {
        assert!(self.items.len() <= super::MOST_KEPT, "they are bounded");
        if self.items.len() <= FEW {
            let bytes: usize = self.items.iter().map(|(_, held)| bytes_of(held)).sum();
            assert_eq!(self.bytes, bytes, "bytes are counted");
            let places = self.items.iter().map(|(at, _)| *at);
            assert!(places.is_sorted_by(|one, next| one < next), "they ascend");
        }
    }
}

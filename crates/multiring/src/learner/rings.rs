//! The rings of a learner's process: room for what they tell, and rings that are founded while the learner runs.
//!
//! A process hears of a new ring in the control ring, and of its partition's subscription to that in another ring: at
//! its own pace in each. So it may be told first that the partition has a ring of which it knows nothing. Then it goes
//! on up to where the ring begins for the partition, and waits there until it is on the ring.

use alloc::collections::BTreeSet;

use super::changes::Changes;
use super::{RingsDelivery, RingsLearner};
use crate::feed::Announced;
use crate::mutants::{self, Mutant};
use crate::order::{Constants, Rank};

/// The rings on which a process may be later.
#[derive(Debug, Default)]
pub(super) struct Founding {
    /// It hears of rings that are founded.
    hears: bool,
    /// The rings that there are, and on which it is not.
    absent: BTreeSet<Rank>,
    /// The rings that it only observes.
    observed: BTreeSet<Rank>,
}

impl Changes {
    /// Whether this process never delivers a ring with these constants.
    pub(super) fn is_unreachable(&self, of: &Constants) -> bool {
        let Founding {
            hears,
            absent,
            observed,
        } = &self.founding;
        match self.known.get(&of.rank) {
            Some(known) => known != of || observed.contains(&of.rank),
            None => !hears || absent.contains(&of.rank) || mutants::on(Mutant::A41),
        }
    }
}

impl RingsLearner {
    /// The bytes of a ring's messages that wait for other rings.
    pub fn waiting_bytes(&self, rank: Rank) -> usize {
        self.merge.waiting_bytes(rank)
    }

    /// Whether the ring may hand out more: its engine keeps the rest, and throttles nobody.
    pub fn has_room(&self, rank: Rank) -> bool {
        self.merge.has_room(rank)
    }

    /// The same learner of a partition, in a process that hears of rings that are founded while it runs. `absent`: the
    /// rings of its configuration on which it is not.
    #[must_use]
    pub fn hears_of_rings(mut self, absent: impl IntoIterator<Item = Rank>) -> Self {
        if let Some(changes) = &mut self.changes {
            changes.founding.hears = true;
            changes.founding.absent = absent.into_iter().collect();
        }
        self
    }

    /// The same learner of a partition, in a process that only observes these rings, and so can order none of its marks
    /// there: its partition may not subscribe to them.
    #[must_use]
    pub fn observes(mut self, rings: impl IntoIterator<Item = Rank>) -> Self {
        if let Some(changes) = &mut self.changes {
            changes.founding.observed = rings.into_iter().collect();
        }
        self
    }

    /// This process is on a ring that was founded: whatever comes of that comes from now on. Returns what the application
    /// is told, if that is the end.
    pub fn on_founded(&mut self, of: Constants) -> Option<RingsDelivery> {
        // What was needed of the ring was said to nobody.
        self.asked.remove(&of.rank);
        self.is_changed = true;
        self.changes.as_mut()?.known.insert(of.rank, of);
        let is_other = |other: &Constants| other.rank == of.rank && *other != of;
        let is_other = self.merge.rings().any(is_other);
        let end = is_other.then(|| self.end(RingsDelivery::Unreachable(of.rank)));
        end.flatten()
    }

    /// A ring was founded, and this process is not on it. Returns what the application is told, if that is the end: the
    /// partition has the ring.
    pub fn on_absent(&mut self, rank: Rank) -> Option<RingsDelivery> {
        let changes = self.changes.as_mut()?;
        changes.founding.absent.insert(rank);
        let end = self
            .has(rank)
            .then(|| self.end(RingsDelivery::Unreachable(rank)));
        end.flatten()
    }

    /// A ring turns out to have been founded anew, after what this process knows of it was kept. Returns what the
    /// application is told.
    pub fn on_refounded(&mut self, rank: Rank) -> Option<RingsDelivery> {
        self.end(RingsDelivery::Refounded(rank))
    }

    /// A ring that this process coordinates has proposed values: returns what another ring that it coordinates is told
    /// of that, so that it skips up to there while they are decided.
    pub fn announces(&self, from: Rank, announced: Announced, to: Rank) -> Option<Announced> {
        if from == to || !self.has(from) || !self.has(to) {
            return None;
        }
        // A ring that stands behind the other one in a round is not waited for in that round.
        let round = match to < from {
            true => Some(announced.round),
            false => announced.round.checked_sub(1),
        };
        Some(Announced {
            round: round?,
            ..announced
        })
    }

    /// Whether this process is on all rings that it delivers. A learner of no partition is from the beginning.
    pub(super) fn is_on_its_rings(&self) -> bool {
        let changes = self.changes.as_ref();
        changes.is_none_or(|changes| {
            let mut rings = self.merge.rings();
            rings.all(|of| changes.known.contains_key(&of.rank))
        })
    }
}

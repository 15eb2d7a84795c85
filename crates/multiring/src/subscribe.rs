//! Subscriptions: the rings that a partition subscribes to, each from a round on.
//!
//! All of it follows from ordered commands: replicas of a partition that are at one point agree on it. A change is
//! ordered in a ring that the partition has, and takes effect at the beginning of a later round. Changes form one
//! sequence: a change that is ordered while another one is pending is void, and its proposer is told.
//!
//! Before a partition subscribes to a ring a *hold* is ordered in that ring: each replica keeps what it hears of the ring
//! from there on, so that whichever is ahead has what it needs when the subscription begins. A hold serves once: holds
//! that were ordered in rounds in which the partition had the ring serve nobody, as no replica keeps anything for them.

use alloc::collections::{BTreeMap, BTreeSet};

use crate::mutants::{self, Mutant};
use crate::order::{Constants, Instance, Place, Rank, Round};

/// A hold: the replicas of a partition keep what they hear of a ring from this instance on, until the partition
/// subscribes or lets go. Its name is the instance in which it was ordered: a later hold of the same partition on the
/// same ring is another one. Where the partition has states it is the hold of its account there as well, which has the
/// same name ([`crate::accounts`]): what the *ring* keeps is released by that.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Hold {
    /// The ring that keeps it.
    pub rank: Rank,
    /// The instance in which it was ordered there.
    pub instance: Instance,
}

/// A change that has been ordered and is to take effect.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Change {
    /// The kind of a change.
    pub what: What,
    /// The round at whose beginning it takes effect.
    pub effective: Round,
}

/// The kind of a change.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum What {
    /// The partition subscribes to a ring; it was held for that.
    Subscribe(Constants, Hold),
    /// The partition leaves a ring.
    Leave(Constants),
}

/// The reason why a change does not take effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Void {
    /// Another change is pending: this one is to be proposed again behind it.
    Pending(Change),
    /// The partition has that ring.
    HasIt,
    /// The partition does not have that ring.
    HasNot,
    /// The partition would be left with no ring.
    LastRing,
    /// The hold was let go before, or is on another ring.
    NotHeld,
}

/// The subscriptions of one partition, as of a point: a part of each checkpoint.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Subscriptions {
    rings: BTreeSet<Rank>,
    pending: Option<Change>,
    /// By ring: holds up to this one serve nobody any more. They were let go, or were ordered before the partition left
    /// the ring.
    spent: BTreeMap<Rank, Instance>,
}

impl Subscriptions {
    /// The subscriptions of a partition that begins with these rings.
    pub fn new(rings: impl IntoIterator<Item = Rank>) -> Self {
        Self {
            rings: rings.into_iter().collect(),
            pending: None,
            spent: BTreeMap::new(),
        }
    }

    /// The same, and holds that serve nobody any more ([`Self::spent`]): the subscriptions at a point at which no change
    /// was pending.
    pub fn with_spent(self, spent: impl IntoIterator<Item = (Rank, Instance)>) -> Self {
        let spent = spent.into_iter().collect();
        Self { spent, ..self }
    }

    /// The rings it has now.
    pub fn rings(&self) -> impl Iterator<Item = Rank> {
        self.rings.iter().copied()
    }

    /// Whether it has a ring now.
    pub fn has(&self, rank: Rank) -> bool {
        self.rings.contains(&rank)
    }

    /// By ring: the last hold that serves nobody any more.
    pub fn spent(&self) -> impl Iterator<Item = (Rank, Instance)> {
        let spent = self.spent.iter().filter(|_| !mutants::on(Mutant::A35));
        spent.map(|(rank, instance)| (*rank, *instance))
    }

    /// Whether a hold may serve a subscription that is ordered later.
    pub fn may_serve(&self, hold: Hold) -> bool {
        !self.is_spent(hold)
    }

    /// Whether the ring of a hold need not keep anything for it any more: it was let go, or the partition has left the
    /// ring since. No subscription by it, however late, takes effect then. The states of a majority have to be behind
    /// that as well.
    pub fn may_release(&self, hold: Hold) -> bool {
        let is_needed = self.has(hold.rank) || !self.is_spent(hold);
        !is_needed || mutants::on(Mutant::A39)
    }

    /// The change that has been ordered and is not in effect.
    pub const fn pending(&self) -> Option<&Change> {
        self.pending.as_ref()
    }

    /// A round begins, or something of it is delivered: a change that is in effect from there on is done. Returns that
    /// change.
    pub fn reach(&mut self, round: Round) -> Option<Change> {
        let change = self.pending.take_if(|change| change.effective <= round)?;
        match change.what {
            What::Subscribe(of, _) => {
                self.rings.insert(of.rank);
            }
            What::Leave(of) => {
                self.rings.remove(&of.rank);
                // Until now the replicas have kept nothing of the ring beside what they delivered.
                self.spend(Hold {
                    rank: of.rank,
                    instance: of.first_of(change.effective) - 1,
                });
            }
        }
        Some(change)
    }

    /// The partition subscribes to a ring that was held in round `held`, as was ordered at `at`, in a ring of the
    /// partition.
    ///
    /// # Errors
    /// [`Void`]: the reason why nothing changes.
    pub fn subscribe(
        &mut self,
        at: Place,
        of: Constants,
        (hold, held): (Hold, Round),
    ) -> Result<Change, Void> {
        self.is_free(at)?;
        if self.has(of.rank) {
            return Err(Void::HasIt);
        }
        if self.is_spent(hold) || hold.rank != of.rank {
            return Err(Void::NotHeld);
        }
        // With more than one instance in a round, earlier ones of the round in which it was held may be trimmed already.
        let effective = (at.round + 1).max(held + 1).max(of.origin);
        let effective = match mutants::on(Mutant::A13) {
            true => at.round,
            false => effective,
        };
        Ok(self.wait_for(What::Subscribe(of, hold), effective))
    }

    /// The partition leaves a ring, as was ordered at `at`.
    ///
    /// # Errors
    /// [`Void`].
    pub fn leave(&mut self, at: Place, of: Constants) -> Result<Change, Void> {
        self.is_free(at)?;
        if !self.has(of.rank) {
            return Err(Void::HasNot);
        }
        if self.rings.len() == 1 {
            return Err(Void::LastRing);
        }
        Ok(self.wait_for(What::Leave(of), at.round + 1))
    }

    /// A hold is let go, as was ordered at `at`: a subscription that names it is void from here on. Returns whether the
    /// hold may be released now: not if the partition has the ring, or is about to subscribe by it.
    pub fn cancel(&mut self, at: Place, hold: Hold) -> bool {
        self.reach(at.round);
        let is_pending = matches!(&self.pending, Some(Change { what: What::Subscribe(_, of), .. }) if *of == hold);
        if is_pending || self.has(hold.rank) {
            return false;
        }
        self.spend(hold);
        true
    }

    fn spend(&mut self, hold: Hold) {
        let spent = self.spent.entry(hold.rank).or_insert(0);
        *spent = hold.instance.max(*spent);
    }

    fn is_spent(&self, hold: Hold) -> bool {
        let spent = self.spent.get(&hold.rank).copied().unwrap_or(0);
        hold.instance <= spent && !mutants::on(Mutant::A14)
    }

    fn is_free(&mut self, at: Place) -> Result<(), Void> {
        self.reach(at.round);
        match self.pending {
            Some(pending) if !mutants::on(Mutant::A26) => Err(Void::Pending(pending)),
            _ => Ok(()),
        }
    }

    const fn wait_for(&mut self, what: What, effective: Round) -> Change {
        let change = Change { what, effective };
        self.pending = Some(change);
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(round: Round) -> Place {
        let (rank, instance, index) = (Rank(1), round + 1, 0);
        Place {
            round,
            rank,
            instance,
            index,
        }
    }

    fn hold(rank: u16, instance: Instance) -> Hold {
        let rank = Rank(rank);
        Hold { rank, instance }
    }

    fn two() -> Subscriptions {
        Subscriptions::new([Rank(1), Rank(2)])
    }

    #[test]
    fn a_subscription_begins_behind_its_order_its_hold_and_its_rings_origin() {
        for (place, held, origin, effective) in [(9, 3, 0, 10), (9, 30, 0, 31), (9, 3, 70, 70)] {
            let of = Constants {
                origin,
                ..Constants::new(Rank(7))
            };
            let change = two().subscribe(at(place), of, (hold(7, held + 1), held));
            assert_eq!(change.map(|change| change.effective), Ok(effective));
        }
    }

    #[test]
    fn what_is_ordered_while_another_change_is_pending_is_void() {
        let mut of = two();
        let change = of.subscribe(at(5), Constants::new(Rank(3)), (hold(3, 21), 20));
        let change = change.expect("it is free");
        assert_eq!(
            of.leave(at(20), Constants::new(Rank(1))),
            Err(Void::Pending(change))
        );
        assert_eq!(of.rings().count(), 2);
        let left = of
            .leave(at(21), Constants::new(Rank(1)))
            .expect("the first is in effect");
        assert_eq!((left.effective, of.rings().count()), (22, 3));
        assert_eq!(of.reach(22), Some(left));
        let ranks: alloc::vec::Vec<_> = of.rings().map(|rank| rank.0).collect();
        assert_eq!(ranks, [2, 3]);
    }

    #[test]
    fn nobody_leaves_the_last_ring() {
        let mut of = Subscriptions::new([Rank(1)]);
        assert_eq!(
            of.leave(at(1), Constants::new(Rank(1))),
            Err(Void::LastRing)
        );
        assert_eq!(of.leave(at(1), Constants::new(Rank(4))), Err(Void::HasNot));
        assert_eq!(
            of.subscribe(at(1), Constants::new(Rank(1)), (hold(1, 1), 0)),
            Err(Void::HasIt)
        );
    }

    /// A subscription that was repeated comes late: the ring keeps nothing for it any more.
    #[test]
    fn a_hold_that_was_used_serves_nobody_again() {
        let mut of = two();
        let (ring, hold) = (Constants::new(Rank(3)), hold(3, 4));
        of.subscribe(at(1), ring, (hold, 3)).expect("it is held");
        of.leave(at(9), ring).expect("it has it");
        assert_eq!(of.reach(10).map(|change| change.effective), Some(10));
        assert_eq!(of.subscribe(at(11), ring, (hold, 3)), Err(Void::NotHeld));
    }

    /// Replicas that have not left yet keep nothing for it, but deliver what they hear.
    #[test]
    fn a_hold_that_was_ordered_before_its_ring_was_left_serves_nobody() {
        let mut of = two();
        let second = Constants::new(Rank(2));
        of.leave(at(9), second).expect("it has it");
        let void = of.subscribe(at(11), second, (hold(2, 10), 9));
        assert_eq!(void, Err(Void::NotHeld));
        let change = of.subscribe(at(11), second, (hold(2, 11), 10));
        assert_eq!(change.map(|change| change.effective), Ok(12));
    }

    #[test]
    fn a_hold_that_was_let_go_serves_nobody() {
        let mut of = two();
        let (ring, first, second) = (Constants::new(Rank(3)), hold(3, 4), hold(3, 9));
        assert!(of.cancel(at(1), first));
        assert_eq!(of.subscribe(at(2), ring, (first, 3)), Err(Void::NotHeld));
        assert_eq!(
            of.subscribe(at(2), ring, (hold(4, 9), 8)),
            Err(Void::NotHeld)
        );
        of.subscribe(at(2), ring, (second, 8))
            .expect("another hold");
        assert!(!of.cancel(at(3), second), "it is about to be used");
        of.reach(9);
        assert!(!of.cancel(at(9), second), "it is used");
    }
}

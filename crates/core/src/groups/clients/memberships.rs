//! The numbers of groups that clients want to be in.

use alloc::collections::BTreeMap;

use crate::groups::limits::{Limits, Owner};

/// The counts of all clients of this daemon.
#[derive(Debug, Default)]
pub(super) struct Memberships {
    all: usize,
    /// The counts of owners that have any.
    by_owner: BTreeMap<Owner, usize>,
}

impl Memberships {
    pub fn add(&mut self, owner: Option<Owner>) {
        self.all += 1;
        if let Some(owner) = owner {
            *self.by_owner.entry(owner).or_default() += 1;
        }
    }

    pub fn remove(&mut self, owner: Option<Owner>, count: usize) {
        self.all -= count;
        let Some(owner) = owner else { return };
        if let Some(all) = self.by_owner.get_mut(&owner) {
            *all -= count;
            if *all == 0 {
                self.by_owner.remove(&owner);
            }
        }
    }

    /// Whether a client of this owner that is in `groups` groups may be in one more.
    pub fn have_room(&self, limits: &Limits, owner: Option<Owner>, groups: usize) -> bool {
        groups < limits.client_memberships
            && self.of(owner) < limits.owner_memberships
            && self.all < limits.memberships
    }

    /// The number of memberships of all clients.
    pub const fn all(&self) -> usize {
        self.all
    }

    /// Their invariants.
    pub fn check(&self) {
        assert!(
            self.by_owner.values().sum::<usize>() <= self.all,
            "memberships of owners are memberships"
        );
    }

    fn of(&self, owner: Option<Owner>) -> usize {
        let count = owner.and_then(|owner| self.by_owner.get(&owner));
        count.copied().unwrap_or(0)
    }
}

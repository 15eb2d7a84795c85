//! The numbers of groups that clients want to be in.

use alloc::collections::BTreeMap;

use super::Clients;
use crate::groups::event::Connection;
use crate::groups::limits::Owner;

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

    fn of(&self, owner: Option<Owner>) -> usize {
        let count = owner.and_then(|owner| self.by_owner.get(&owner));
        count.copied().unwrap_or(0)
    }
}

impl Clients {
    /// Whether the client may be in one more group.
    pub(super) fn may_join(&self, connection: Connection) -> bool {
        let limits = &self.limits;
        let client = self.connected.get(&connection);
        client.is_some_and(|client| {
            client.wants.len() < limits.client_memberships
                && self.memberships.of(client.owner) < limits.owner_memberships
                && self.memberships.all < limits.memberships
        })
    }
}

//! The bytes that are kept for all clients together, and for those of one owner.

use std::collections::HashMap;

use rota_core::groups::Owner;

/// One owner may have at most the limit of the sum, divided by this.
pub(super) const SHARES: u64 = 4;

/// Bytes that wait for clients, or of them for the rest of a request.
#[derive(Debug, Default)]
pub(super) struct Sums {
    all: u64,
    /// Owners without such bytes have no entry.
    by_owner: HashMap<Owner, u64>,
}

/// The clients that are looked at when there is too much: those of one owner, or all.
pub(super) type Whose = Option<Owner>;

impl Sums {
    /// Replaces the bytes that are kept for a client of this owner.
    pub fn change(&mut self, owner: Option<Owner>, before: usize, now: usize) {
        self.all = self.all + now as u64 - before as u64;
        let Some(owner) = owner.filter(|_| before != now) else {
            return;
        };
        let its = self.by_owner.entry(owner).or_default();
        *its = *its + now as u64 - before as u64;
        if *its == 0 {
            self.by_owner.remove(&owner);
        }
    }

    /// Whether it is too much for this owner, or for all.
    pub fn is_too_much(&self, owner: Option<Owner>, most: u64) -> Option<Whose> {
        let its = owner.and_then(|owner| self.by_owner.get(&owner));
        if its.is_some_and(|its| *its > most / SHARES) {
            return Some(owner);
        }
        (self.all > most).then_some(None)
    }

    /// No owner has more than there is, and none is kept without need.
    pub fn check(&self) {
        debug_assert!(self.by_owner.values().all(|its| *its > 0));
        debug_assert!(self.by_owner.values().sum::<u64>() <= self.all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: Option<Owner> = Some(Owner::User(7));
    const BEN: Option<Owner> = Some(Owner::User(8));

    #[test]
    fn an_owner_may_have_a_quarter_and_all_together_all() {
        let mut sums = Sums::default();
        sums.change(ANN, 0, 25);
        assert_eq!(sums.is_too_much(ANN, 100), None);
        sums.change(ANN, 0, 1);
        assert_eq!(sums.is_too_much(ANN, 100), Some(ANN));
        assert_eq!(sums.is_too_much(BEN, 100), None);
        sums.change(None, 0, 74);
        assert_eq!(
            sums.is_too_much(None, 100),
            None,
            "nobody bounds whoever runs it"
        );
        sums.change(BEN, 0, 1);
        assert_eq!(sums.is_too_much(BEN, 100), Some(None));
        sums.change(ANN, 25, 0);
        sums.change(ANN, 1, 0);
        sums.change(BEN, 1, 0);
        assert_eq!((sums.all, sums.by_owner.len()), (74, 0));
    }
}

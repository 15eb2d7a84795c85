//! The bytes that are kept for all clients together, and for those of one owner.

use std::collections::HashMap;

use rota_core::groups::Owner;

use super::Hub;

/// One owner may have at most the limit of the sum, divided by this.
const SHARES: u64 = 4;

/// Bytes that wait for clients, or of them for the rest of a request.
#[derive(Debug, Default)]
pub(super) struct Sums {
    all: u64,
    /// Owners without such bytes have no entry.
    by_owner: HashMap<Owner, u64>,
}

/// The clients that are looked at when there is too much: those of one owner, or all.
type Whose = Option<Owner>;

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
    fn is_too_much(&self, owner: Option<Owner>, most: u64) -> Option<Whose> {
        let its = owner.and_then(|owner| self.by_owner.get(&owner));
        if its.is_some_and(|its| *its > most / SHARES) {
            return Some(owner);
        }
        (self.all > most).then_some(None)
    }
}

impl Hub {
    /// Counts the bytes that are kept for a client. If the sum is too large, the client that has most of it has to do
    /// with less.
    pub(super) fn count_kept(&mut self, key: usize) {
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        let owner = session.guest.owner;
        let now = session.kept();
        let before = std::mem::replace(&mut session.counted, now);
        self.sums.change(owner, before, now);
        if now <= before {
            return;
        }
        // The largest messages of two clients always fit.
        let least = 2 * SHARES * self.config.client_queue_bytes as u64;
        let most = self.config.queues_bytes.max(least);
        while let Some(whose) = self.sums.is_too_much(owner, most) {
            if !self.cut_largest(whose) {
                return;
            }
        }
    }

    /// The client for which most is kept, of those of an owner or of all, is made to skip, or is disconnected.
    fn cut_largest(&mut self, whose: Whose) -> bool {
        let all = self.sessions.iter();
        let its = all.filter(|(_, session)| whose.is_none() || session.guest.owner == whose);
        let largest = its.max_by_key(|(_, session)| session.counted);
        let Some((key, before)) = largest.map(|(key, session)| (key, session.counted)) else {
            return false;
        };
        let why = match whose {
            Some(Owner::User(_)) => "too much waits for all clients of its user together",
            Some(_) => "too much waits for all clients of its address together",
            None => "too much waits for all clients together",
        };
        self.too_slow(key, why);
        let Some(session) = self.sessions.get_mut(key) else {
            return true;
        };
        let now = session.kept();
        session.counted = now;
        let owner = session.guest.owner;
        self.sums.change(owner, before, now);
        if now > before / 2 {
            // The client was disconnected, or the skip did not help.
            self.end(key, why);
        }
        before > 0
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

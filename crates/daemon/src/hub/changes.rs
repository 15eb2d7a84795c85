//! The rate at which clients change groups. A change of a large group is told to all of its members, which takes the
//! more of the daemon's time the more there are, and messages that are ordered behind many changes are told behind
//! them. So a request to join or leave enters the order when the changes before it have been told, and telling has had
//! its share of the time.

use std::collections::BTreeMap;

use rota_core::contract::Time;
use rota_core::groups::GroupName;

use super::budget::Budget;

/// The bytes of changes that may be told in a second: about a quarter of the time.
const EACH_SECOND: u64 = 256 << 20;

/// The bytes of changes that may be told at once.
const AT_ONCE: u64 = 2 << 20;

/// Changes of one group that may be under way, where they cost little.
const UNDER_WAY: u64 = 64;

/// A change that was not told after this time had no client here to be told to.
const UNTOLD_NANOS: u64 = 50_000_000;

/// Groups of which a change costs less are not kept.
const LITTLE: u64 = 64 << 10;

/// Groups that are kept without a look at which are over, and sessions that have their turn again in one go.
const KEPT: usize = 64;
pub(super) const TURNS: usize = 64;

/// The cost of changes, and the changes that are under way.
#[derive(Debug)]
pub(super) struct Changes {
    /// The budget, in bytes that were told.
    budget: Budget,
    groups: BTreeMap<GroupName, Flow>,
    /// The time at which the waiting sessions have their turn again, unless something is told before: each turn may
    /// find that it has to wait.
    look_at: Time,
    /// The time of the next look for groups that are over.
    forget_at: Time,
}

impl Default for Changes {
    fn default() -> Self {
        Self {
            budget: Budget::new(EACH_SECOND, AT_ONCE),
            groups: BTreeMap::new(),
            look_at: Time(0),
            forget_at: Time(0),
        }
    }
}

/// Changes of one group.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    /// The cost of the last change, in bytes for all clients that were told.
    cost: u64,
    under_way: u64,
    /// The time of the last change of `under_way`.
    since: Time,
}

impl Flow {
    /// The number of changes under way, of those that some client here is told of.
    fn under_way(&self, now: Time) -> u64 {
        match now.since(self.since) >= UNTOLD_NANOS {
            true => 0,
            false => self.under_way,
        }
    }
}

impl Changes {
    /// Whether one more change of a group may enter the order.
    pub fn may_begin(&mut self, group: GroupName, now: Time) -> bool {
        self.budget.pass(now);
        let has_room = |flow: &Flow| {
            let most = (AT_ONCE / flow.cost.max(1)).clamp(1, UNDER_WAY);
            flow.under_way(now) < most
        };
        self.budget.has_room() && self.groups.get(&group).is_none_or(has_room)
    }

    /// Notes that one more change of a group has entered the order.
    pub fn begin(&mut self, group: GroupName, now: Time) {
        let flow = self.groups.entry(group).or_default();
        flow.under_way = flow.under_way(now) + 1;
        flow.since = now;
    }

    /// Notes that a change of a group was told, with the bytes for all clients.
    pub fn told(&mut self, group: GroupName, cost: u64) {
        self.budget.charge(cost);
        self.look_at = Time(0);
        let flow = self.groups.entry(group).or_default();
        flow.cost = cost;
        flow.under_way = flow.under_way.saturating_sub(1);
        flow.since = self.budget.at();
        if cost < LITTLE && flow.under_way == 0 {
            self.groups.remove(&group);
        }
    }

    /// Time has passed.
    pub fn pass(&mut self, now: Time) {
        self.budget.pass(now);
        self.forget(now);
    }

    /// Whether some of the sessions that wait have their turn; others have it later.
    pub fn look(&mut self, now: Time) -> bool {
        let may = self.budget.has_room() && now >= self.look_at;
        if may {
            self.look_at = now.after(UNTOLD_NANOS / 10);
        }
        may
    }

    /// Forgets changes that were begun and not told in time, also while clients wait.
    fn forget(&mut self, now: Time) {
        if self.groups.len() > KEPT && now >= self.forget_at {
            self.forget_at = now.after(UNTOLD_NANOS);
            self.groups
                .retain(|_, flow| now.since(flow.since) < UNTOLD_NANOS);
        }
    }

    /// The time of the next turn of waiting sessions.
    pub fn wake(&self) -> Time {
        let paid = self.budget.wait_nanos();
        let wake = self.budget.at().after(1 + paid.max(UNTOLD_NANOS / 10));
        wake.max(self.look_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: u64 = 1_000_000;

    fn group(name: &str) -> GroupName {
        GroupName::new(name).expect("a name")
    }

    /// Lets one more change enter the order, if it may.
    fn begins(changes: &mut Changes, group: GroupName, now: Time) -> bool {
        let may = changes.may_begin(group, now);
        if may {
            changes.begin(group, now);
        }
        may
    }

    /// A client that changes nothing, or is refused, takes no other's place and no memory; nor does a client, for long,
    /// whose changes are told to no client here.
    #[test]
    fn what_does_not_enter_the_order_leaves_nothing() {
        let mut changes = Changes::default();
        let now = Time(1_000_000_000);
        changes.told(group("large"), 15 << 20);
        let later = now.after(200 * MILLI);
        for at in 0..1000 {
            changes.may_begin(group(&format!("g{at}")), later);
            changes.may_begin(group("large"), later);
        }
        assert_eq!(changes.groups.len(), 1);
        assert!(begins(&mut changes, group("large"), later));
        for at in 0..1000 {
            changes.begin(group(&format!("g{at}")), later);
        }
        changes.pass(later.after(UNTOLD_NANOS));
        assert!(changes.groups.is_empty());
    }

    #[test]
    fn changes_of_a_large_group_enter_one_by_one_and_take_their_share() {
        let mut changes = Changes::default();
        let (large, small) = (group("large"), group("small"));
        let mut now = Time(1_000_000_000);
        let cost = 15 << 20;
        changes.told(large, cost);
        let (mut begun, start) = (0, now);
        while now.since(start) < 1_000 * MILLI {
            now = now.after(MILLI);
            if begins(&mut changes, large, now) {
                begun += 1;
                changes.told(large, cost);
            }
        }
        let share = EACH_SECOND / cost;
        assert!((share - 2..=share + 1).contains(&begun), "{begun} {share}");
        now = now.after(100 * MILLI);
        assert!(begins(&mut changes, large, now));
        assert!(!begins(&mut changes, large, now), "one is under way");
        assert!(
            begins(&mut changes, small, now),
            "others need not wait for that"
        );
        now = now.after(UNTOLD_NANOS);
        assert!(
            begins(&mut changes, large, now),
            "it had nobody to be told to"
        );
    }

    #[test]
    fn small_groups_change_as_fast_as_the_ring_goes() {
        let mut changes = Changes::default();
        let now = Time(1_000_000_000);
        let begun = (0..100)
            .filter(|_| begins(&mut changes, group("g"), now))
            .count();
        assert_eq!(begun as u64, UNDER_WAY);
        for _ in 0..begun {
            changes.told(group("g"), 100);
        }
        assert!(changes.groups.is_empty());
        for at in 0..1000 {
            assert!(begins(&mut changes, group(&format!("g{at}")), now));
        }
    }
}

//! How fast clients change groups: a change of a large one is told to all of its members, which takes the more of the
//! daemon's time the more there are, and messages that are ordered behind many changes are told behind them. So a request
//! to join or leave enters the order when those before it have been told, and telling has had its share of the time.

use std::collections::{BTreeMap, VecDeque};

use rota_core::contract::Time;
use rota_core::groups::GroupName;

use super::Hub;

/// What may be told of changes in a second, in bytes: about a quarter of the time.
const EACH_SECOND: u64 = 256 << 20;

/// And at once.
const AT_ONCE: u64 = 2 << 20;

/// Changes of one group that may be under way, where they cost little.
const UNDER_WAY: u64 = 64;

/// A change that was not told after so long had nobody here to be told to.
const UNTOLD_NANOS: u64 = 50_000_000;

/// Groups of which a change costs less are not kept.
const LITTLE: u64 = 64 << 10;

/// What changes have cost, and which are under way.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Bytes that were told and have not been made up for yet.
    owed: u64,
    /// As of when.
    at: Time,
    groups: BTreeMap<GroupName, Flow>,
    /// Sessions whose clients want to change a group and have to wait, in that order.
    pub waiting: VecDeque<usize>,
}

/// Changes of one group.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    /// What the last one cost, in bytes for all who were told.
    cost: u64,
    under_way: u64,
    /// When that last changed.
    since: Time,
}

impl Changes {
    /// Time has passed.
    fn pass(&mut self, now: Time) {
        let made_up = u128::from(now.since(self.at)) * u128::from(EACH_SECOND) / 1_000_000_000;
        if made_up > 0 {
            let made_up = u64::try_from(made_up).unwrap_or(u64::MAX);
            self.owed = self.owed.saturating_sub(made_up);
            self.at = now;
        }
    }

    /// One more of a group enters the order, if it may.
    pub fn begin(&mut self, group: GroupName, now: Time) -> bool {
        self.pass(now);
        if self.owed >= AT_ONCE {
            return false;
        }
        let flow = self.groups.entry(group).or_default();
        if now.since(flow.since) >= UNTOLD_NANOS {
            flow.under_way = 0;
        }
        let most = (AT_ONCE / flow.cost.max(1)).clamp(1, UNDER_WAY);
        let may = flow.under_way < most;
        if may {
            flow.under_way += 1;
            flow.since = now;
        }
        may
    }

    /// One of a group was told, which took so many bytes for all.
    pub fn told(&mut self, group: GroupName, cost: u64) {
        self.owed += cost;
        let flow = self.groups.entry(group).or_default();
        flow.cost = cost;
        flow.under_way = flow.under_way.saturating_sub(1);
        flow.since = self.at;
        if cost < LITTLE && flow.under_way == 0 {
            self.groups.remove(&group);
        }
    }

    /// When those who wait are looked at again.
    fn wake(&self) -> Time {
        let more = (self.owed + 1).saturating_sub(AT_ONCE);
        let paid = more.saturating_mul(1_000_000_000) / EACH_SECOND;
        self.at.after(1 + paid.max(UNTOLD_NANOS / 10))
    }
}

impl Hub {
    /// When those who want to change groups have their turn again.
    pub(super) fn changes_wake(&self) -> Option<Time> {
        (!self.changes.waiting.is_empty()).then(|| self.changes.wake())
    }

    /// Some of those who wait have their turn.
    pub(super) fn go_on_changing(&mut self, now: Time) {
        self.changes.pass(now);
        if self.changes.waiting.is_empty() {
            // What was begun and never told is forgotten then.
            let flows = &mut self.changes.groups;
            if flows.len() as u64 > UNDER_WAY {
                flows.retain(|_, flow| now.since(flow.since) < UNTOLD_NANOS);
            }
            return;
        }
        if self.changes.owed >= AT_ONCE {
            return;
        }
        for _ in 0..self.changes.waiting.len().min(UNDER_WAY as usize) {
            if let Some(key) = self.changes.waiting.pop_front() {
                self.schedule(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: u64 = 1_000_000;

    fn group(name: &str) -> GroupName {
        GroupName::new(name).expect("a name")
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
            if changes.begin(large, now) {
                begun += 1;
                changes.told(large, cost);
            }
        }
        let share = EACH_SECOND / cost;
        assert!((share - 2..=share + 1).contains(&begun), "{begun} {share}");
        now = now.after(100 * MILLI);
        assert!(changes.begin(large, now));
        assert!(!changes.begin(large, now), "one is under way");
        assert!(changes.begin(small, now), "others need not wait for that");
        now = now.after(UNTOLD_NANOS);
        assert!(changes.begin(large, now), "it had nobody to be told to");
    }

    #[test]
    fn small_groups_change_as_fast_as_the_ring_goes() {
        let mut changes = Changes::default();
        let now = Time(1_000_000_000);
        let begun = (0..100).filter(|_| changes.begin(group("g"), now)).count();
        assert_eq!(begun as u64, UNDER_WAY);
        for _ in 0..begun {
            changes.told(group("g"), 100);
        }
        assert!(changes.groups.is_empty());
        for at in 0..1000 {
            assert!(changes.begin(group(&format!("g{at}")), now));
        }
    }
}

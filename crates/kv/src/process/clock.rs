//! The time that a process gives its commands: that of its own clock, but not later than any clock of another process.
//!
//! The order's time is the latest that any process has given, and never goes back. So one clock that is far ahead, once
//! and for a moment, would end keys early for good. Each process tells the others what its clock says, and whose clock is
//! ahead of all others takes the latest of those: a time counts when two processes have it.
//!
//! What this does not do: two clocks that are ahead alike are believed, a process that is the only one of the store
//! has nobody to ask, and where only two processes have spoken, and one's clock is behind, the other goes by that one.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rota_core::contract::NodeId;

use super::lock;

/// What each other process has said last, and when that came.
type Others = BTreeMap<NodeId, (u64, Instant)>;

/// The clock of a process, and what others have said of theirs.
#[derive(Debug)]
pub(super) struct Clock {
    /// There are other processes.
    has_others: bool,
    others: Mutex<Others>,
}

impl Clock {
    pub(super) fn new(has_others: bool) -> Self {
        Self {
            has_others,
            others: Mutex::default(),
        }
    }

    /// Takes in what another process's clock says.
    pub(super) fn hear(&self, node: NodeId, told: u64) {
        self.hear_at(node, (told, Instant::now()));
    }

    fn hear_at(&self, node: NodeId, told: (u64, Instant)) {
        lock(&self.others).insert(node, told);
    }

    /// Whether the time may be believed: another process has said what its clock says, if there is another one.
    pub(super) fn is_known(&self) -> bool {
        !self.has_others || !lock(&self.others).is_empty()
    }

    /// The time for a message whose time counts for all: 0, which lets none pass, while it may not be believed.
    pub(super) fn stamp(&self) -> u64 {
        let others = lock(&self.others);
        match self.has_others && others.is_empty() {
            true => 0,
            false => now(&others),
        }
    }

    /// The time: milliseconds of the Unix epoch.
    pub(super) fn now(&self) -> u64 {
        now(&lock(&self.others))
    }
}

fn now(others: &Others) -> u64 {
    at(others, (rota_front::now(), Instant::now()))
}

/// The time where the own clock says `own`. Since another process has spoken its clock has gone on, whatever became of
/// the own one.
fn at(others: &Others, (own, now): (u64, Instant)) -> u64 {
    let goes_on = |(told, since): &(u64, Instant)| {
        let passed: Duration = now.saturating_duration_since(*since);
        told.saturating_add(passed.as_millis() as u64)
    };
    let latest = others.values().map(goes_on).max();
    latest.map_or(own, |latest| own.min(latest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: u64 = 1_700_000_000_000;
    const YEAR: u64 = 365 * 24 * 3_600_000;
    const HOUR: Duration = Duration::from_hours(1);

    fn node(number: u16) -> NodeId {
        NodeId::new(number).expect("not 0")
    }

    #[test]
    fn a_clock_that_is_ahead_of_all_others_is_not_believed() {
        let (clock, now) = (Clock::new(true), Instant::now());
        assert!(!clock.is_known());
        assert_eq!(clock.stamp(), 0, "no time passes by who knows nobody");
        clock.hear_at(node(2), (NOON - 5, now));
        clock.hear_at(node(3), (NOON - 70, now));
        assert!(clock.is_known());
        let at = |own, later| at(&lock(&clock.others), (own, now + later));
        assert_eq!(at(NOON - 9, Duration::ZERO), NOON - 9);
        assert_eq!(at(NOON + YEAR, Duration::ZERO), NOON - 5);
        // Others go, and their clocks go on.
        let later = NOON - 5 + HOUR.as_millis() as u64;
        assert_eq!(at(NOON + YEAR, HOUR), later);
        // That of another one is ahead.
        clock.hear_at(node(3), (NOON + YEAR, now));
        assert_eq!(at(NOON, Duration::ZERO), NOON);
        // It was set right.
        clock.hear_at(node(3), (NOON - 70, now));
        assert_eq!(at(NOON + YEAR, Duration::ZERO), NOON - 5);
    }

    #[test]
    fn who_is_alone_believes_its_own_clock() {
        let clock = Clock::new(false);
        assert!(clock.is_known());
        assert_eq!(at(&lock(&clock.others), (NOON, Instant::now())), NOON);
    }
}

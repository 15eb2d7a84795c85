//! The times for which messages wait in the merge for other rings.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use rota_core::contract::Histogram;
use rota_multiring::Rank;

/// One message of a ring in so many is measured: a clock is not asked for each.
const EVERY: u64 = 16;

/// The messages of a ring that wait for other rings.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MergeWait {
    /// The bytes that wait now.
    pub waiting_bytes: usize,
    /// The times for which messages have waited: of one message in sixteen.
    pub times: Histogram,
}

/// The most measured messages of a ring that wait.
const MOST: usize = 4096;

/// The place of a message in its ring: its instance, and its index there.
type At = (u64, u16);

/// The messages of a ring, which leave the merge in the order in which they came. Some never do: those that came before
/// the process had the ring, or after it had left.
#[derive(Debug, Default)]
struct Lane {
    pushed: u64,
    /// The measured messages that wait: their places, and when they came.
    measured: VecDeque<(At, Instant)>,
    times: Histogram,
}

/// The times for which messages wait.
#[derive(Debug, Default)]
pub(super) struct Waits(BTreeMap<Rank, Lane>);

impl Waits {
    /// A message of a ring has come.
    pub(super) fn on_pushed(&mut self, rank: Rank, at: At) {
        let lane = self.0.entry(rank).or_default();
        if lane.pushed.is_multiple_of(EVERY) && lane.measured.len() < MOST {
            lane.measured.push_back((at, Instant::now()));
        }
        lane.pushed += 1;
    }

    /// This message of a ring is delivered, and none before it waits any more.
    pub(super) fn on_delivered(&mut self, rank: Rank, at: At) {
        let Some(lane) = self.0.get_mut(&rank) else {
            return;
        };
        while let Some((of, came)) = lane.measured.pop_front_if(|(of, _)| *of <= at) {
            if of == at {
                let waited: Duration = came.elapsed();
                lane.times.record(waited.as_nanos() as u64);
            }
        }
    }

    /// No message of a ring that has come is delivered any more.
    pub(super) fn forget(&mut self, rank: Rank) {
        let lane = self.0.get_mut(&rank);
        lane.into_iter().for_each(|lane| lane.measured.clear());
    }

    /// The times of a ring's messages.
    pub(super) fn of(&self, rank: Rank) -> Histogram {
        let lane = self.0.get(&rank);
        lane.map_or_else(Histogram::default, |lane| lane.times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_message_in_sixteen_is_measured_from_when_it_came_until_it_leaves() {
        let mut waits = Waits::default();
        let (slow, quick) = (Rank(1), Rank(2));
        for at in 1..21 {
            waits.on_pushed(slow, (at, 0));
        }
        std::thread::sleep(Duration::from_millis(20));
        for at in 1..41 {
            waits.on_pushed(quick, (at, 1));
            waits.on_delivered(quick, (at, 1));
        }
        for at in 1..21 {
            waits.on_delivered(slow, (at, 0));
        }
        let [slow, quick] = [slow, quick].map(|rank| waits.of(rank));
        assert_eq!((slow.count(), quick.count()), (2, 3));
        assert!(slow.sum_nanos() >= 40_000_000, "{slow:?}");
        assert!(quick.sum_nanos() < slow.sum_nanos());
        assert_eq!(waits.of(Rank(3)).count(), 0);
    }

    #[test]
    fn what_is_never_delivered_is_not_measured_and_is_not_kept() {
        let (mut waits, ring) = (Waits::default(), Rank(1));
        for at in 1..200_000 {
            waits.on_pushed(ring, (at, 0));
        }
        assert_eq!(waits.0[&ring].measured.len(), MOST);
        waits.on_delivered(ring, (199_999, 0));
        assert_eq!(waits.of(ring).count(), 0);
        assert!(waits.0[&ring].measured.is_empty());
        waits.on_pushed(ring, (300_000, 0));
        waits.forget(ring);
        assert!(waits.0[&ring].measured.is_empty());
    }
}

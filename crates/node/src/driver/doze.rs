//! Whether a loop that has nothing to do looks for something once more, or sleeps.

use rota_core::contract::Time;

use rota_net::NetStats;

/// The most looks before a sleep. They take about as much as a sleep and a wake-up from another
/// processor do on a virtual machine (25 µs), so that at the very worst a rest costs twice that.
const MOST_LOOKS: u32 = 32;

/// Looks before the next sleep after one that something ended.
const LOOKS_WHEN_WOKEN: u32 = 8;

/// A program that computes has a processor for about a millisecond and longer when it is given to that; other nodes,
/// for as long as they have work.
const LONG_YIELD_NANOS: u64 = 500_000;

/// Nodes that have much to do send more than this many bursts and messages in a millisecond.
const LITTLE_ITEMS: u64 = 1;

/// Where there is much to do, more bytes than this come at once.
const LITTLE_BYTES: u64 = 16 << 10;

/// The number of yields that only others used that is no accident, if they come within the time below.
const LOST_YIELDS: u32 = 3;
const LOST_WITHIN_NANOS: u64 = 100_000_000;

/// The time in nanoseconds for which the loop then sleeps at once, before it tries again.
const CROWDED_NANOS: u64 = 1_000_000_000;

/// The bursts, messages and bytes that have come until now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    items: u64,
    bytes: u64,
}

impl Load {
    /// The loads of one driver and another together.
    pub(super) const fn and(self, other: Self) -> Self {
        Self {
            items: self.items + other.items,
            bytes: self.bytes + other.bytes,
        }
    }

    pub(super) const NONE: Self = Self { items: 0, bytes: 0 };

    pub(super) const fn of(stats: &NetStats) -> Self {
        Self {
            items: stats.bursts_in + stats.link_messages_in,
            bytes: stats.bytes_in + stats.link_bytes_in,
        }
    }

    /// Whether little has come since `then`, when others had run for `nanos`.
    const fn is_little_since(&self, then: &Self, nanos: u64) -> bool {
        let usual = LITTLE_ITEMS * (1 + nanos / 1_000_000);
        self.items - then.items <= usual || self.bytes - then.bytes <= LITTLE_BYTES
    }
}

/// The number of times that a loop looks whether something has come, and lets others run, before it sleeps. Where nodes
/// share a processor, those others may well send what it would sleep for.
#[derive(Debug)]
pub(super) struct Doze {
    /// Doubled when looking was worth it, halved when it was not.
    looks: u32,
    /// None for a thread with a real-time priority: it runs at once when something comes, and those that it
    /// would let run are only others with its priority.
    most: u32,
    /// The time for which the loop goes on looking, where that is configured.
    busy_poll_nanos: u64,
    /// The last long yield to others: its nanoseconds, and the load before it.
    long_yield: Option<(u64, Load)>,
    /// The number of long yields since `lost_since` of which little came.
    lost_yields: u32,
    lost_since: Time,
    /// Until then the loop sleeps at once: arrivals wake it, while programs that compute do not let it look.
    crowded_until: Time,
}

impl Doze {
    pub(super) const fn new(busy_poll_nanos: u64, is_realtime: bool) -> Self {
        let most = if is_realtime { 0 } else { MOST_LOOKS };
        Self {
            looks: if is_realtime { 0 } else { 1 },
            most,
            busy_poll_nanos,
            long_yield: None,
            lost_yields: 0,
            lost_since: Time(0),
            crowded_until: Time(0),
        }
    }

    /// Whether the loop, at rest since `start` and after so many looks, looks once more before it sleeps.
    pub(super) fn looks_on(&self, looks: u32, start: Time, now: Time) -> bool {
        looks < self.looks(now) || now.since(start) < self.busy_poll_nanos
    }

    /// The number of looks before a sleep.
    fn looks(&self, now: Time) -> u32 {
        if now < self.crowded_until {
            0
        } else {
            self.looks
        }
    }

    /// Notes that others ran.
    pub(super) fn yielded(&mut self, before: Time, now: Time, load: Load) {
        if let Some((took, then)) = self.long_yield.take() {
            self.judge(load.is_little_since(&then, took), before);
        }
        let took = now.since(before);
        if took >= LONG_YIELD_NANOS {
            self.long_yield = Some((took, load));
        }
    }

    /// Judges a long yield, whose result is known now.
    fn judge(&mut self, is_lost: bool, now: Time) {
        if !is_lost {
            self.lost_yields = 0;
            return;
        }
        if self.lost_yields == 0 || now.since(self.lost_since) > LOST_WITHIN_NANOS {
            self.lost_yields = 0;
            self.lost_since = now;
        }
        self.lost_yields += 1;
        if self.lost_yields >= LOST_YIELDS {
            self.lost_yields = 0;
            self.crowded_until = now.after(CROWDED_NANOS);
        }
    }

    pub(super) fn came(&mut self) {
        self.looks = (self.looks * 2).min(self.most);
    }

    /// The cause of a wake-up is seldom alone: where one node wakes, a token is about to go round.
    pub(super) fn woken(&mut self) {
        self.looks = self.looks.max(LOOKS_WHEN_WOKEN).min(self.most);
    }

    pub(super) fn nothing_came(&mut self) {
        self.looks = (self.looks / 2).max(1).min(self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As long as it looks, nobody with less priority runs.
    #[test]
    fn who_has_a_realtime_priority_sleeps_at_once() {
        let mut doze = Doze::new(0, true);
        let mut ordinary = Doze::new(0, false);
        for _ in 0..10 {
            assert_eq!(doze.looks, 0);
            assert!(ordinary.looks > 0);
            for doze in [&mut doze, &mut ordinary] {
                doze.came();
                doze.woken();
                doze.nothing_came();
            }
        }
    }

    /// Yields to others, and takes what has come then.
    struct Yields {
        doze: Doze,
        now: Time,
        load: Load,
    }

    impl Yields {
        fn new() -> Self {
            Self {
                doze: Doze::new(0, false),
                now: Time(7),
                load: Load { items: 0, bytes: 0 },
            }
        }

        fn run(&mut self, nanos: u64, items: u64, bytes: u64) {
            let before = self.now;
            self.now = before.after(nanos);
            self.doze.yielded(before, self.now, self.load);
            self.load.items += items;
            self.load.bytes += bytes;
        }

        fn looks(&self) -> bool {
            self.doze.looks(self.now) > 0
        }
    }

    #[test]
    fn where_others_compute_it_sleeps_at_once_for_a_while() {
        for (items, bytes) in [(2, 1 << 20), (100, LITTLE_BYTES)] {
            let mut yields = Yields::new();
            for _ in 0..LOST_YIELDS {
                yields.run(1_400_000, items, bytes);
                assert!(yields.looks());
                yields.run(50_000, 0, 0);
            }
            yields.doze.woken();
            assert!(!yields.looks());
            yields.now = yields.now.after(CROWDED_NANOS);
            assert!(yields.looks());
        }
    }

    #[test]
    fn where_other_nodes_have_much_to_do_it_goes_on_looking() {
        let mut yields = Yields::new();
        for _ in 0..20 {
            yields.run(1_400_000, 3, LITTLE_BYTES + 1);
            assert!(yields.looks());
        }
        // Now and then a host takes a processor away.
        let mut yields = Yields::new();
        for _ in 0..20 {
            yields.run(5_000_000, 0, 0);
            yields.run(50_000, 0, 0);
            yields.now = yields.now.after(60_000_000);
            assert!(yields.looks());
        }
    }
}

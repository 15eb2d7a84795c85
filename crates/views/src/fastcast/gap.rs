//! The times of requests for a gap: after a while, and then once in a round trip.

use super::patience::RoundTrip;
use rota_core::contract::Time;

/// The gap in one sender's packets, or in the order.
#[derive(Clone, Debug, Default)]
pub(super) struct Gap {
    /// The time since which the gap has not moved.
    since: Option<Time>,
    aru: u64,
    /// Missing numbers up to here were requested.
    asked_to: u64,
    retry_at: Time,
    tries: u32,
    /// Whether a number of the last request has come, and whether one has come twice.
    came: bool,
    came_twice: bool,
}

impl Gap {
    /// Takes note that everything up to `aru` is here, and that numbers up to `known` are known to exist.
    pub fn update(&mut self, now: Time, aru: u64, known: u64) {
        if aru >= known {
            self.since = None;
            self.tries = 0;
        } else if self.since.is_none() || aru > self.aru {
            if self.since.is_none() || aru >= self.asked_to {
                self.since = Some(now);
            }
            self.tries = 0;
        }
        self.aru = aru;
    }

    /// The time of the next request; `hole` says whether numbers above the gap are here.
    pub fn due_at(&self, patience: &RoundTrip, hole: bool) -> Option<Time> {
        let since = self.since?;
        if self.aru < self.asked_to {
            Some(self.retry_at)
        } else {
            Some(since.after(patience.grace(hole)))
        }
    }

    /// Whether this number was requested.
    pub const fn asked_for(&self, number: u64) -> bool {
        number <= self.asked_to
    }

    /// Whether this number, which has come, is the first of the last request that has.
    pub const fn first_to_come(&mut self, number: u64) -> bool {
        self.asked_for(number) && !core::mem::replace(&mut self.came, true)
    }

    /// Whether this number, which has come twice, is the first of the last request that has.
    pub const fn first_to_come_twice(&mut self, number: u64) -> bool {
        self.asked_for(number) && !core::mem::replace(&mut self.came_twice, true)
    }

    /// The number of requests in vain.
    pub const fn tries(&self) -> u32 {
        self.tries
    }

    /// Notes that everything that is missing up to `last` was requested.
    pub fn on_asked(&mut self, now: Time, last: u64, patience: &RoundTrip) {
        self.asked_to = self.asked_to.max(last);
        self.retry_at = now.after(patience.backed_off(self.tries));
        self.tries = self.tries.saturating_add(1);
        (self.came, self.came_twice) = (false, false);
    }
}

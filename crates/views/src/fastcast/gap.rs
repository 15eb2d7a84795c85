//! When to ask for what is missing: after a while, and then once in a round trip.

use super::patience::RoundTrip;
use rota_core::contract::Time;

/// What is missing of one sender's packets, or of the order.
#[derive(Clone, Debug, Default)]
pub(super) struct Gap {
    /// Since when nothing of it has moved.
    since: Option<Time>,
    aru: u64,
    /// What was missing up to here was asked for.
    asked_to: u64,
    retry_at: Time,
    tries: u32,
    /// Of what was asked for last, something has come, and something came twice.
    came: bool,
    came_twice: bool,
}

impl Gap {
    /// Everything up to `aru` is here, and something up to `known` is known to exist.
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

    /// When to ask; `hole`: something above what is missing is here.
    pub fn due_at(&self, patience: &RoundTrip, hole: bool) -> Option<Time> {
        let since = self.since?;
        if self.aru < self.asked_to {
            Some(self.retry_at)
        } else {
            Some(since.after(patience.grace(hole)))
        }
    }

    /// Whether this number was asked for.
    pub const fn asked_for(&self, number: u64) -> bool {
        number <= self.asked_to
    }

    /// Whether this, which has come, is the first that has of what was asked for last.
    pub const fn first_to_come(&mut self, number: u64) -> bool {
        self.asked_for(number) && !core::mem::replace(&mut self.came, true)
    }

    /// Whether this, which has come twice, is the first that has of what was asked for last.
    pub const fn first_to_come_twice(&mut self, number: u64) -> bool {
        self.asked_for(number) && !core::mem::replace(&mut self.came_twice, true)
    }

    /// How often it was asked in vain.
    pub const fn tries(&self) -> u32 {
        self.tries
    }

    /// Everything that is missing up to `last` was asked for.
    pub fn on_asked(&mut self, now: Time, last: u64, patience: &RoundTrip) {
        self.asked_to = self.asked_to.max(last);
        self.retry_at = now.after(patience.backed_off(self.tries));
        self.tries = self.tries.saturating_add(1);
        (self.came, self.came_twice) = (false, false);
    }
}

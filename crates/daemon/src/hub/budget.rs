//! A share of the daemon's time, measured by cost: the cost of work that is done at once has to be made up for before
//! more begins.

use rota_core::contract::Time;

/// The cost that was charged to a share.
#[derive(Debug)]
pub(super) struct Budget {
    /// The cost that is made up for in a second.
    each_second: u64,
    /// The cost that may be owed while more work begins.
    at_once: u64,
    /// The cost that is not made up for yet.
    owed: u64,
    /// The time up to which `owed` is made up for.
    at: Time,
}

impl Budget {
    pub const fn new(each_second: u64, at_once: u64) -> Self {
        Self {
            each_second,
            at_once,
            owed: 0,
            at: Time(0),
        }
    }

    /// Time has passed.
    pub fn pass(&mut self, now: Time) {
        let made_up = u128::from(now.since(self.at)) * u128::from(self.each_second) / 1_000_000_000;
        if made_up > 0 {
            let made_up = u64::try_from(made_up).unwrap_or(u64::MAX);
            self.owed = self.owed.saturating_sub(made_up);
            self.at = now;
        }
    }

    /// The time up to which the budget has passed.
    pub const fn at(&self) -> Time {
        self.at
    }

    /// Whether more may be begun.
    pub const fn has_room(&self) -> bool {
        self.owed < self.at_once
    }

    pub const fn charge(&mut self, cost: u64) {
        self.owed += cost;
    }

    /// In how many nanoseconds from [`Self::at`] on more may be begun.
    pub const fn wait_nanos(&self) -> u64 {
        let more = (self.owed + 1).saturating_sub(self.at_once);
        more.saturating_mul(1_000_000_000) / self.each_second
    }
}

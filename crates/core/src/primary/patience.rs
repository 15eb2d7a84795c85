//! The patience with the disk: a write that has failed is tried again after a while, and deliveries wait for a disk that
//! does not answer, but not for long.

use crate::contract::Time;

/// Nanoseconds after which a failed write is tried again.
const WRITE_AGAIN: u64 = 100_000_000;

/// Nanoseconds for which deliveries wait for a disk that does not answer. A disk that is merely slow has answered by
/// then; if this node waited longer, it would hold up all senders.
const HOLD_AT_MOST: u64 = 1_000_000_000;

/// The times of one node's disk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DiskPatience {
    /// Nothing is written before this time.
    write_at: Time,
    /// Deliveries that wait for the disk wait no longer than this.
    hold_until: Option<Time>,
}

impl DiskPatience {
    /// Whether something may be written.
    pub fn may_write(&self, now: Time) -> bool {
        now >= self.write_at
    }

    /// The time at which something that is to be written may be.
    pub fn write_at(&self, now: Time) -> Time {
        self.write_at.max(now)
    }

    /// Takes note of a write that failed.
    pub fn on_failed(&mut self, now: Time) {
        self.write_at = now.after(WRITE_AGAIN);
    }

    /// Whether deliveries have waited for long enough.
    pub fn is_over(&self, now: Time) -> bool {
        self.hold_until.is_some_and(|until| until <= now)
    }

    /// Takes note of whether deliveries wait for the disk.
    pub fn on_holding(&mut self, now: Time, is_holding: bool) {
        let until = self.hold_until.unwrap_or(now.after(HOLD_AT_MOST));
        self.hold_until = is_holding.then_some(until);
    }

    /// The time until which deliveries wait, if they do.
    pub const fn hold_until(&self) -> Option<Time> {
        self.hold_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_is_tried_again_after_a_while() {
        let mut patience = DiskPatience::default();
        assert!(patience.may_write(Time(0)));
        patience.on_failed(Time(7));
        // The numbers are the promise, and not the constants.
        assert!(!patience.may_write(Time(6 + 100_000_000)));
        assert!(patience.may_write(Time(7 + 100_000_000)));
        assert_eq!(patience.write_at(Time(8)), Time(7 + 100_000_000));
    }

    #[test]
    fn deliveries_wait_from_the_first_time_on_and_not_for_long() {
        let mut patience = DiskPatience::default();
        patience.on_holding(Time(7), true);
        patience.on_holding(Time(9), true);
        assert_eq!(patience.hold_until(), Some(Time(7 + 1_000_000_000)));
        assert!(!patience.is_over(Time(6 + 1_000_000_000)));
        assert!(patience.is_over(Time(7 + 1_000_000_000)));
        patience.on_holding(Time(10), false);
        assert!(!patience.is_over(Time(7 + 1_000_000_000)));
    }
}

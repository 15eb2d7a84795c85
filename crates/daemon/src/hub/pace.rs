//! The rate at which clients are let in: a flood of connections waits in the kernel, and not the ring.

use rota_core::contract::Time;

/// Clients let in in a row: to be woken for each would cost twice as much.
pub(super) const AT_ONCE: u64 = 4;

/// The least pause until more are let in.
const REST_NANOS: u64 = 1_000_000;

/// One client in this time can be let in for ever, and a burst of [`BURST`] more after a quiet time: a host's clients
/// come all together when its daemon has been started again.
const EACH_NANOS: u64 = 1_000_000;
const BURST: u64 = 512;

/// The time that clients have used up, as an instant: if that is far in the future, the next clients have to wait.
#[derive(Debug, Default)]
pub(super) struct Pace {
    used_until: Time,
}

impl Pace {
    /// Notes that `count` clients have come in, at most [`AT_ONCE`], and returns the time at which more may.
    pub fn take(&mut self, now: Time, count: u64) -> Time {
        self.used_until = self.used_until.max(now).after(count * EACH_NANOS);
        let over = self
            .used_until
            .since(now)
            .saturating_sub(BURST * EACH_NANOS);
        let rest = if count < AT_ONCE { 0 } else { REST_NANOS };
        now.after(rest.max(over))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(count: u64) -> Time {
        Time(count * 1_000_000_000)
    }

    /// The number of clients that come in for a second from then on.
    fn flood(pace: &mut Pace, from: Time) -> u64 {
        let (mut at, mut count) = (from, 0);
        while at.since(from) < 1_000_000_000 {
            count += AT_ONCE;
            at = pace.take(at, AT_ONCE);
        }
        count
    }

    #[test]
    fn a_flood_comes_in_slowly_and_a_crowd_after_a_rest_fast() {
        let mut pace = Pace::default();
        for (from, expected) in [(100, 1512), (101, 1000), (110, 1512)] {
            let count = flood(&mut pace, seconds(from));
            assert!(
                count.abs_diff(expected) <= 2 * AT_ONCE,
                "{count}, not {expected}"
            );
        }
    }

    #[test]
    fn who_comes_alone_waits_for_nobody() {
        let mut pace = Pace::default();
        for at in 1..5000 {
            let now = Time(at * EACH_NANOS);
            assert_eq!(pace.take(now, 1), now);
        }
    }

    /// Fewer than may come at once, but often: they used to save up a wait of minutes for whoever came after them.
    #[test]
    fn nobody_waits_long_for_those_who_came_before() {
        let mut pace = Pace::default();
        let (mut at, mut count) = (seconds(1), 0);
        while at < seconds(61) {
            count += AT_ONCE - 1;
            let next = pace.take(at, AT_ONCE - 1);
            assert!(next.since(at) <= AT_ONCE * EACH_NANOS);
            at = next.max(at.after(EACH_NANOS / 10));
        }
        assert!(count < 60 * 1000 + BURST + AT_ONCE, "{count}");
    }
}

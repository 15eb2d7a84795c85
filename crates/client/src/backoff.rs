//! Pauses between attempts to connect again, and the account of a lost connection.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use rota_core::groups::GroupName;

use crate::error::{ConnectionLost, RequestError};
use crate::event::Gap;
use crate::protocol::PrivateName;

/// The pauses between attempts: each is twice the one before, with a part drawn at random, so that the clients of a
/// daemon that was restarted do not all come at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backoff {
    /// The pause between the loss and the first attempt.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(50),
            longest: Duration::from_secs(5),
        }
    }
}

/// The longest of all pauses, ten thousand days: no clock can count all that a duration can say.
const LONGEST: Duration = Duration::from_secs(10_000 * 24 * 3600);

impl Backoff {
    fn next_attempt(&self, attempts: u32) -> Instant {
        let chance = RandomState::new().hash_one(attempts);
        Instant::now() + self.pause(attempts, chance)
    }

    /// The pause after this number of attempts: from half of the time to all of it, as `chance` says.
    fn pause(&self, attempts: u32, chance: u64) -> Duration {
        let doubled = self.first.saturating_mul(1 << attempts.min(20));
        let whole = doubled.min(self.longest).min(LONGEST);
        whole / 2 + whole.mul_f64(0.5 * (chance as f64 / u64::MAX as f64))
    }
}

/// A lost connection, and the attempts to have another.
#[derive(Clone, Debug)]
pub struct Loss {
    pub lost: ConnectionLost,
    since: Instant,
    unsettled_bytes: u64,
    attempts: u32,
    pub next_attempt: Instant,
}

impl Loss {
    /// A pause comes before the first attempt too: a daemon may let a client in and lose it at once, over
    /// and over.
    pub fn new(lost: ConnectionLost, unsettled_bytes: u64, backoff: &Backoff) -> Self {
        Self {
            lost,
            since: Instant::now(),
            unsettled_bytes,
            attempts: 0,
            next_attempt: backoff.next_attempt(0),
        }
    }

    /// An attempt has failed, and the next may not.
    pub fn failed(&mut self, backoff: &Backoff) {
        self.attempts += 1;
        self.next_attempt = backoff.next_attempt(self.attempts);
    }

    /// The gap before a new connection.
    pub fn gap(&self, name: PrivateName, not_joined: Vec<(GroupName, RequestError)>) -> Gap {
        Gap {
            lost: self.lost.clone(),
            duration: self.since.elapsed(),
            unsettled_bytes: self.unsettled_bytes,
            name,
            not_joined,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_are_never_less_than_half() {
        let backoff = Backoff::default();
        assert_eq!(backoff.pause(0, 0), backoff.first / 2);
        assert_eq!(backoff.pause(0, u64::MAX), backoff.first);
        assert_eq!(backoff.pause(2, u64::MAX), 4 * backoff.first);
        for attempts in [10, 40, u32::MAX] {
            assert_eq!(backoff.pause(attempts, 0), backoff.longest / 2);
            assert_eq!(backoff.pause(attempts, u64::MAX), backoff.longest);
        }
    }

    #[test]
    fn a_pause_may_be_longer_than_time_is() {
        let (first, longest) = (Duration::MAX, Duration::MAX);
        let backoff = Backoff { first, longest };
        assert_eq!(backoff.pause(1, u64::MAX), LONGEST);
        assert!(backoff.next_attempt(u32::MAX) > Instant::now());
    }
}

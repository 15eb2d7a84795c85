//! Fingerprints of an engine's states, for a search that visits each state once.
//!
//! Two engines with one fingerprint have the same future, given the same inputs at the same distances
//! of time. So a fingerprint holds everything that decides what an engine will do, with two exceptions:
//!
//! * **Times** count from now: an engine only ever compares a time with the time of a call. A time to
//!   come that has passed is due, however long ago; what is remembered as past is told apart up to the
//!   longest time that is asked about.
//! * **Counters** for people and the state of the random numbers are left out. Chance only spreads
//!   joins; with a join time of a nanosecond or less there is nothing to spread, and a search has to
//!   be configured so.

use core::hash::{Hash, Hasher};

use crate::contract::Time;

/// Takes in the parts of a state.
pub struct Fingerprint<'a, H> {
    hasher: &'a mut H,
    now: Time,
    /// The longest past that anything asks about, in nanoseconds.
    longest: u64,
}

impl<'a, H: Hasher> Fingerprint<'a, H> {
    /// The fingerprint of a state at this time; nothing asks about a past longer than `longest`.
    pub const fn new(hasher: &'a mut H, now: Time, longest: u64) -> Self {
        Self {
            hasher,
            now,
            longest,
        }
    }

    /// Adds a value that holds no time.
    pub fn add(&mut self, value: impl Hash) {
        value.hash(self.hasher);
    }

    /// Adds the time at which something is to happen.
    pub fn due(&mut self, at: impl Into<Option<Time>>) {
        let left = at.into().map(|at| at.since(self.now));
        left.hash(self.hasher);
    }

    /// Adds the time at which something has happened.
    pub fn past(&mut self, at: impl Into<Option<Time>>) {
        let ago = at.into().map(|at| self.now.since(at).min(self.longest));
        ago.hash(self.hasher);
    }
}

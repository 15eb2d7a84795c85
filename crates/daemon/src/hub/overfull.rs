//! Clients for which more waits than may, and that have a while to read it.

use rota_core::contract::Time;

use crate::keys::KeyQueue;

/// The time between two looks at them.
const LOOK_NANOS: u64 = 50_000_000;

/// The sessions of these, and when they are looked at again.
#[derive(Debug, Default)]
pub(super) struct Overfull {
    row: KeyQueue,
    look_at: Time,
}

impl Overfull {
    /// The session is looked at soon.
    pub fn watch(&mut self, key: usize, now: Time) {
        if self.row.is_empty() {
            self.look_at = now.after(LOOK_NANOS);
        }
        self.row.push(key);
    }

    /// The number of sessions that are looked at now, with [`Self::next`].
    pub fn pass(&mut self, now: Time) -> usize {
        if self.row.is_empty() || now < self.look_at {
            return 0;
        }
        self.look_at = now.after(LOOK_NANOS);
        self.row.len()
    }

    pub fn next(&mut self) -> Option<usize> {
        self.row.pop()
    }

    /// The time of the next look.
    pub fn next_wake(&self) -> Option<Time> {
        (!self.row.is_empty()).then_some(self.look_at)
    }

    /// What holds between inputs.
    pub fn check(&self) {
        self.row.check();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_looked_at_together_and_those_that_are_still_too_full_again() {
        let mut overfull = Overfull::default();
        overfull.watch(1, Time(5));
        overfull.watch(2, Time(9));
        let at = Time(5 + LOOK_NANOS);
        assert_eq!(overfull.next_wake(), Some(at));
        assert_eq!(overfull.pass(Time(at.0 - 1)), 0);
        assert_eq!(overfull.pass(at), 2);
        assert_eq!((overfull.next(), overfull.next()), (Some(1), Some(2)));
        overfull.watch(2, Time(at.0 + 7));
        assert_eq!(overfull.next_wake(), Some(Time(at.0 + 7 + LOOK_NANOS)));
        overfull.check();
    }
}

//! Clients that ask, and do not read what they are answered.

use std::collections::{BTreeSet, VecDeque};

use rota_core::contract::Time;

/// The time for which a client that asks may read nothing, while the bytes that wait for it leave no room for another
/// answer. Meanwhile nothing more is read of it, so that its end could not be seen: a descriptor of its own socket may
/// lie unread there.
pub(super) const UNREAD_NANOS: u64 = 60_000_000_000;

/// Sessions whose clients ask, and have to read before they are answered.
#[derive(Debug, Default)]
pub(super) struct Askers {
    /// Sessions by key and number, and when they are looked at; the next one first.
    row: VecDeque<(Time, usize, u64)>,
    /// The numbers of these.
    numbers: BTreeSet<u64>,
}

impl Askers {
    /// A session is looked at when its client has had time to read, unless it is looked at sooner.
    pub fn watch(&mut self, (key, number): (usize, u64), now: Time) {
        if self.numbers.insert(number) {
            self.row.push_back((now.after(UNREAD_NANOS), key, number));
        }
    }

    /// A session that is looked at now. It may have ended.
    pub fn next_due(&mut self, now: Time) -> Option<(usize, u64)> {
        let (_, key, number) = self.row.pop_front_if(|(at, ..)| *at <= now)?;
        self.numbers.remove(&number);
        Some((key, number))
    }

    /// The time of the next look.
    pub fn next_wake(&self) -> Option<Time> {
        self.row.front().map(|&(at, ..)| at)
    }

    /// Each session is watched once, and the next one is first.
    pub fn check(&self) {
        debug_assert_eq!(self.row.len(), self.numbers.len());
        debug_assert!(self.row.iter().is_sorted_by_key(|&(at, ..)| at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_a_minute_from_its_first_question_that_waits() {
        let mut askers = Askers::default();
        askers.watch((3, 10), Time(1));
        askers.watch((3, 10), Time(2));
        askers.watch((3, 11), Time(5));
        askers.check();
        assert_eq!(askers.next_wake(), Some(Time(1 + UNREAD_NANOS)));
        assert_eq!(askers.next_due(Time(UNREAD_NANOS)), None);
        assert_eq!(askers.next_due(Time(1 + UNREAD_NANOS)), Some((3, 10)));
        assert_eq!(askers.next_due(Time(1 + UNREAD_NANOS)), None);
        // It has read something, and asks on.
        askers.watch((3, 10), Time(9));
        askers.check();
        assert_eq!(askers.next_due(Time(5 + UNREAD_NANOS)), Some((3, 11)));
        assert_eq!(askers.next_due(Time(9 + UNREAD_NANOS)), Some((3, 10)));
        assert_eq!(askers.next_wake(), None);
    }
}

//! The lag of a client: its waiting bytes against the limit, and the destinations that have filled its queue.

use std::collections::BTreeMap;

use rota_core::contract::Time;
use rota_core::groups::{Destination, Hold};

/// The length of a client's queue against the limit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Queue {
    /// Short enough that the client is warned anew, and no sender waits.
    Short,
    Fair,
    /// More than half of the limit.
    Long,
    /// More than three quarters.
    Longer,
    Full,
}

impl Queue {
    pub const fn of(waiting: usize, limit: usize) -> Self {
        if waiting > limit {
            Self::Full
        } else if waiting > limit - limit / 4 {
            Self::Longer
        } else if waiting > limit / 2 {
            Self::Long
        } else if waiting <= limit / 4 {
            Self::Short
        } else {
            Self::Fair
        }
    }
}

/// More waits for a client than may: the time since then, and the bytes it has read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Full {
    /// The time since which the queue is full, or the client was last seen to read.
    pub since: Time,
    /// The bytes that the client's socket has taken since then.
    pub read: usize,
}

impl Full {
    /// From now on.
    pub const fn begin(now: Time) -> Self {
        Self {
            since: now,
            read: 0,
        }
    }
}

/// A client that is behind, and the senders that wait for it.
#[derive(Debug, Default)]
pub(crate) struct Lag {
    /// For each destination the bytes of its messages that have come since the queue was short.
    bytes: BTreeMap<Destination, usize>,
    total: usize,
    pub throttling: Option<Throttling>,
}

/// The destinations whose senders wait for a client.
#[derive(Debug)]
pub(crate) struct Throttling {
    pub since: Time,
    pub to: Vec<Destination>,
    /// `to` has all destinations by which the client gets messages.
    pub all: bool,
}

impl Lag {
    /// Counts bytes for the client that have come by one of its groups, or its own name.
    pub fn count(&mut self, to: Destination, bytes: usize) {
        *self.bytes.entry(to).or_default() += bytes;
        self.total += bytes;
    }

    /// The destinations that fill the queue: those that bring at least an eighth of all bytes, or, if that did not
    /// help, all. The destination of the most bytes is first.
    pub fn filled_by(&self, all: bool) -> Vec<Destination> {
        let bytes = self.bytes.iter();
        let mut by: Vec<(usize, Destination)> = bytes
            .filter(|&(_, bytes)| all || bytes.saturating_mul(8) >= self.total)
            .map(|(to, bytes)| (*bytes, *to))
            .collect();
        by.sort_unstable_by(|a, b| b.cmp(a));
        by.into_iter().map(|(_, to)| to).collect()
    }
}

/// A client whose message waits for another client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldFor {
    pub hold: Hold,
    pub since: Time,
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_core::groups::GroupName;

    fn group(name: &str) -> Destination {
        Destination::Group(GroupName::new(name).expect("a name"))
    }

    #[test]
    fn a_queue_is_longer_than_its_line_by_one_byte_and_not_before() {
        let of = |waiting| Queue::of(waiting, 1000);
        assert_eq!([of(0), of(250)], [Queue::Short; 2]);
        assert_eq!([of(251), of(500)], [Queue::Fair; 2]);
        assert_eq!([of(501), of(750)], [Queue::Long; 2]);
        assert_eq!([of(751), of(1000)], [Queue::Longer; 2]);
        assert_eq!(of(1001), Queue::Full);
    }

    #[test]
    fn what_brings_little_goes_on_at_first() {
        let mut lag = Lag::default();
        lag.count(group("much"), 500);
        lag.count(group("some"), 125);
        lag.count(group("little"), 124);
        lag.count(group("much"), 251);
        assert_eq!(lag.filled_by(false), [group("much"), group("some")]);
        let all = [group("much"), group("some"), group("little")];
        assert_eq!(lag.filled_by(true), all);
    }

    #[test]
    fn of_nothing_nothing_is_held() {
        assert_eq!(Lag::default().filled_by(true), []);
    }
}

//! The lag of a client: its waiting bytes against the limit, and the destinations that have filled its queue.

use std::collections::BTreeMap;

use rota_core::contract::Time;
use rota_core::groups::{Destination, Hold};

/// The time for which too much may wait for a client: the ring may deliver more in one piece than its queue takes,
/// before the client could have read a byte of it, and a host that is busy with all receivers of that piece lets a
/// client wait for a processor.
const FULL_NANOS: u64 = 1_000_000_000;

/// A client that reads this much in that time, in bytes, has as much time again: it reads, and others send more than it
/// can read.
const FULL_READS: usize = 64 << 10;

/// The bytes beyond the limit for which a client has that time; with more it has none.
const FULL_BYTES: usize = 8 << 20;

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
    /// More than the limit; but the client has not had the time to read it, or reads. It is looked at again soon.
    Overfull,
    /// More than the limit, for too long or by too much.
    Full,
}

impl Queue {
    const fn of(waiting: usize, limit: usize) -> Self {
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
struct Full {
    /// The time since which the queue is full, or the client was last seen to read.
    since: Time,
    /// The bytes that the client's socket has taken since then.
    read: usize,
}

impl Full {
    /// From now on.
    const fn begin(now: Time) -> Self {
        Self {
            since: now,
            read: 0,
        }
    }
}

/// How far a client is behind, and what that has led to: a warning, senders that wait for it, time to read.
#[derive(Debug)]
pub(crate) struct Lag {
    /// The bytes that the largest event for the client took in its queue.
    largest: usize,
    /// The client was told that it reads too slowly, and has not caught up since.
    warned: bool,
    /// The state of a queue that is full, or was a moment ago.
    full: Option<Full>,
    /// The messages that fill the queue, since it was short.
    behind: Option<Box<Behind>>,
}

/// The messages that have come for a client since its queue was short, and the senders that wait for it.
#[derive(Debug, Default)]
struct Behind {
    /// For each destination the bytes of its messages.
    bytes: BTreeMap<Destination, usize>,
    total: usize,
    throttling: Option<Throttling>,
}

/// The destinations whose senders wait for a client.
#[derive(Debug)]
pub(crate) struct Throttling {
    pub since: Time,
    pub to: Vec<Destination>,
    /// `to` has all destinations by which the client gets messages.
    all: bool,
}

/// The outcome of an attempt to have senders wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Throttled {
    /// Nothing changes: they wait already, or nothing fills the queue.
    Unchanged,
    /// The first senders wait.
    Begins,
    /// More of them wait.
    Grows,
}

impl Lag {
    /// Of a client for which nothing waits.
    pub const fn new() -> Self {
        Self {
            largest: 0,
            warned: false,
            full: None,
            behind: None,
        }
    }

    /// The most bytes that may wait for the client: the configured limit, or twice its largest event. Other daemons on
    /// the ring may allow larger messages than this one, and two of them are no long queue.
    pub fn limit(&self, configured: usize) -> usize {
        configured.max(2 * self.largest)
    }

    /// An event for the client has taken so many bytes.
    pub fn told(&mut self, bytes: usize) {
        self.largest = self.largest.max(bytes);
    }

    /// The client's socket has taken so many bytes.
    pub const fn read(&mut self, bytes: usize) {
        if let Some(full) = &mut self.full {
            full.read += bytes;
        }
    }

    /// The length of the queue, in which so many bytes wait. The socket takes nothing since `unread_since`.
    pub fn judge(
        &mut self,
        waiting: usize,
        configured: usize,
        unread_since: Option<Time>,
        now: impl FnOnce() -> Time,
    ) -> Queue {
        let limit = self.limit(configured);
        let queue = Queue::of(waiting, limit);
        if queue != Queue::Full {
            self.full = None;
        } else if waiting <= limit + FULL_BYTES && self.has_time(unread_since, now()) {
            return Queue::Overfull;
        }
        queue
    }

    /// True if the client has not had the time to read what waits, or reads.
    fn has_time(&mut self, unread_since: Option<Time>, now: Time) -> bool {
        let full = self.full.get_or_insert(Full::begin(now));
        if now.since(full.since) >= FULL_NANOS {
            if full.read < FULL_READS {
                return false;
            }
            *full = Full::begin(now);
        }
        // Else it has read nothing for as long, whatever has come meanwhile.
        unread_since.is_none_or(|since| now.since(since) < FULL_NANOS)
    }

    /// Whether the client is to be warned: once for each time that the queue has been short.
    pub const fn warn(&mut self) -> bool {
        !std::mem::replace(&mut self.warned, true)
    }

    /// The queue is short: the client is warned anew.
    pub const fn caught_up(&mut self) {
        self.warned = false;
    }

    /// Counts bytes for the client that have come by one of its groups, or its own name.
    pub fn count(&mut self, to: Destination, bytes: usize) {
        let behind = self.behind.get_or_insert_default();
        *behind.bytes.entry(to).or_default() += bytes;
        behind.total += bytes;
    }

    /// Has the senders wait to the destinations that fill the queue; to all of them if `all`.
    pub fn throttle(&mut self, all: bool, now: impl FnOnce() -> Time) -> Throttled {
        let Some(behind) = &mut self.behind else {
            return Throttled::Unchanged;
        };
        let before = behind.throttling.as_ref();
        if before.is_some_and(|before| before.all || !all) {
            return Throttled::Unchanged;
        }
        let since = before.map(|before| before.since);
        let to = behind.filled_by(all);
        if to.is_empty() {
            return Throttled::Unchanged;
        }
        behind.throttling = Some(Throttling {
            since: since.unwrap_or_else(now),
            to,
            all,
        });
        match since {
            Some(_) => Throttled::Grows,
            None => Throttled::Begins,
        }
    }

    /// The destinations whose senders wait because of this client.
    pub fn throttling(&self) -> Option<&Throttling> {
        self.behind.as_ref()?.throttling.as_ref()
    }

    /// Lets the senders go on that wait, if there are any; the bytes that fill the queue are counted anew.
    pub fn release(&mut self) -> Option<Throttling> {
        self.behind.take()?.throttling
    }

    /// Whoever waits does so for something that fills the queue.
    pub fn check(&self) {
        if let Some(behind) = &self.behind {
            debug_assert_eq!(behind.total, behind.bytes.values().sum::<usize>());
            let is_counted = |to: &Destination| behind.bytes.contains_key(to);
            let throttling = behind.throttling.as_ref();
            debug_assert!(
                throttling.is_none_or(|one| !one.to.is_empty() && one.to.iter().all(is_counted))
            );
        }
    }
}

impl Behind {
    /// The destinations that fill the queue: those that bring at least an eighth of all bytes, or, if that did not
    /// help, all. The destination of the most bytes is first.
    fn filled_by(&self, all: bool) -> Vec<Destination> {
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

    /// The destinations of the senders that wait, one attempt after the other.
    fn throttled(lag: &mut Lag, all: bool) -> (Throttled, Vec<Destination>) {
        let outcome = lag.throttle(all, || Time(1));
        lag.check();
        let to = lag.throttling().map(|throttling| throttling.to.clone());
        (outcome, to.unwrap_or_default())
    }

    #[test]
    fn what_brings_little_goes_on_at_first() {
        let mut lag = Lag::new();
        lag.count(group("much"), 500);
        lag.count(group("some"), 125);
        lag.count(group("little"), 124);
        lag.count(group("much"), 251);
        let most = vec![group("much"), group("some")];
        assert_eq!(
            throttled(&mut lag, false),
            (Throttled::Begins, most.clone())
        );
        assert_eq!(throttled(&mut lag, false), (Throttled::Unchanged, most));
        let all = vec![group("much"), group("some"), group("little")];
        assert_eq!(throttled(&mut lag, true), (Throttled::Grows, all.clone()));
        assert_eq!(throttled(&mut lag, true), (Throttled::Unchanged, all));
        assert!(lag.release().is_some() && lag.release().is_none());
    }

    #[test]
    fn of_nothing_nothing_is_held() {
        let mut lag = Lag::new();
        assert_eq!(
            throttled(&mut lag, true),
            (Throttled::Unchanged, Vec::new())
        );
    }

    const FULL: usize = 1001;

    fn judge(lag: &mut Lag, waiting: usize, at: u64) -> Queue {
        lag.judge(waiting, 1000, None, || Time(at))
    }

    #[test]
    fn a_full_queue_has_a_second_and_another_one_if_its_client_reads() {
        let mut lag = Lag::new();
        assert_eq!(judge(&mut lag, FULL, 0), Queue::Overfull);
        assert_eq!(judge(&mut lag, FULL, FULL_NANOS - 1), Queue::Overfull);
        lag.read(FULL_READS);
        assert_eq!(judge(&mut lag, FULL, FULL_NANOS), Queue::Overfull);
        lag.read(FULL_READS - 1);
        assert_eq!(judge(&mut lag, FULL, 2 * FULL_NANOS), Queue::Full);
        // It was not full in between.
        assert_eq!(judge(&mut lag, 1000, 2 * FULL_NANOS), Queue::Longer);
        assert_eq!(judge(&mut lag, FULL, 2 * FULL_NANOS), Queue::Overfull);
        let much = 1000 + FULL_BYTES;
        assert_eq!(judge(&mut lag, much, 2 * FULL_NANOS), Queue::Overfull);
        assert_eq!(judge(&mut lag, much + 1, 2 * FULL_NANOS), Queue::Full);
    }

    #[test]
    fn a_client_that_has_read_nothing_for_a_second_has_no_time_more() {
        let mut lag = Lag::new();
        let now = || Time(FULL_NANOS);
        let unread = |since| Some(Time(since));
        assert_eq!(lag.judge(FULL, 1000, unread(1), now), Queue::Overfull);
        assert_eq!(lag.judge(FULL, 1000, unread(0), now), Queue::Full);
    }

    #[test]
    fn the_limit_takes_two_of_the_largest_events() {
        let mut lag = Lag::new();
        lag.told(600);
        lag.told(10);
        assert_eq!((lag.limit(1000), lag.limit(2000)), (1200, 2000));
    }
}

//! The queue of coming events. Two events at one time happen in the order in which they were asked for, so that the
//! same plan always gives the same run.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Something that is going to happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// A host's loop turns.
    Wake(u16),
    /// Datagrams arrive: their place in the slab.
    Arrive(u32),
    /// A host learns that nobody listens at a peer.
    Unreachable { host: u16, peer: u16 },
    /// A write of a host's disk is done, unless the host has begun another life since.
    Written { host: u16, life: u32 },
    /// A host's log is opened again, if its disk is well.
    Reopen { host: u16, life: u32 },
    /// The coordination service gets to a question: its place in the list.
    Serve(u32),
    /// Something happens to the link from one host to another: `at * hosts + peer`.
    Link { way: u16, step: LinkStep },
    /// A host starts a process.
    Start(u16),
    /// A host's application wants to submit.
    Submit(u16),
    /// A fault begins.
    Begin(u32),
    /// A fault goes on: a flap turns, or a process is killed at last.
    Beat(u32),
    /// A fault ends.
    End(u32),
    /// All faults end.
    Heal,
    /// Time to look whether the world has come to rest.
    Look,
}

/// The steps of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkStep {
    /// The link is looked after.
    Tend,
    /// One end gets to know of a session.
    Open,
    /// One end notices that its session is over.
    Close,
    /// Something that is under way arrives.
    Move,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Item {
    time: u64,
    tie: u64,
    what: What,
}

impl Ord for Item {
    /// The earliest is the greatest: the heap hands out the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.time, other.tie).cmp(&(self.time, self.tie))
    }
}

impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Everything that is going to happen.
#[derive(Default, Debug)]
pub struct Queue {
    heap: BinaryHeap<Item>,
    /// By host, when, and how it is told from others at that time: each has one wake-up at most, and puts it off very often.
    wakes: Vec<(u64, u64)>,
    asked: u64,
}

/// No wake-up was asked for.
const NEVER: (u64, u64) = (u64::MAX, u64::MAX);

impl Queue {
    pub fn push(&mut self, time: u64, what: What) {
        let item = self.item(time, what);
        self.heap.push(item);
    }

    /// A host's loop turns at a time, and not at the one that was asked for before.
    pub fn wake(&mut self, host: u16, time: u64) {
        self.asked += 1;
        let at = usize::from(host);
        if self.wakes.len() <= at {
            self.wakes.resize(at + 1, NEVER);
        }
        self.wakes[at] = (time, self.asked);
    }

    /// When a host's loop turns; the end of all times if nobody has asked for that.
    pub fn wakes_at(&self, host: u16) -> u64 {
        self.wakes
            .get(usize::from(host))
            .map_or(u64::MAX, |(time, _)| *time)
    }

    pub fn pop(&mut self) -> Option<(u64, What)> {
        let (mut host, mut first) = (0, NEVER);
        for (at, wake) in self.wakes.iter().enumerate() {
            if *wake < first {
                (host, first) = (at, *wake);
            }
        }
        let next = self.heap.peek().map_or(NEVER, |item| (item.time, item.tie));
        if first < next {
            self.wakes[host] = NEVER;
            return Some((first.0, What::Wake(host as u16)));
        }
        let item = self.heap.pop()?;
        Some((item.time, item.what))
    }

    const fn item(&mut self, time: u64, what: What) -> Item {
        self.asked += 1;
        let tie = self.asked;
        Item { time, tie, what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_first_happens_first_among_equals() {
        let mut queue = Queue::default();
        queue.push(7, What::Start(1));
        queue.push(7, What::Start(2));
        queue.push(3, What::Start(3));
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        let expected = [
            (3, What::Start(3)),
            (7, What::Start(1)),
            (7, What::Start(2)),
        ];
        assert_eq!(order, expected);
    }

    #[test]
    fn a_host_wakes_up_when_it_asked_for_that_last() {
        let mut queue = Queue::default();
        queue.wake(1, 5);
        queue.wake(0, 9);
        queue.push(7, What::Look);
        queue.wake(1, 7);
        queue.push(7, What::Heal);
        queue.wake(3, 2);
        assert_eq!([queue.wakes_at(1), queue.wakes_at(2)], [7, u64::MAX]);
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        let expected = [
            (2, What::Wake(3)),
            (7, What::Look),
            (7, What::Wake(1)),
            (7, What::Heal),
            (9, What::Wake(0)),
        ];
        assert_eq!(order, expected);
        assert_eq!(queue.wakes_at(1), u64::MAX);
    }
}

//! What happens when. Two things at one time happen in the order in which they were asked for, so
//! that the same plan always gives the same run.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Something that is going to happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// A host's loop turns; `ticket` tells the latest wake-up from earlier ones.
    Wake { host: u16, ticket: u32 },
    /// Datagrams arrive: their place in the slab.
    Arrive(u32),
    /// A host learns that nobody listens at a peer.
    Unreachable { host: u16, peer: u16 },
    /// A write of a host's disk is done, unless the host has begun another life since.
    Written { host: u16, life: u32 },
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

/// What happens to a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkStep {
    /// It is looked after.
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
    asked: u64,
}

impl Queue {
    pub fn push(&mut self, time: u64, what: What) {
        self.asked += 1;
        let tie = self.asked;
        self.heap.push(Item { time, tie, what });
    }

    pub fn pop(&mut self) -> Option<(u64, What)> {
        self.heap.pop().map(|item| (item.time, item.what))
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
}

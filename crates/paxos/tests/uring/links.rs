//! Links between nodes: messages arrive in order, until the link breaks.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

/// One direction of a link.
#[derive(Default)]
pub struct Way {
    /// When each message arrives.
    pub under_way: VecDeque<(u64, Bytes)>,
    pub bytes: usize,
    /// Nothing arrives before this time.
    pub held: u64,
    /// So many bytes go this way in a millisecond, whatever others take; 0: as many as on others.
    pub per_milli: u64,
}

/// A link between two nodes, of which the first has the smaller index.
#[derive(Default)]
pub struct Link {
    /// The session, if both ends know that it is up.
    pub up: Option<u64>,
    /// When it is tried again.
    pub retry: u64,
    pub cut: bool,
    pub ways: [Way; 2],
}

#[derive(Default)]
pub struct Links {
    pub links: BTreeMap<(usize, usize), Link>,
    pub sessions: u64,
    /// What the queue of each way takes, in bytes.
    pub room: usize,
    /// So many bytes go over a link in a millisecond; 0: any number.
    pub per_milli: u64,
}

impl Links {
    pub fn new(nodes: usize, room: usize) -> Self {
        let mut links = BTreeMap::new();
        for one in 0..nodes {
            for other in one + 1..nodes {
                links.insert((one, other), Link::default());
            }
        }
        Self {
            links,
            sessions: 0,
            room,
            per_milli: 0,
        }
    }

    pub fn between(&mut self, one: usize, other: usize) -> &mut Link {
        let key = (one.min(other), one.max(other));
        self.links.get_mut(&key).expect("two nodes")
    }

    /// The way from one node to another.
    pub fn way(&mut self, from: usize, to: usize) -> &mut Way {
        let direction = usize::from(from > to);
        &mut self.between(from, to).ways[direction]
    }
}

impl Way {
    /// When something arrives next.
    pub fn next_time(&self) -> Option<u64> {
        let first = self.under_way.front();
        first.map(|(at, _)| self.held.max(*at))
    }
}

impl Link {
    /// It is down: what is under way is lost.
    pub fn break_up(&mut self, retry: u64) -> Option<u64> {
        self.ways = <[Way; 2]>::default();
        self.retry = retry;
        self.up.take()
    }
}

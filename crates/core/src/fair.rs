//! The choice of the next packet on the link to the successor: a packet of this process, or the packet of another
//! member that waits to be passed on.
//!
//! Packets have to be passed on in the order of their arrival: the order ≺ follows from that. The only choice is when
//! an own packet may go first. Each origin has an account of the bytes that it was given on this link (start-time fair
//! queueing); an own packet goes first if less was given to this process than to the origin of the packet that is next.
//! An origin without anything to send saves nothing up.

use alloc::vec;
use alloc::vec::Vec;

use crate::mutants::{self, Mutant};

/// The accounts of all origins on the link to the successor.
#[derive(Clone, Debug)]
pub struct Fair {
    me: usize,
    /// The bytes that each origin was given.
    given: Vec<u64>,
    /// The number of packets of each origin that wait.
    waiting: Vec<usize>,
    /// The largest account of an origin at the time it was served, before the bytes of that packet.
    now: u64,
    /// This process had something to send when it was asked last.
    own: bool,
}

impl core::hash::Hash for Fair {
    /// Leaves out the accounts: the choice of the first packet decides nothing about correctness, and a search over all
    /// schedules tries both anyway.
    fn hash<H: core::hash::Hasher>(&self, _: &mut H) {}
}

impl Fair {
    /// The accounts of member `me` among `members`; no origin was given anything yet.
    pub fn new(members: usize, me: usize) -> Self {
        Self {
            me,
            given: vec![0; members],
            waiting: vec![0; members],
            now: 0,
            own: false,
        }
    }

    /// A packet of `origin` waits to be passed on.
    pub fn on_arrival(&mut self, origin: usize) {
        if self.waiting[origin] == 0 {
            self.given[origin] = self.given[origin].max(self.now);
        }
        self.waiting[origin] += 1;
    }

    /// Whether an own packet, if there is one (`own`), goes before that of `next`, if one waits.
    pub fn own_first(&mut self, own: bool, next: Option<usize>) -> bool {
        if own && !self.own {
            self.given[self.me] = self.given[self.me].max(self.now);
        }
        self.own = own;
        own && next
            .is_none_or(|next| !mutants::on(Mutant::L10) && self.given[self.me] < self.given[next])
    }

    /// A packet of `origin` was served. If it is to be passed on (and does not end here), it took `bytes`.
    pub fn on_served(&mut self, origin: usize, bytes: usize) {
        self.waiting[origin] = self.waiting[origin].saturating_sub(1);
        self.now = self.now.max(self.given[origin]);
        self.given[origin] += bytes as u64;
    }
}

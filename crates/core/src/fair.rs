//! Who is next on the link to the successor: this process with a packet of its own, or the packet of
//! another that waits to be passed on.
//!
//! What arrives has to be passed on in the order of its arrival: the order ≺ follows from that. So the only
//! choice there is, is when an own packet may go first. Each origin has an account of what it was given on
//! this link, in bytes (start-time fair queueing); an own packet goes first if less was given to this
//! process than to the origin of the packet that is next. Whoever had nothing to send saves nothing up.

use alloc::vec;
use alloc::vec::Vec;

use crate::mutants::{self, Mutant};

/// What each origin was given on the link to the successor.
#[derive(Clone, Debug)]
pub struct Fair {
    me: usize,
    /// What each origin was given, in bytes.
    given: Vec<u64>,
    /// How many packets of each wait.
    waiting: Vec<usize>,
    /// The account of whoever was served last, before that.
    now: u64,
    /// This process had something to send when it was asked last.
    own: bool,
}

impl core::hash::Hash for Fair {
    /// What is first is not what is right: a search over all schedules tries both anyway.
    fn hash<H: core::hash::Hasher>(&self, _: &mut H) {}
}

impl Fair {
    /// Of this member, `me`, among so many; nothing was given to anybody.
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

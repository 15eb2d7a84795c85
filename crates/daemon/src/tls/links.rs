//! All links of the thread: whose turn it is, and how long each may take.

use std::collections::VecDeque;
use std::time::Instant;

use slab::Slab;

use super::link::Link;
use crate::keys::KeyQueue;

/// The links, by a key that another one may have later; the number of a link is its own.
#[derive(Debug, Default)]
pub(super) struct Links {
    all: Slab<Link>,
    /// Links that have their turn next.
    work: KeyQueue,
    /// Links whose clients have not shown who they are, oldest first; some may have by now, or be over.
    handshakes: VecDeque<(usize, u64)>,
    newest: u64,
    /// A link may have a deadline.
    has_deadlines: bool,
}

impl Links {
    /// All links are over, whatever state they were in.
    pub fn clear(&mut self) {
        let newest = self.newest;
        *self = Self {
            newest,
            ..Self::default()
        };
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// The key of the next link.
    pub fn vacant_key(&self) -> usize {
        self.all.vacant_key()
    }

    /// Adds a link, under the key that was vacant, whose client has to show who it is; `make` gets its number.
    pub fn insert(&mut self, make: impl FnOnce(u64) -> Link) {
        self.newest += 1;
        let key = self.all.insert(make(self.newest));
        self.handshakes.push_back((key, self.newest));
        self.has_deadlines = true;
        self.work.push(key);
    }

    pub fn remove(&mut self, key: usize) -> Option<Link> {
        self.all.try_remove(key)
    }

    pub fn get_mut(&mut self, key: usize) -> Option<&mut Link> {
        self.all.get_mut(key)
    }

    /// The link with this key, if that is the one with this number, and its client has shown who it is.
    pub fn shown(&self, key: usize, number: u64) -> Option<&Link> {
        let link = self.all.get(key)?;
        let is_it = link.caller().number == number && link.is_handed_over();
        is_it.then_some(link)
    }

    /// All links whose clients have shown who they are, by key and number.
    pub fn all_shown(&self) -> impl Iterator<Item = (usize, u64)> {
        let shown = self.all.iter().filter(|(_, link)| link.is_handed_over());
        shown.map(|(key, link)| (key, link.caller().number))
    }

    /// All links whose clients have shown who they are, and that the ring's thread does not know yet.
    pub fn all_waiting(&self) -> Vec<usize> {
        let waiting = self.all.iter().filter(|(_, link)| link.is_shown());
        waiting.map(|(key, _)| key).collect()
    }

    /// The link has its turn soon.
    pub fn schedule(&mut self, key: usize) {
        self.work.push(key);
    }

    /// The number of links that have their turn now, with [`Self::next_turn`].
    pub fn turns(&self) -> usize {
        self.work.len()
    }

    pub fn next_turn(&mut self) -> Option<usize> {
        self.work.pop()
    }

    /// The link that has been in its handshake for longest, if there are as many as this.
    pub fn oldest_handshake(&mut self, most: usize) -> Option<usize> {
        if self.handshakes.len() < most {
            return None;
        }
        let all = &self.all;
        let is_open = |(key, number): &(usize, u64)| {
            let link = all.get(*key);
            link.is_some_and(|link| link.caller().number == *number && !link.is_handed_over())
        };
        self.handshakes.retain(is_open);
        let is_full = self.handshakes.len() >= most;
        let oldest = self.handshakes.pop_front_if(|_| is_full);
        oldest.map(|(key, _)| key)
    }

    /// The link is closed at this time in any case, if it has no deadline yet.
    pub fn end_by(&mut self, key: usize, deadline: Instant) {
        if let Some(link) = self.all.get_mut(key)
            && link.deadline().is_none()
        {
            self.begin_anew(key, deadline);
        }
    }

    /// The link is closed at this time in any case, and not at the deadline it had.
    pub fn begin_anew(&mut self, key: usize, deadline: Instant) {
        if let Some(link) = self.all.get_mut(key) {
            link.set_deadline(deadline);
            self.has_deadlines = true;
        }
    }

    /// A link may have to be closed in a while.
    pub const fn has_deadlines(&self) -> bool {
        self.has_deadlines
    }

    /// The links whose deadline has passed, which the caller is to close.
    pub fn late(&mut self, now: Instant) -> Vec<usize> {
        let is_late = |deadline: Instant| deadline <= now;
        let all = self.all.iter();
        let late = all.filter(|(_, link)| link.deadline().is_some_and(is_late));
        let late: Vec<usize> = late.map(|(key, _)| key).collect();
        let mut others = self.all.iter().filter_map(|(_, link)| link.deadline());
        self.has_deadlines = others.any(|deadline| !is_late(deadline));
        late
    }

    /// What holds after a turn of the thread: each handshake that is not done has a place in its row, and no deadline
    /// is forgotten.
    pub fn check(&self) {
        self.work.check();
        let handshakes = self.all.iter().filter(|(_, link)| link.is_awaited());
        debug_assert!(handshakes.count() <= self.handshakes.len());
        let mut deadlines = self.all.iter().filter_map(|(_, link)| link.deadline());
        debug_assert!(self.has_deadlines || deadlines.next().is_none());
    }
}

//! The recent changes of a partition's keys, for watchers. Without I/O.
//!
//! Each replica keeps what the commands that it applied have changed, as many bytes as it is configured to. The place of
//! a change is that of its command in the order, the same at each replica: so a watcher goes on from a place at any
//! replica of the partition. From a place behind which something is not kept any more it cannot go on, and is told so.
//!
//! The changes of one place are told together, or not at all; and not before the command of several partitions that they
//! stand behind is stable, as no other answer is ([`crate::outlook`]).

mod waiting;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;

use bytes::Bytes;
use rota_multiring::Place;
use rota_resp::slot;

use crate::mutants::{self, Mutant};
use crate::store::{Change, Changed};
use waiting::Waiting;

/// The memory of a place beside its changes, about.
const PLACE_BYTES: usize = 128;
/// The bytes of changes that are told at once, at most, unless one place has more.
const MOST_PART_BYTES: usize = 1 << 20;
/// The number of changes that are looked at at once, about: commands that would change something wait meanwhile.
const MOST_LOOKED: usize = 500;

/// The code that is called once when there is news for a watcher. The place: up to there, nothing concerns the watcher
/// that it has not seen; `None`: it looks again from where it was.
pub type Then = Box<dyn FnOnce(Option<Place>) + Send>;

/// The keys that a watcher watches: those that begin so.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Prefix {
    begins: Bytes,
    /// The slot of all of them, if a tag is whole in the prefix.
    slot: Option<u16>,
}

impl Prefix {
    /// All keys that begin so.
    pub fn new(begins: Bytes) -> Self {
        let slot = slot::of_prefix(&begins);
        Self { begins, slot }
    }

    /// The slot of all keys that begin so; `None`: they may be in several.
    pub const fn slot(&self) -> Option<u16> {
        self.slot
    }

    /// Whether a change concerns the watcher. Slots that come or go concern all watchers of them.
    pub fn is_of(&self, change: &Change) -> bool {
        match change {
            Change::Set(key, _) | Change::Deleted(key) | Change::Expired(key) => {
                key.starts_with(&self.begins)
            }
            Change::Cleared => true,
            Change::Left(slots, _) | Change::Arrived(slots, _) => {
                self.slot.is_none_or(|slot| slots.has(slot))
            }
        }
    }
}

/// Not all changes behind a place are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trimmed {
    /// The first place from which a watcher can go on: all changes behind it are kept.
    pub first: Place,
}

/// Changes that a watcher is told.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Part {
    /// The changes that concern the watcher, by places, in their order.
    pub told: Vec<(Place, Vec<Change>)>,
    /// The place to go on from: no other change up to there concerns the watcher. `None`: from the beginning.
    pub next: Option<Place>,
    /// There is nothing more that may be told now.
    pub is_all: bool,
    /// There is more, but it may not be told before this command is stable.
    pub waits: Option<Place>,
}

/// The figures of the memory.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Kept {
    /// The number of places whose changes are kept.
    pub places: usize,
    /// Their memory, in bytes, about.
    pub bytes: usize,
    /// The number of watchers that wait.
    pub waiting: usize,
}

/// The changes that are kept, and the watchers that wait for more.
pub struct Changes {
    most_bytes: usize,
    /// Each with its bytes.
    kept: VecDeque<(Changed, usize)>,
    bytes: usize,
    /// All changes behind this place are kept; `None`: all changes.
    floor: Option<Place>,
    waiting: Waiting,
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut of = f.debug_struct("Changes");
        of.field("kept", &self.figures()).finish_non_exhaustive()
    }
}

impl Changes {
    /// A memory for so many bytes, of a store that has done nothing.
    pub fn new(most_bytes: usize) -> Self {
        Self {
            most_bytes,
            kept: VecDeque::new(),
            bytes: 0,
            floor: None,
            waiting: Waiting::default(),
        }
    }

    /// Begins anew with a state that is at this place: what led there is not known.
    pub fn begin(&mut self, at: Option<Place>) {
        self.kept.clear();
        self.bytes = 0;
        if !mutants::on(Mutant::T16) {
            self.floor = at;
        }
        self.waiting.wake_all(None);
    }

    /// Takes in changes, whose place is behind all others, and wakes the watchers that they concern.
    pub fn push(&mut self, changed: Changed) {
        let before = self.last();
        debug_assert!(before < Some(changed.place), "changes come in their order");
        let changes = changed.changes.iter().map(Change::bytes);
        let bytes = PLACE_BYTES + changes.sum::<usize>();
        self.waiting.wake(&changed, before);
        self.kept.push_back((changed, bytes));
        self.bytes += bytes;
        while self.bytes > self.most_bytes
            && let Some((oldest, bytes)) = self.kept.pop_front()
        {
            self.bytes -= bytes;
            self.floor = Some(oldest.place);
        }
    }

    /// The last place at which anything has changed, as far as is known.
    pub fn last(&self) -> Option<Place> {
        let last = self.kept.back().map(|(changed, _)| changed.place);
        last.or(self.floor)
    }

    /// The changes behind a place that concern a watcher: `most` at first, and then those of the same place.
    /// `stable`: the last command of several partitions up to which all are stable.
    ///
    /// # Errors
    /// [`Trimmed`].
    pub fn read(
        &self,
        prefix: &Prefix,
        after: Option<Place>,
        (stable, most): (Option<Place>, usize),
    ) -> Result<Part, Trimmed> {
        if let Some(first) = self.floor.filter(|floor| after < Some(*floor)) {
            return Err(Trimmed { first });
        }
        let begin = self.kept.partition_point(|(of, _)| Some(of.place) <= after);
        let (mut part, mut limits) = (Part::default(), Limits::new(most));
        part.next = after;
        for (changed, _) in self.kept.range(begin..) {
            if changed.behind > stable && !mutants::on(Mutant::T14) {
                part.waits = changed.behind;
                return Ok(part);
            }
            if limits.are_reached() {
                return Ok(part);
            }
            let own = limits.take(prefix, changed);
            if !own.is_empty() {
                part.told.push((changed.place, own));
            }
            part.next = Some(changed.place);
        }
        part.is_all = true;
        Ok(part)
    }

    /// Has a watcher that has seen everything up to a place woken, once, by the next change that concerns it. The name
    /// is for [`Self::give_up`].
    pub fn wait(&mut self, prefix: &Prefix, after: Option<Place>, then: Then) -> u64 {
        self.waiting.add(&prefix.begins, (after, then))
    }

    /// Drops a watcher that waits.
    pub fn give_up(&mut self, prefix: &Prefix, name: u64) {
        self.waiting.remove(&prefix.begins, name);
    }

    /// The figures of the memory.
    pub fn figures(&self) -> Kept {
        Kept {
            places: self.kept.len(),
            bytes: self.bytes,
            waiting: self.waiting.count(),
        }
    }
}

/// The limits of one part.
struct Limits {
    most: usize,
    count: usize,
    bytes: usize,
    looked: usize,
}

impl Limits {
    const fn new(most: usize) -> Self {
        Self {
            most,
            count: 0,
            bytes: 0,
            looked: 0,
        }
    }

    /// Whether the part ends here. A place is never cut in two.
    const fn are_reached(&self) -> bool {
        self.count >= self.most || self.bytes >= MOST_PART_BYTES || self.looked >= MOST_LOOKED
    }

    /// The changes of a place that concern a watcher.
    fn take(&mut self, prefix: &Prefix, changed: &Changed) -> Vec<Change> {
        self.looked += changed.changes.len();
        let own = changed.changes.iter().filter(|change| prefix.is_of(change));
        let mut own: Vec<Change> = own.cloned().collect();
        if mutants::on(Mutant::T15) {
            own.truncate(self.most - self.count);
        }
        self.count += own.len();
        self.bytes += own.iter().map(Change::bytes).sum::<usize>();
        own
    }
}

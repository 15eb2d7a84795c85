//! The steps of moves, as a partition applies them.

use std::sync::Arc;

use bytes::Bytes;
use imbl::{OrdMap, OrdSet};

use super::action::Action;
use super::batch::{Batch, Operation};
use super::outcome::Outcome;
use super::state::Store;
use super::step::{Copied, Freeze, MoveName, Step};
use super::value::Entry;
use crate::map::Map;
use crate::mutants::{self, Mutant};
use crate::slots::Slots;

/// The time without a step, in milliseconds, after which a move gives way to another one.
const STALE_AFTER: u64 = 2_000;

/// The keys that were copied here for a move.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Aside {
    pub(super) of: MoveName,
    /// The number of copies.
    pub(super) count: u32,
    /// The time of the last copy.
    pub(super) touched: u64,
    pub(super) keys: OrdMap<Bytes, Entry>,
    pub(super) bytes: usize,
}

/// A partition as it is at a moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// All keys.
    pub keys: OrdMap<Bytes, Entry>,
    /// The slot of each key.
    pub by_slot: OrdSet<(u16, Bytes)>,
    /// The time, as commands have it.
    pub now: u64,
    /// The partition of each slot.
    pub map: Arc<Map>,
    /// The move whose slots are frozen.
    pub frozen: Option<MoveName>,
}

impl Aside {
    pub(super) fn new(of: MoveName, touched: u64) -> Self {
        Self {
            of,
            count: 0,
            touched,
            keys: OrdMap::new(),
            bytes: 0,
        }
    }

    pub(super) fn put(&mut self, key: Bytes, entry: Option<Entry>) {
        let old = match entry {
            Some(entry) => {
                self.bytes += entry.takes(&key);
                self.keys.insert(key.clone(), entry)
            }
            None => self.keys.remove(&key),
        };
        self.bytes -= old.map_or(0, |old| old.takes(&key));
    }

    fn copy(&mut self, key: &Bytes, copied: Option<&Copied>) {
        let Some(copied) = copied else {
            return self.put(key.clone(), None);
        };
        let before = self.keys.get(key).filter(|_| copied.is_more);
        let entry = match before {
            Some(before) => before.with(&copied.entry),
            None => copied.entry.clone(),
        };
        self.put(key.clone(), Some(entry));
    }
}

impl Store {
    /// A snapshot of the partition. It takes no time: later changes are kept apart.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            keys: self.keys.clone(),
            by_slot: self.by_slot.clone(),
            now: self.now,
            map: Arc::clone(&self.map),
            frozen: self.frozen.as_ref().map(|frozen| frozen.of),
        }
    }

    /// The slots that this partition is about to give away.
    pub(super) fn gives(&self) -> Option<&Slots> {
        let own = self.frozen.as_ref().filter(|frozen| frozen.from == self.me);
        own.map(|frozen| &frozen.slots)
            .filter(|_| !mutants::on(Mutant::T10))
    }

    /// The slots that are frozen.
    pub const fn frozen(&self) -> Option<&Freeze> {
        self.frozen.as_ref()
    }

    /// The move whose keys are copied here and are not the partition's own yet, and the number of copies.
    pub fn aside(&self) -> Option<(MoveName, u32)> {
        self.aside.as_ref().map(|aside| (aside.of, aside.count))
    }

    /// Whether the sender of a batch does not know the partition of its slots, or the slots are frozen: then nothing is
    /// done, and the sender has to ask again. All partitions decide the same.
    pub(super) fn is_moving(&self, batch: &Batch<'_>) -> bool {
        let names = batch.conditions.iter().map(|(key, _)| *key);
        let operations = batch.operations.iter().filter_map(Operation::key);
        let mut keys = names.chain(operations).peekable();
        if keys.peek().is_some() && batch.epoch > self.map.epoch() {
            return true;
        }
        let has_moved = |key| self.map.since(slot_of(key)) > batch.epoch;
        let is_old = batch.epoch < self.map.epoch() && !mutants::on(Mutant::T06);
        if is_old && keys.any(has_moved) {
            return true;
        }
        let frozen = self.frozen.as_ref().filter(|_| !mutants::on(Mutant::T05));
        frozen.is_some_and(|frozen| {
            let mut operations = batch.operations.iter();
            operations.any(|operation| operation.writes_to(&frozen.slots))
        })
    }

    pub(super) fn step(&mut self, step: &Step) -> Outcome {
        match step {
            step if step.only_for().is_some_and(|only| only != self.me) => Outcome::Nothing,
            Step::Copy { of, at, keys, .. } => self.copy(*of, *at, keys),
            Step::Forget { of, .. } => done(self.forget_aside(*of)),
            Step::Freeze(freeze) => done(self.freeze_slots(freeze)),
            Step::Give(of) => done(self.give(*of)),
            Step::End(of) => done(self.end(*of)),
        }
    }

    /// Takes in a copy; the number of copies then, or nothing, if it is not the turn of this one.
    fn copy(&mut self, of: MoveName, at: u32, keys: &[(Bytes, Option<Copied>)]) -> Outcome {
        let is_others = |frozen: &Freeze| frozen.of != of;
        if self.frozen.as_ref().is_some_and(is_others) {
            return Outcome::Nothing;
        }
        let now = self.now;
        let is_busy = |aside: &Aside| aside.of != of && now < aside.touched + STALE_AFTER;
        if at == 0 && !self.aside.as_ref().is_some_and(is_busy) {
            self.aside = Some(Aside::new(of, now));
        }
        let own = self.aside.as_mut();
        let Some(aside) = own.filter(|aside| aside.of == of && aside.count == at) else {
            return Outcome::Nothing;
        };
        aside.count += 1;
        aside.touched = now;
        for (key, copied) in keys {
            aside.copy(key, copied.as_ref());
        }
        Outcome::Number(i64::from(aside.count))
    }

    fn freeze_slots(&mut self, freeze: &Freeze) -> bool {
        let is_own = |slot| self.map.of_slot(slot) == freeze.from;
        let may = self.frozen.is_none()
            && freeze.from != freeze.to
            && self.map.partitions().contains(&freeze.to)
            && freeze.slots.iter().all(is_own);
        if may {
            self.frozen = Some(freeze.clone());
            self.stands = self.now;
        }
        may
    }

    fn give(&mut self, of: MoveName) -> bool {
        let Some(freeze) = self.frozen.take_if(|frozen| frozen.of == of) else {
            return false;
        };
        Arc::make_mut(&mut self.map).give(&freeze.slots, freeze.to);
        if self.me == freeze.from && !mutants::on(Mutant::T08) {
            for slot in freeze.slots.iter() {
                self.remove_slot(slot);
            }
        }
        let aside = self.aside.take_if(|aside| aside.of == of);
        if self.me == freeze.to {
            let keys = aside.map_or_else(OrdMap::new, |aside| aside.keys);
            for (key, entry) in keys {
                if freeze.slots.has(slot_of(&key)) {
                    self.put(key, entry);
                }
            }
        }
        self.has_mapped();
        true
    }

    fn end(&mut self, of: MoveName) -> bool {
        let aside = self.aside.take_if(|aside| aside.of == of);
        let frozen = self.frozen.take_if(|frozen| frozen.of == of);
        aside.is_some() || frozen.is_some()
    }

    /// Forgets copied keys, but not after a freeze: the process that gives the slots believes that the keys are here.
    fn forget_aside(&mut self, of: MoveName) -> bool {
        let is_frozen = self.frozen.as_ref().is_some_and(|frozen| frozen.of == of);
        let may = !is_frozen || mutants::on(Mutant::T11);
        self.aside.take_if(|aside| may && aside.of == of).is_some()
    }

    fn remove_slot(&mut self, slot: u16) {
        let from = (slot, Bytes::new());
        let of = self.by_slot.range(from..(slot + 1, Bytes::new()));
        let keys: Vec<Bytes> = of.map(|(_, key)| key.clone()).collect();
        for key in keys {
            self.remove(&key);
        }
    }
}

pub(super) fn slot_of(key: &[u8]) -> u16 {
    rota_resp::slot::of(key)
}

const fn done(is_done: bool) -> Outcome {
    match is_done {
        true => Outcome::Done,
        false => Outcome::Nothing,
    }
}

impl Operation<'_> {
    /// The key of an operation on one.
    const fn key(&self) -> Option<&[u8]> {
        match self {
            Self::Key(key, _) => Some(key),
            _ => None,
        }
    }

    /// Whether the operation changes keys in some of these slots, or might.
    fn writes_to(&self, slots: &Slots) -> bool {
        match self {
            Self::Key(key, action) => Action::writes(action) && slots.has(slot_of(key)),
            Self::Clear => true,
            Self::Range { .. } | Self::Size(_) | Self::Step(_) => false,
        }
    }
}

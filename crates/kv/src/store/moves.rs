//! The moves of slots that a partition takes part in: the keys that are copied here, and the slots that are frozen.

use std::sync::Arc;

use bytes::Bytes;
use imbl::{OrdMap, OrdSet};

use super::action::Action;
use super::arrived::{free_keys, slot_of};
use super::batch::{Batch, Operation};
use super::outcome::Outcome;
use super::step::{Copied, Freeze, MoveName};
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

/// The moves that a partition takes part in.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Moves {
    /// The slots that are frozen, since they are to have another partition.
    frozen: Option<Freeze>,
    /// The keys that are copied from a partition whose slots this one is to have.
    aside: Option<Aside>,
}

/// A partition as it is at a moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// All keys of settled slots.
    pub keys: OrdMap<Bytes, Entry>,
    /// The slot of each of these keys.
    pub by_slot: OrdSet<(u16, Bytes)>,
    /// The slots that have come or gone not long ago: their keys are not where they belong yet.
    pub unsettled: Slots,
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

impl Moves {
    /// The moves of a state.
    pub(super) const fn begin(frozen: Option<Freeze>, aside: Option<Aside>) -> Self {
        Self { frozen, aside }
    }

    /// The slots that are frozen.
    pub(super) const fn frozen(&self) -> Option<&Freeze> {
        self.frozen.as_ref()
    }

    /// The keys that are copied here.
    pub(super) const fn aside(&self) -> Option<&Aside> {
        self.aside.as_ref()
    }

    /// The memory of copied keys, about.
    pub(super) fn bytes(&self) -> usize {
        self.aside.as_ref().map_or(0, |aside| aside.bytes)
    }

    /// Whether the slots that a batch writes to are frozen, or might be.
    pub(super) fn stops(&self, batch: &Batch<'_>) -> bool {
        let frozen = self.frozen.as_ref().filter(|_| !mutants::on(Mutant::T05));
        frozen.is_some_and(|frozen| {
            let mut operations = batch.operations.iter();
            operations.any(|operation| operation.writes_to(&frozen.slots))
        })
    }

    /// Takes in a copy; the number of copies then, or nothing, if it is not the turn of this one.
    pub(super) fn copy(
        &mut self,
        (of, at): (MoveName, u32),
        keys: &[(Bytes, Option<Copied>)],
        now: u64,
    ) -> Outcome {
        let is_others = |frozen: &Freeze| frozen.of != of;
        if self.frozen.as_ref().is_some_and(is_others) {
            return Outcome::Nothing;
        }
        let is_busy = |aside: &Aside| aside.of != of && now < aside.touched + STALE_AFTER;
        if at == 0 && !self.aside.as_ref().is_some_and(is_busy) {
            let before = self.aside.replace(Aside::new(of, now));
            before.into_iter().for_each(|aside| free_keys(aside.keys));
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

    /// Freezes slots, if `map` and other moves allow it.
    pub(super) fn freeze(&mut self, freeze: &Freeze, map: &Map) -> bool {
        let is_own = |slot| map.of_slot(slot) == freeze.from;
        let may = self.frozen.is_none()
            && freeze.from != freeze.to
            && map.partitions().contains(&freeze.to)
            && freeze.slots.iter().all(is_own);
        if may {
            self.frozen = Some(freeze.clone());
        }
        may
    }

    /// Ends a move whose slots are frozen, as they are to have another partition now: with the keys that were copied
    /// here for it.
    pub(super) fn give(&mut self, of: MoveName) -> Option<(Freeze, Option<Aside>)> {
        let freeze = self.frozen.take_if(|frozen| frozen.of == of)?;
        Some((freeze, self.aside.take_if(|aside| aside.of == of)))
    }

    /// Ends a move: its slots stay where they are.
    pub(super) fn end(&mut self, of: MoveName) -> bool {
        let frozen = self.frozen.take_if(|frozen| frozen.of == of);
        let aside = self.aside.take_if(|aside| aside.of == of);
        let is_done = aside.is_some() || frozen.is_some();
        aside.into_iter().for_each(|aside| free_keys(aside.keys));
        is_done
    }

    /// Forgets copied keys, but not after a freeze: the process that gives the slots believes that the keys are here.
    pub(super) fn forget(&mut self, of: MoveName) -> bool {
        let is_frozen = self.frozen.as_ref().is_some_and(|frozen| frozen.of == of);
        let may = !is_frozen || mutants::on(Mutant::T11);
        let aside = self.aside.take_if(|aside| may && aside.of == of);
        let is_done = aside.is_some();
        aside.into_iter().for_each(|aside| free_keys(aside.keys));
        is_done
    }
}

impl Operation<'_> {
    /// The key of an operation on one.
    pub(super) const fn key(&self) -> Option<&[u8]> {
        match self {
            Self::Key(key, _) => Some(key),
            _ => None,
        }
    }

    /// Whether the operation changes keys in some of these slots, or might.
    fn writes_to(&self, slots: &Slots) -> bool {
        match self {
            Self::Key(key, action) => Action::writes(action) && slots.has(slot_of(key)),
            Self::Clear(_) => true,
            Self::Range { .. } | Self::Size(_) | Self::Step(_) | Self::Time => false,
        }
    }
}

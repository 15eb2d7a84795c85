//! The keys of a partition, whose slots come and go as wholes, however many keys they have.
//!
//! A partition gives slots away, and gets slots, at one place of the order, and commands wait for what is done there. So
//! neither takes keys one by one: the keys of slots that have left stay where they are and count no more, those of slots
//! that have arrived stay together as they came, and each later message brings some of both to where they belong
//! ([`Keys::settle`]). All of this is part of the state: replicas settle the same keys at the same messages.
//!
//! | slot | its keys are |
//! |---|---|
//! | settled | in `settled` |
//! | left | nowhere; those that are still in `settled` are *stale* |
//! | arrived | in the group that it came with or, once they were settled or written to, in `settled` |
//! | arrived before what it had here earlier was forgotten | in its group: in `settled` they are stale |

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use imbl::{OrdMap, OrdSet};
use rota_resp::slot::SLOTS;

use super::arrived::{Arrived, free, free_entry, free_keys, free_replaced, slot_of};
use super::value::Entry;
use crate::mutants::{self, Mutant};
use crate::slots::Slots;

/// The keys of a partition.
pub(super) struct Keys {
    settled: OrdMap<Bytes, Entry>,
    /// The slot of each settled key, and the number of these keys for each slot.
    by_slot: OrdSet<(u16, Bytes)>,
    counts: Box<[u32]>,
    /// Settled keys that do not live for ever, by their ends.
    ends: BTreeSet<(u64, Bytes)>,
    /// The memory of settled keys, about.
    bytes: usize,
    /// Slots whose settled keys are stale, and the number of these keys.
    left: Slots,
    stale: usize,
    /// The oldest first. No slot is in two of them.
    arrived: VecDeque<Arrived>,
}

fn of_slot(slot: u16) -> std::ops::Range<(u16, Bytes)> {
    (slot, Bytes::new())..(slot + 1, Bytes::new())
}

impl Default for Keys {
    fn default() -> Self {
        Self {
            settled: OrdMap::new(),
            by_slot: OrdSet::new(),
            counts: vec![0; usize::from(SLOTS)].into(),
            ends: BTreeSet::new(),
            bytes: 0,
            left: Slots::default(),
            stale: 0,
            arrived: VecDeque::new(),
        }
    }
}

impl Keys {
    /// The keys of a state: those that were settled, the slots of which they are stale, and the groups that had arrived.
    pub(super) fn begin(
        settled: OrdMap<Bytes, Entry>,
        left: Slots,
        arrived: impl IntoIterator<Item = Arrived>,
    ) -> Self {
        let mut keys = Self::default();
        for (key, entry) in settled {
            keys.put_settled(key, entry);
        }
        let count = |slot: u16| keys.counts[usize::from(slot)] as usize;
        let left: Slots = left.iter().filter(|slot| count(*slot) > 0).collect();
        keys.stale = left.iter().map(count).sum();
        (keys.left, keys.arrived) = (left, arrived.into_iter().collect());
        keys
    }

    /// The settled keys, with stale ones.
    pub(super) const fn settled(&self) -> &OrdMap<Bytes, Entry> {
        &self.settled
    }

    /// The slots of settled keys.
    pub(super) const fn by_slot(&self) -> &OrdSet<(u16, Bytes)> {
        &self.by_slot
    }

    /// The slots whose settled keys are stale.
    pub(super) const fn left(&self) -> &Slots {
        &self.left
    }

    /// The groups that have arrived and are not settled yet.
    pub(super) const fn arrived(&self) -> &VecDeque<Arrived> {
        &self.arrived
    }

    /// The slots of which something is not settled.
    pub(super) fn unsettled(&self) -> Slots {
        let arrived = self.arrived.iter().flat_map(|group| group.slots.iter());
        self.left.iter().chain(arrived).collect()
    }

    pub(super) fn is_settled(&self) -> bool {
        self.left.is_empty() && self.arrived.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        let arrived = self.arrived.iter().map(|group| group.keys.len());
        self.settled.len() - self.stale + arrived.sum::<usize>()
    }

    /// The number of settled keys that have an end.
    pub(super) fn ending(&self) -> usize {
        self.ends.len()
    }

    /// The memory of all entries, about, with those of stale keys.
    pub(super) fn bytes(&self) -> usize {
        let arrived = self.arrived.iter().map(|group| group.bytes);
        self.bytes + arrived.sum::<usize>()
    }

    fn group(&self, slot: u16) -> Option<&Arrived> {
        self.arrived.iter().find(|group| group.slots.has(slot))
    }

    fn group_mut(&mut self, slot: u16) -> Option<&mut Arrived> {
        self.arrived.iter_mut().find(|group| group.slots.has(slot))
    }

    /// The group of a slot that has come back; a new one, if none has it.
    fn group_of(&mut self, slot: u16) -> &mut Arrived {
        let found = self.arrived.iter().position(|group| group.slots.has(slot));
        let at = found.unwrap_or(self.arrived.len());
        if at == self.arrived.len() {
            let slots = [slot].into_iter().collect();
            self.arrived
                .push_back(Arrived::new(slots, OrdMap::new(), 0));
        }
        &mut self.arrived[at]
    }

    fn is_stale(&self, slot: u16) -> bool {
        self.left.has(slot) && !mutants::on(Mutant::T12)
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<&Entry> {
        if self.is_settled() {
            return self.settled.get(key);
        }
        let slot = slot_of(key);
        let arrived = self.group(slot).and_then(|group| group.keys.get(key));
        arrived.or_else(|| self.settled.get(key).filter(|_| !self.is_stale(slot)))
    }

    /// The keys from one on, in order; without an entry where a key is stale.
    pub(super) fn range(&self, from: &[u8]) -> impl Iterator<Item = (&Bytes, Option<&Entry>)> {
        let from = Bytes::copy_from_slice(from);
        let live = |key: &Bytes| self.left.is_empty() || !self.is_stale(slot_of(key));
        let settled = self.settled.range(from.clone()..);
        let settled = settled.map(move |(key, entry)| (key, live(key).then_some(entry)));
        let mut settled = settled.peekable();
        let arrived = self.arrived.iter().map(|group| {
            let group = group.keys.range(from.clone()..);
            group.map(|(key, entry)| (key, Some(entry))).peekable()
        });
        let mut arrived: Vec<_> = arrived.collect();
        std::iter::from_fn(move || {
            let first = settled.peek().map(|(key, _)| *key);
            let keyed = arrived.iter_mut().enumerate();
            let keyed = keyed.filter_map(|(at, group)| Some((group.peek()?.0, at)));
            match (first, keyed.min()) {
                // A stale key comes before one that has arrived: nobody goes on at a key that was told.
                (Some(first), Some((key, at))) if key < first => arrived[at].next(),
                (None, Some((_, at))) => arrived[at].next(),
                _ => settled.next(),
            }
        })
    }

    fn put_settled(&mut self, key: Bytes, entry: Entry) {
        self.bytes += entry.takes(&key);
        let (until, has_fields) = (entry.until, entry.has_fields());
        match self.settled.insert(key.clone(), entry) {
            Some(old) => {
                self.uncount(&key, &old);
                free_replaced(old, has_fields);
            }
            None => {
                let slot = slot_of(&key);
                self.counts[usize::from(slot)] += 1;
                self.by_slot.insert((slot, key.clone()));
            }
        }
        if let Some(until) = until {
            self.ends.insert((until, key));
        }
    }

    /// Counts an entry no more.
    fn uncount(&mut self, key: &Bytes, old: &Entry) {
        self.bytes -= old.takes(key);
        if let Some(until) = old.until {
            self.ends.remove(&(until, key.clone()));
        }
    }

    fn remove_settled(&mut self, key: &[u8]) -> bool {
        let Some((key, old)) = self.settled.remove_with_key(key) else {
            return false;
        };
        self.uncount(&key, &old);
        free_entry(old);
        let slot = slot_of(&key);
        self.counts[usize::from(slot)] -= 1;
        self.by_slot.remove(&(slot, key));
        true
    }

    /// Gives a key of an own slot an entry.
    pub(super) fn put(&mut self, key: Bytes, entry: Entry) {
        if self.is_settled() {
            return self.put_settled(key, entry);
        }
        let slot = slot_of(&key);
        if self.left.has(slot) {
            return self.group_of(slot).put(key, entry);
        }
        let group = self.group_mut(slot).filter(|_| !mutants::on(Mutant::T13));
        if let Some((_, old)) = group.and_then(|group| group.remove(&key)) {
            free_replaced(old, entry.has_fields());
        }
        self.put_settled(key, entry);
    }

    /// Removes a key; whether it was there.
    pub(super) fn remove(&mut self, key: &[u8]) -> bool {
        if self.is_settled() {
            return self.remove_settled(key);
        }
        let slot = slot_of(key);
        let arrived = self.group_mut(slot).and_then(|group| group.remove(key));
        match arrived {
            Some((_, old)) => {
                free_entry(old);
                true
            }
            None => !self.is_stale(slot) && self.remove_settled(key),
        }
    }

    /// Removes all keys.
    pub(super) fn clear(&mut self) {
        let before = std::mem::take(self);
        free(
            before.settled.len(),
            (before.settled, before.by_slot, before.ends),
        );
        for group in before.arrived {
            free_keys(group.keys);
        }
    }

    /// The first end of a settled key.
    pub(super) fn first_end(&self) -> Option<u64> {
        self.ends.first().map(|(end, _)| *end)
    }

    /// Removes the settled key whose end comes first, if it has come: the key, and whether it was there (not stale).
    pub(super) fn remove_ended(&mut self, now: u64) -> Option<(Bytes, bool)> {
        let first = self.ends.first().filter(|(end, _)| *end <= now);
        let (_, key) = first.cloned()?;
        let was_there = !self.left.has(slot_of(&key));
        if was_there {
            self.remove_settled(&key);
        } else {
            self.forget_stale(&key);
        }
        Some((key, was_there))
    }

    /// Gives slots away. Takes no longer if they have many keys.
    pub(super) fn leave(&mut self, slots: &Slots) {
        for group in &mut self.arrived {
            group.leave(slots);
        }
        self.arrived.retain(|group| !group.slots.is_empty());
        // Slots that had left before, and had come back, have left again.
        for slot in slots.iter() {
            let count = self.counts[usize::from(slot)] as usize;
            if count > 0 && !self.left.has(slot) {
                self.left.insert(slot);
                self.stale += count;
            }
        }
    }

    /// Takes in slots, with these keys. Takes no longer if there are many.
    pub(super) fn arrive(&mut self, slots: &Slots, keys: OrdMap<Bytes, Entry>, bytes: usize) {
        let had = slots.iter().any(|slot| self.left.has(slot));
        if had || !keys.is_empty() && !slots.is_empty() {
            self.arrived
                .push_back(Arrived::new(slots.clone(), keys, bytes));
        }
    }

    /// Brings keys to where they belong: `most` of them, at most. Stale ones are forgotten first: a slot may have come
    /// back.
    pub(super) fn settle(&mut self, most: usize) {
        let mut more = most;
        while more > 0 && !self.is_settled() {
            more -= match self.left.first() {
                Some(slot) => self.forget_some(slot, more),
                None => self.settle_some(more),
            };
        }
    }

    /// Forgets stale keys of a slot; how many, but one at least.
    fn forget_some(&mut self, slot: u16, most: usize) -> usize {
        let names = self.by_slot.range(of_slot(slot)).take(most);
        let names: Vec<Bytes> = names.map(|(_, key)| key.clone()).collect();
        names.iter().for_each(|key| self.forget_stale(key));
        names.len().max(1)
    }

    fn forget_stale(&mut self, key: &Bytes) {
        let slot = slot_of(key);
        self.remove_settled(key);
        self.stale -= 1;
        if self.counts[usize::from(slot)] == 0 {
            self.left.remove(slot);
        }
    }

    /// Settles keys of the group that has arrived first; how many, but one at least.
    fn settle_some(&mut self, most: usize) -> usize {
        let Some(group) = self.arrived.front_mut() else {
            return most;
        };
        let names: Vec<Bytes> = group.keys.keys().take(most).cloned().collect();
        let taken = names.iter().filter_map(|key| group.remove(key));
        let taken: Vec<(Bytes, Entry)> = taken.collect();
        if group.keys.is_empty() {
            self.arrived.pop_front();
        }
        for (key, entry) in taken {
            self.put_settled(key, entry);
        }
        names.len().max(1)
    }

    /// Checks the invariants. `is_own`: whether a slot is the partition's.
    pub(super) fn check(&self, is_own: impl Fn(u16) -> bool) {
        let takes = self.settled.iter().map(|(key, entry)| entry.takes(key));
        assert_eq!(takes.sum::<usize>(), self.bytes, "the bytes of all keys");
        let by_slot = self.settled.keys().map(|key| (slot_of(key), key.clone()));
        assert_eq!(by_slot.collect::<OrdSet<_>>(), self.by_slot, "slots");
        let mut counts: Box<[u32]> = vec![0; usize::from(SLOTS)].into();
        for (slot, _) in &self.by_slot {
            counts[usize::from(*slot)] += 1;
        }
        assert_eq!(counts, self.counts, "the number of keys of each slot");
        let ends = self
            .settled
            .iter()
            .filter(|(_, entry)| entry.until.is_some());
        assert_eq!(ends.count(), self.ends.len(), "keys with an end");
        for (end, key) in &self.ends {
            let until = self.settled.get(key).and_then(|entry| entry.until);
            assert_eq!(until, Some(*end), "the end of a key");
        }
        let stale = self
            .settled
            .keys()
            .filter(|key| self.left.has(slot_of(key)));
        assert_eq!(stale.count(), self.stale, "stale keys");
        for group in &self.arrived {
            let takes = group.keys.iter().map(|(key, entry)| entry.takes(key));
            assert_eq!(takes.sum::<usize>(), group.bytes, "the bytes of a group");
            for key in group.keys.keys() {
                let slot = slot_of(key);
                assert!(group.slots.has(slot), "a key of the group");
                let is_twice = self.settled.contains_key(key) && !self.left.has(slot);
                assert!(!is_twice, "a key is in one place");
            }
        }
        for (key, entry) in self.range(b"") {
            let Some(entry) = entry else { continue };
            assert_eq!(entry.value.bytes(), entry.bytes, "the bytes of a value");
            assert!(is_own(slot_of(key)), "a key of this partition");
        }
    }
}

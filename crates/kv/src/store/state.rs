//! The state of a partition, as a state machine.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;
use imbl::{OrdMap, OrdSet};
use rota_multiring::Place;
use rota_replica::{Command, Machine};

use super::MOST_ANSWER_BYTES;
use super::batch::Batch;
use super::frozen::FrozenStore;
use super::moves::{Aside, slot_of};
use super::outcome::{Answer, Answered};
use super::pack::{Pack, place_of};
use super::step::Freeze;
use super::value::Entry;
use crate::map::{Map, Partition, Partitions};

/// The number of ended keys, at most, that a command removes: a command takes no longer for others' sake.
const MOST_SWEPT: usize = 32;
/// The same for a message without commands.
const MOST_SWEPT_IDLE: usize = 1_024;
/// The number of keys whose memory takes long to free.
const MANY: usize = 10_000;

/// An observer of the commands of several partitions.
pub trait Witness: Send {
    /// The store begins with a state, in which the commands up to this one were delivered.
    fn began(&mut self, seen: Option<Place>);

    /// A command of these partitions is delivered.
    fn delivered(&mut self, place: Place, of: &Partitions);

    /// The map, at the beginning and after each change.
    fn mapped(&mut self, map: &Arc<Map>);
}

/// A partition's keys, and the machine that commands change them by.
pub struct Store {
    pub(super) me: Partition,
    pub(super) map: Arc<Map>,
    /// The greatest time of all commands.
    pub(super) now: u64,
    /// The last command of several partitions, of which this is one.
    pub(super) last: Option<Place>,
    /// The last command of several partitions, also if this is none of them.
    pub(super) seen: Option<Place>,
    /// The last command.
    pub(super) applied: Option<Place>,
    pub(super) keys: OrdMap<Bytes, Entry>,
    /// The slot of each key.
    pub(super) by_slot: OrdSet<(u16, Bytes)>,
    /// The slots that are frozen, since they are to have another partition.
    pub(super) frozen: Option<Freeze>,
    /// The time at which the frozen slots stand still.
    pub(super) stands: u64,
    /// The keys that are copied from a partition whose slots this one is to have.
    pub(super) aside: Option<Aside>,
    /// Keys that do not live for ever, by their ends.
    pub(super) ends: BTreeSet<(u64, Bytes)>,
    /// The memory of all entries, about.
    pub(super) bytes: usize,
    witness: Option<Box<dyn Witness>>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut of = f.debug_struct("Store");
        let of = of.field("me", &self.me).field("keys", &self.keys.len());
        of.field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Store {
    /// A partition without a key. `map`: the same for all partitions.
    pub fn new(me: Partition, map: impl Into<Arc<Map>>) -> Self {
        Self {
            me,
            map: map.into(),
            now: 0,
            last: None,
            seen: None,
            applied: None,
            keys: OrdMap::new(),
            by_slot: OrdSet::new(),
            frozen: None,
            stands: 0,
            aside: None,
            ends: BTreeSet::new(),
            bytes: 0,
            witness: None,
        }
    }

    /// The same, with an observer of the commands of several partitions.
    pub fn with_witness(mut self, witness: Box<dyn Witness>) -> Self {
        self.witness = Some(witness);
        self.has_mapped();
        self
    }

    pub(super) fn has_mapped(&mut self) {
        if let Some(witness) = &mut self.witness {
            witness.mapped(&self.map);
        }
    }

    /// The partition.
    pub const fn partition(&self) -> Partition {
        self.me
    }

    /// The map of slots to partitions.
    pub const fn map(&self) -> &Arc<Map> {
        &self.map
    }

    /// The number of keys, some of which may have come to their ends.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// The number of keys that have an end.
    pub fn ending(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The memory of all keys, in bytes, about, with those that are copied from another partition.
    pub fn bytes(&self) -> usize {
        self.bytes + self.aside.as_ref().map_or(0, |aside| aside.bytes)
    }

    /// The last command of several partitions of which this is one.
    pub const fn last(&self) -> Option<Place> {
        self.last
    }

    /// The last command of several partitions that was delivered, of this one or not.
    pub const fn seen(&self) -> Option<Place> {
        self.seen
    }

    /// The entry of a key.
    pub fn get(&self, key: &[u8]) -> Option<&Entry> {
        self.keys.get(key).filter(|entry| self.has_life(key, entry))
    }

    /// Whether a key has not come to its end.
    pub(super) fn has_life(&self, key: &[u8], entry: &Entry) -> bool {
        entry.lives(self.clock_of(key))
    }

    /// The time by which a key lives. In slots that are to be given away time stands still: the partition that gets them
    /// may not be as late yet, and a key that a client has seen to its end would live again there.
    pub(super) fn clock_of(&self, key: &[u8]) -> u64 {
        let stands = self.gives().is_some_and(|slots| slots.has(slot_of(key)));
        if stands { self.stands } else { self.now }
    }

    /// Checks the invariants of all entries.
    pub fn check(&self) {
        let takes = self.keys.iter().map(|(key, entry)| entry.takes(key));
        assert_eq!(takes.sum::<usize>(), self.bytes, "the bytes of all keys");
        let by_slot = self.keys.keys().map(|key| (slot_of(key), key.clone()));
        assert_eq!(by_slot.collect::<OrdSet<_>>(), self.by_slot, "slots");
        let ends = self.keys.iter().filter(|(_, entry)| entry.until.is_some());
        assert_eq!(ends.count(), self.ends.len(), "keys with an end");
        for (end, key) in &self.ends {
            let entry = self.keys.get(key);
            let until = entry.and_then(|entry| entry.until);
            assert_eq!(until, Some(*end), "the end of a key");
        }
        for (key, entry) in &self.keys {
            assert_eq!(entry.value.bytes(), entry.bytes, "the bytes of a value");
            assert_eq!(self.map.of_key(key), self.me, "a key of this partition");
        }
    }

    pub(super) fn put(&mut self, key: Bytes, entry: Entry) {
        self.bytes += entry.takes(&key);
        let until = entry.until;
        match self.keys.insert(key.clone(), entry) {
            Some(old) => self.forget(&key, &old),
            None => drop(self.by_slot.insert((slot_of(&key), key.clone()))),
        }
        if let Some(until) = until {
            self.ends.insert((until, key));
        }
    }

    pub(super) fn remove(&mut self, key: &[u8]) -> Option<Entry> {
        let (key, old) = self.keys.remove_with_key(key)?;
        self.forget(&key, &old);
        self.by_slot.remove(&(slot_of(&key), key));
        Some(old)
    }

    fn forget(&mut self, key: &Bytes, old: &Entry) {
        self.bytes -= old.takes(key);
        if let Some(until) = old.until {
            self.ends.remove(&(until, key.clone()));
        }
    }

    /// Removes all keys.
    pub(super) fn clear(&mut self) {
        let keys = std::mem::take(&mut self.keys);
        let ends = std::mem::take(&mut self.ends);
        let by_slot = std::mem::take(&mut self.by_slot);
        self.bytes = 0;
        if keys.len() > MANY {
            // To free many keys takes long, and commands wait meanwhile. Without a thread the keys are freed here.
            let thread = std::thread::Builder::new().name("rota-kv-free".to_owned());
            let _ = thread.spawn(move || drop((keys, ends, by_slot)));
        }
    }

    /// Whether there are keys whose end has come by this time.
    pub fn has_ended(&self, time: u64) -> bool {
        self.ends
            .first()
            .is_some_and(|(end, _)| *end <= time.max(self.now))
    }

    /// Lets time pass, and removes keys that have come to their ends: `most` of them at most.
    fn sweep(&mut self, stamp: u64, most: usize) {
        self.now = self.now.max(stamp);
        if self.gives().is_some() {
            return;
        }
        for _ in 0..most {
            let first = self.ends.first().filter(|(end, _)| *end <= self.now);
            let Some((_, key)) = first.cloned() else {
                return;
            };
            self.remove(&key);
        }
    }

    /// Answers one batch of a message; `left`: the bytes that answers of the message may still have.
    fn answer(&mut self, bytes: &[u8], place: Place, left: &mut usize) -> Answer {
        let Some(batch) = Batch::decode(bytes) else {
            return Answer::Unreadable;
        };
        let most = match batch.is_empty() {
            true => MOST_SWEPT_IDLE,
            false => MOST_SWEPT,
        };
        self.sweep(batch.stamp, most);
        self.applied = Some(place);
        if self.is_moving(&batch) {
            return Answer::Moving;
        }
        let to = batch.to(&self.map);
        if to.len() > 1 {
            if to.contains(&self.me) {
                self.last = Some(place);
            }
            self.seen = Some(place);
            if let Some(witness) = &mut self.witness {
                witness.delivered(place, &to);
            }
        }
        self.run(&batch, (&to, place), left)
    }
}

impl Machine for Store {
    type Frozen = FrozenStore;

    fn apply(&mut self, command: Command<'_>) -> Vec<u8> {
        let pack = Pack::decode(command.bytes);
        let mut left = MOST_ANSWER_BYTES;
        let answers = match pack {
            None => vec![Answer::Unreadable],
            Some(Pack(batches)) => {
                let batches = batches.into_iter().enumerate();
                let answers = batches
                    .map(|(at, batch)| self.answer(batch, place_of(command.place, at), &mut left));
                answers.collect()
            }
        };
        let behind = self.last;
        Answered { behind, answers }.encode()
    }

    fn freeze(&mut self) -> FrozenStore {
        FrozenStore::of(self)
    }

    fn install(&mut self, state: &mut dyn Read) -> io::Result<()> {
        let frozen = FrozenStore::read(state)?;
        let mut begun = frozen.begin(self.me)?;
        begun.witness = self.witness.take();
        *self = begun;
        self.has_mapped();
        if let Some(witness) = &mut self.witness {
            witness.began(self.seen);
        }
        Ok(())
    }
}

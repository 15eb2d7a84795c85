//! The state of a partition, as a state machine.

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use bytes::Bytes;
use rota_multiring::Place;
use rota_replica::{Command, Machine};

use super::arrived::slot_of;
use super::batch::{Batch, Operation};
use super::changed::{Change, Changed, Recorder};
use super::frozen::FrozenStore;
use super::keys::Keys;
use super::moves::{Moves, Snapshot};
use super::outcome::{Answer, Answered, Outcome};
use super::pack::{Pack, place_of};
use super::step::{Freeze, MoveName, Step};
use super::value::Entry;
use super::witness::Witness;
use super::{
    MOST_ANSWER_BYTES, MOST_APART, MOST_SETTLED, MOST_SETTLED_IDLE, MOST_SWEPT, MOST_SWEPT_IDLE,
};
use crate::map::{Map, Partition, Partitions};
use crate::mutants::{self, Mutant};
use crate::outlook::Past;

/// A partition's keys, and the machine that commands change them by.
pub struct Store {
    pub(super) me: Partition,
    pub(super) map: Arc<Map>,
    /// The time as the order has it. It is that of commands of several partitions, and so the same for all partitions
    /// at a place of the order.
    pub(super) now: u64,
    /// The time for lives that begin: that at the sender of the last batch, unless the order's is later.
    pub(super) asked: u64,
    /// The time by which it is told what is left of lives: the same, unless that of an earlier batch is a little later.
    pub(super) told: u64,
    /// The last command of several partitions, of which this is one.
    pub(super) last: Option<Place>,
    /// The last command of each set of several partitions.
    pub(super) past: Past,
    /// The last command.
    pub(super) applied: Option<Place>,
    pub(super) keys: Keys,
    pub(super) moves: Moves,
    /// The changes for the witness.
    pub(super) recorder: Recorder,
    /// The numbers of keys that a message settles, and one without commands.
    settles: (usize, usize),
    /// The number of messages and batches that could not be read.
    unreadable: Arc<AtomicU64>,
    witness: Option<Box<dyn Witness>>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut of = f.debug_struct("Store");
        let of = of.field("me", &self.me).field("keys", &self.keys.len());
        of.field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

impl Store {
    /// A partition without a key. `map`: the same for all partitions.
    pub fn new(me: Partition, map: impl Into<Arc<Map>>) -> Self {
        Self {
            me,
            map: map.into(),
            now: 0,
            asked: 0,
            told: 0,
            last: None,
            past: Past::default(),
            applied: None,
            keys: Keys::default(),
            moves: Moves::default(),
            recorder: Recorder::default(),
            settles: (MOST_SETTLED, MOST_SETTLED_IDLE),
            unreadable: Arc::default(),
            witness: None,
        }
    }

    /// The same, with an observer of the commands of several partitions, and of changes.
    pub fn with_witness(mut self, witness: Box<dyn Witness>) -> Self {
        self.recorder.turn(witness.hears_changes());
        self.witness = Some(witness);
        self.has_mapped();
        self
    }

    /// The same, but each message settles so many keys, at most, of slots that have come or gone. All replicas of a
    /// partition have to have the same number.
    pub const fn settling(mut self, most: usize) -> Self {
        self.settles = (most, most);
        self
    }

    fn has_mapped(&mut self) {
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

    /// The number of keys that have an end. Keys that came with their slots not long ago may not count yet.
    pub fn ending(&self) -> usize {
        self.keys.ending()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.keys.len() == 0
    }

    /// All keys, in order.
    pub fn entries(&self) -> impl Iterator<Item = (&Bytes, &Entry)> {
        let all = self.keys.range(b"");
        all.filter_map(|(key, entry)| Some((key, entry?)))
    }

    /// Whether all keys are where they belong. They are not where slots have come or gone not long ago: later messages
    /// bring them there, also messages without commands.
    pub fn is_settled(&self) -> bool {
        self.keys.is_settled()
    }

    /// The number of messages and batches that could not be read since this was made: they are of another version. It
    /// stays up to date, also where the store takes in the state of another replica.
    pub fn unreadable(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.unreadable)
    }

    /// The memory of all keys, in bytes, about, with those that are copied from another partition.
    pub fn bytes(&self) -> usize {
        self.keys.bytes() + self.moves.bytes()
    }

    /// A snapshot of the partition. It takes no time: later changes are kept apart.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            keys: self.keys.settled().clone(),
            by_slot: self.keys.by_slot().clone(),
            unsettled: self.keys.unsettled(),
            map: Arc::clone(&self.map),
            frozen: self.frozen().map(|frozen| frozen.of),
        }
    }

    /// The slots that are frozen.
    pub const fn frozen(&self) -> Option<&Freeze> {
        self.moves.frozen()
    }

    /// The move whose keys are copied here and are not the partition's own yet, and the number of copies.
    pub fn aside(&self) -> Option<(MoveName, u32)> {
        let aside = self.moves.aside();
        aside.map(|aside| (aside.of, aside.count))
    }

    /// The last command of several partitions of which this is one.
    pub const fn last(&self) -> Option<Place> {
        self.last
    }

    /// The entry of a key.
    pub fn get(&self, key: &[u8]) -> Option<&Entry> {
        self.keys.get(key).filter(|entry| self.has_life(entry))
    }

    /// Whether a key has not come to its end.
    pub(super) fn has_life(&self, entry: &Entry) -> bool {
        entry.lives(self.now)
    }

    /// The time as the order has it.
    pub const fn time(&self) -> u64 {
        self.now
    }

    /// Checks the invariants of all entries.
    pub fn check(&self) {
        self.keys.check(|slot| self.map.of_slot(slot) == self.me);
    }

    /// Whether there are keys whose end has come by this time.
    pub fn has_ended(&self, time: u64) -> bool {
        let first = self.keys.first_end();
        first.is_some_and(|end| end <= time.max(self.now))
    }

    /// Lets time pass, if a batch is ordered for several partitions: all of them have the same time then. Time does not
    /// pass by what one partition alone delivers, or it would be later there than in others, and a transaction would
    /// find a key at its end in one partition, and alive with the same end in another one.
    fn pass(&mut self, batch: &Batch<'_>, to: &Partitions) {
        let is_tick = batch.operations.contains(&Operation::Time);
        if to.len() > 1 || is_tick || self.map.is_of_one() || mutants::on(Mutant::T10) {
            self.now = self.now.max(batch.stamp);
        }
        self.asked = self.now.max(batch.stamp);
        // A sender that does not know the time gives none.
        let is_near = batch.stamp == 0 || self.told.saturating_sub(self.asked) <= MOST_APART;
        let before = if is_near { self.told } else { 0 };
        self.told = before.max(self.asked);
    }

    /// Removes keys that have come to their ends: `most` of them at most.
    fn sweep(&mut self, most: usize) {
        for _ in 0..most {
            match self.keys.remove_ended(self.now) {
                Some((key, true)) if !mutants::on(Mutant::T17) => {
                    self.recorder.note(Change::Expired(key));
                }
                Some(_) => {}
                None => return,
            }
        }
    }

    /// Whether the sender of a batch does not know the partition of its slots, or the slots are frozen, or no partition
    /// has slots yet: then nothing is done, and the sender has to ask again. All partitions decide the same.
    pub(super) fn is_moving(&self, batch: &Batch<'_>) -> bool {
        if !self.map.is_founded() {
            return !batch.founds() && !batch.is_idle();
        }
        let names = batch.conditions.iter().map(|(key, _)| *key);
        let operations = batch.operations.iter().filter_map(Operation::key);
        let mut keys = names.chain(operations).peekable();
        if keys.peek().is_some() && batch.epoch > self.map.epoch() {
            return true;
        }
        let has_moved = |key| self.map.since(slot_of(key)) > batch.epoch;
        let is_old = batch.epoch < self.map.epoch() && !mutants::on(Mutant::T06);
        is_old && keys.any(has_moved) || self.moves.stops(batch)
    }

    pub(super) fn step(&mut self, step: &Step) -> Outcome {
        let asked = self.asked;
        let is_done = match step {
            step if step.only_for().is_some_and(|only| only != self.me) => false,
            Step::Copy { of, at, keys, .. } => return self.moves.copy((*of, *at), keys, asked),
            Step::Forget { of, .. } => self.moves.forget(*of),
            Step::Freeze(freeze) => self.moves.freeze(freeze, &self.map),
            Step::Give(of) => self.give(*of),
            Step::End(of) => self.moves.end(*of),
            Step::Found(map) => self.found(map),
        };
        match is_done {
            true => Outcome::Done,
            false => Outcome::Nothing,
        }
    }

    /// Begins with this map, if the store has not been founded yet: all partitions do so at one place of the order.
    fn found(&mut self, map: &Map) -> bool {
        if self.map.is_founded() {
            return false;
        }
        let own = mutants::on(Mutant::T19).then(|| self.map.founded());
        self.map = Arc::new(own.unwrap_or_else(|| map.founded()));
        self.has_mapped();
        true
    }

    /// Gives the slots of a move another partition. However many keys they have, that takes no longer: their keys are
    /// settled by later messages.
    fn give(&mut self, of: MoveName) -> bool {
        let Some((freeze, aside)) = self.moves.give(of) else {
            return false;
        };
        Arc::make_mut(&mut self.map).give(&freeze.slots, freeze.to);
        if self.me == freeze.from && !mutants::on(Mutant::T08) {
            self.keys.leave(&freeze.slots);
            let left = Change::Left(freeze.slots.clone(), freeze.to);
            self.recorder.note(left);
        }
        if self.me == freeze.to {
            let arrived = Change::Arrived(freeze.slots.clone(), freeze.from);
            self.recorder.note(arrived);
            let (keys, bytes) = aside
                .map(|aside| (aside.keys, aside.bytes))
                .unwrap_or_default();
            self.keys.arrive(&freeze.slots, keys, bytes);
        }
        self.has_mapped();
        true
    }

    /// Tells the witness what has changed at a place.
    fn tell_changes(&mut self, place: Place) {
        let (changes, behind) = (self.recorder.take(), self.last);
        if let (false, Some(witness)) = (changes.is_empty(), &mut self.witness) {
            witness.changed(Changed {
                place,
                behind,
                changes,
            });
        }
    }

    /// Answers one batch of a message; `left`: the bytes that answers of the message may still have.
    fn answer(&mut self, batch: &Batch<'_>, place: Place, left: &mut usize) -> Answer {
        self.applied = Some(place);
        if self.is_moving(batch) {
            return Answer::Moving;
        }
        // The sender has the same map, as far as this batch is concerned: it has gone to the ring of all if this is so.
        let to = batch.to(&self.map);
        self.pass(batch, &to);
        self.sweep(match batch.is_idle() {
            true => MOST_SWEPT_IDLE,
            false => MOST_SWEPT,
        });
        // Nobody has an answer that the other partitions contradict before they are founded: they have none.
        if to.len() > 1 && !batch.founds() {
            if to.contains(&self.me) {
                self.last = Some(place);
            }
            self.past.note(place, &to);
            if let Some(witness) = &mut self.witness {
                witness.delivered(place, &to);
            }
        }
        self.run(batch, (&to, place), left)
    }

    /// Answers a message.
    fn answers(&mut self, command: &Command<'_>) -> Vec<Answer> {
        let Some(Pack(batches)) = Pack::decode(command.bytes) else {
            self.unreadable.fetch_add(1, SeqCst);
            return vec![Answer::Unreadable];
        };
        let (mut left, mut is_idle) = (MOST_ANSWER_BYTES, true);
        let mut answers = Vec::with_capacity(batches.len());
        for (at, bytes) in batches.into_iter().enumerate() {
            answers.push(match Batch::decode(bytes) {
                Some(batch) => {
                    is_idle &= batch.is_idle();
                    let place = place_of(command.place, at);
                    let answer = self.answer(&batch, place, &mut left);
                    self.tell_changes(place);
                    answer
                }
                None => {
                    self.unreadable.fetch_add(1, SeqCst);
                    Answer::Unreadable
                }
            });
        }
        let (most, most_idle) = self.settles;
        self.keys.settle(if is_idle { most_idle } else { most });
        answers
    }
}

impl Machine for Store {
    type Frozen = FrozenStore;

    fn apply(&mut self, command: Command<'_>) -> Vec<u8> {
        let answers = self.answers(&command);
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
        (begun.settles, begun.unreadable) = (self.settles, self.unreadable());
        *self = begun;
        self.has_mapped();
        if let Some(witness) = &mut self.witness {
            self.recorder.turn(witness.hears_changes());
            witness.began(self.applied, &self.past);
        }
        Ok(())
    }
}

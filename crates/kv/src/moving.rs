//! The move of a group of slots from one partition to another, as a process of the first one carries it out, without
//! I/O.
//!
//! The keys of the slots are copied while clients write to them; then the keys that have changed meanwhile, until these
//! are few. Then the slots are frozen for a moment: the rest is copied, and all partitions give the slots away at one
//! place of the order. Any failure before that ends the move, and the slots stay where they are; a process that has a
//! move that does not go on ends it for all.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;

use bytes::Bytes;
use imbl::OrdMap;
use imbl::ordmap::DiffItem;

use crate::map::Partition;
use crate::mutants::{self, Mutant};
use crate::slots::Slots;
use crate::store::{Copied, Entry, Freeze, MoveName, Outcome, Snapshot, Step, Value};

/// The bytes and keys of a group, about, unless it is one slot with more.
const GROUP_BYTES: usize = 256 << 10;
const GROUP_KEYS: usize = 2_048;
/// The bytes and keys that are copied at once, at most, unless it is one value that is larger.
const PART_BYTES: usize = 32 << 10;
const PART_KEYS: usize = 1_024;
/// The number of changed keys, and their bytes, at or below which the slots are frozen.
const FEW_KEYS: usize = 64;
const FEW_BYTES: usize = 256 << 10;
/// The number of rounds after which changes are not expected to get fewer; then the slots are frozen with these bytes
/// at most.
const MOST_ROUNDS: u32 = 5;
const MOST_FROZEN_BYTES: usize = 1 << 20;
/// The number of times that the end of a move is ordered, where nobody answers.
const MOST_ENDS: u32 = 5;

/// The next step of a move.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Next {
    /// Look at the partition that has the slots: [`Mover::looked`].
    Look,
    /// Ask each partition for an answer to something that waits for no other one: [`Mover::answered`].
    Ask,
    /// Order this: [`Mover::heard`].
    Order(Step),
    /// The move has ended.
    Ended(Result<Moved, Failure>),
}

/// The slots that have another partition now, and the work for that.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Moved {
    /// The slots.
    pub slots: Slots,
    /// The number of copied keys, some of them more than once.
    pub keys: u64,
    /// The bytes of these copies.
    pub bytes: u64,
}

/// The reason why slots stay where they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// Another move is under way, or has brought the slots not long ago.
    Busy,
    /// Some partition did not answer, and nothing was frozen yet.
    Silent,
    /// The move was ended by another process, or an order of it was not answered.
    Lost,
    /// The keys of the slots change faster than they are copied.
    Fast,
    /// It is not known whether the slots stay where they are.
    Unknown,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "another move is under way, or the slots have just come",
            Self::Silent => "a partition does not answer: slots stay where they are",
            Self::Lost => "a partition did not answer in time: its slots stay where they are",
            Self::Fast => {
                "what the slots have changes faster than it is copied: they stay where they are"
            }
            Self::Unknown => "it is not known whether the slots stay where they are",
        })
    }
}

impl std::error::Error for Failure {}

/// The phase of a move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Begin,
    Copy,
    Compare,
    /// The question whether all partitions answer: one that does not holds up commands of all of them.
    Ask,
    Freeze,
    /// The changes until the slots were frozen.
    Seal,
    Close,
    Give,
    End(Failure),
    Check(Failure),
    Ended(Result<(), Failure>),
}

/// The move of one group of slots; of several groups, one begins when the other has ended.
#[derive(Debug)]
pub struct Mover {
    of: MoveName,
    from: Partition,
    to: Partition,
    wanted: Slots,
    phase: Phase,
    base: Option<Snapshot>,
    todo: VecDeque<Bytes>,
    /// The field to go on with, of the first key in `todo`.
    next_field: Option<Bytes>,
    at: u32,
    rounds: u32,
    ends: u32,
    /// A freeze was asked for, and may have come.
    froze: bool,
    moved: Moved,
}

/// A copied part of a key: its bytes, and the next field, if this is not all.
struct Piece(Option<Copied>, usize, Option<Bytes>);

impl Mover {
    /// A move that has not begun. `wanted`: the slots, of which the group is the first ones.
    pub fn new(of: MoveName, (from, to): (Partition, Partition), wanted: Slots) -> Self {
        Self {
            of,
            from,
            to,
            wanted,
            phase: Phase::Begin,
            base: None,
            todo: VecDeque::new(),
            next_field: None,
            at: 0,
            rounds: 0,
            ends: 0,
            froze: false,
            moved: Moved::default(),
        }
    }

    /// Whether clients may wait for the end of the move.
    pub const fn has_frozen(&self) -> bool {
        matches!(
            self.phase,
            Phase::Freeze | Phase::Seal | Phase::Close | Phase::Give
        )
    }

    /// The next step.
    pub fn go_on(&mut self) -> Next {
        let of = self.of;
        match self.phase {
            Phase::Begin | Phase::Compare | Phase::Seal | Phase::Check(_) => Next::Look,
            Phase::Ask => Next::Ask,
            Phase::Copy | Phase::Close => Next::Order(Step::Copy {
                of,
                to: self.to,
                at: self.at,
                keys: self.part(),
            }),
            Phase::Freeze => Next::Order(Step::Freeze(Freeze {
                of,
                from: self.from,
                to: self.to,
                slots: self.moved.slots.clone(),
            })),
            Phase::Give => Next::Order(Step::Give(of)),
            Phase::End(_) if self.froze => Next::Order(Step::End(of)),
            // Only the partition that was to have the slots knows of the move.
            Phase::End(_) => Next::Order(Step::Forget { of, to: self.to }),
            Phase::Ended(result) => Next::Ended(result.map(|()| self.moved.clone())),
        }
    }

    /// Takes in the state of the partition as it is now.
    pub fn looked(&mut self, snapshot: Snapshot) {
        self.phase = match self.phase {
            Phase::Begin => self.begin(&snapshot),
            // The slots have gone and come back since.
            Phase::Compare if self.is_unsettled(&snapshot) => Phase::End(Failure::Busy),
            Phase::Seal if self.is_unsettled(&snapshot) => Phase::End(Failure::Lost),
            Phase::Compare => self.compare(&snapshot),
            Phase::Seal if snapshot.frozen == Some(self.of) => {
                let changed = self.changed(&snapshot);
                self.todo.extend(changed);
                Phase::Close
            }
            Phase::Seal => Phase::End(Failure::Lost),
            Phase::Check(why) => {
                let first = self.moved.slots.iter().next();
                let has = first.is_some_and(|slot| snapshot.map.of_slot(slot) == self.to);
                Phase::Ended(if has { Ok(()) } else { Err(why) })
            }
            phase => phase,
        };
        self.base = Some(snapshot);
    }

    /// Takes in whether all partitions have answered.
    pub const fn answered(&mut self, by_all: bool) {
        if matches!(self.phase, Phase::Ask) {
            self.froze = by_all;
            self.phase = match by_all {
                true => Phase::Freeze,
                false => Phase::End(Failure::Silent),
            };
        }
    }

    /// Takes in the outcome of the command; `None`: it is not known.
    pub fn heard(&mut self, outcome: Option<&Outcome>) {
        let is_done = outcome == Some(&Outcome::Done);
        let is_next = outcome == Some(&Outcome::Number(i64::from(self.at) + 1));
        self.phase = match self.phase {
            Phase::Copy | Phase::Close if is_next => {
                self.at += 1;
                match (self.todo.is_empty(), self.phase) {
                    (false, phase) => phase,
                    (true, Phase::Copy) => Phase::Compare,
                    (true, _) => Phase::Give,
                }
            }
            Phase::Copy if outcome.is_some() => Phase::End(Failure::Busy),
            Phase::Freeze if is_done => Phase::Seal,
            Phase::Freeze if outcome.is_some() => Phase::End(Failure::Busy),
            Phase::Give if is_done => Phase::Ended(Ok(())),
            Phase::End(why) => self.ended(why, outcome.is_some()),
            Phase::Ended(result) => Phase::Ended(result),
            // The command may be done or not.
            _ => Phase::End(Failure::Lost),
        };
    }

    fn ended(&mut self, why: Failure, is_heard: bool) -> Phase {
        self.ends += 1;
        match is_heard {
            true => Phase::Check(why),
            false if self.ends < MOST_ENDS => Phase::End(why),
            false => Phase::Ended(Err(Failure::Unknown)),
        }
    }

    fn is_unsettled(&self, snapshot: &Snapshot) -> bool {
        let mut slots = self.moved.slots.iter();
        slots.any(|slot| snapshot.unsettled.has(slot))
    }

    /// Chooses the slots of the group, and lists their keys.
    fn begin(&mut self, snapshot: &Snapshot) -> Phase {
        let (mut bytes, mut slots, mut comes) = (0, Vec::new(), false);
        for slot in self.wanted.iter() {
            if bytes > GROUP_BYTES || self.todo.len() > GROUP_KEYS {
                break;
            }
            if snapshot.map.of_slot(slot) != self.from {
                continue;
            }
            // Slots that have come not long ago do not go before their keys are where they belong.
            comes = snapshot.unsettled.has(slot);
            if comes {
                break;
            }
            slots.push(slot);
            let of = (slot, Bytes::new())..(slot + 1, Bytes::new());
            for (_, key) in snapshot.by_slot.range(of) {
                let entry = snapshot.keys.get(key);
                bytes += entry.map_or(0, |entry| entry.takes(key));
                self.todo.push_back(key.clone());
            }
        }
        self.moved.slots = slots.into_iter().collect();
        match (self.moved.slots.is_empty(), comes) {
            (true, true) => Phase::Ended(Err(Failure::Busy)),
            (true, false) => Phase::Ended(Ok(())),
            (false, _) => Phase::Copy,
        }
    }

    /// The keys of the group that have changed since they were copied.
    fn changed(&self, snapshot: &Snapshot) -> Vec<Bytes> {
        let Some(base) = self.base.as_ref().filter(|_| !mutants::on(Mutant::T07)) else {
            return Vec::new();
        };
        let changed = base.keys.diff(&snapshot.keys).map(|item| match item {
            DiffItem::Add(key, _) | DiffItem::Remove(key, _) => key,
            DiffItem::Update { new: (key, _), .. } => key,
        });
        let own = changed.filter(|key| self.moved.slots.has(rota_resp::slot::of(key)));
        own.cloned().collect()
    }

    fn compare(&mut self, snapshot: &Snapshot) -> Phase {
        let changed = self.changed(snapshot);
        self.rounds += 1;
        let entry = |key: &Bytes| Some(snapshot.keys.get(key)?.takes(key));
        let bytes: usize = changed.iter().filter_map(entry).sum();
        let is_few = changed.len() <= FEW_KEYS && bytes <= FEW_BYTES;
        self.todo.extend(changed);
        match (is_few, self.rounds >= MOST_ROUNDS) {
            (true, _) => Phase::Ask,
            (false, false) => Phase::Copy,
            (false, true) if bytes <= MOST_FROZEN_BYTES => Phase::Ask,
            (false, true) => Phase::End(Failure::Fast),
        }
    }

    fn part(&mut self) -> Vec<(Bytes, Option<Copied>)> {
        let (mut part, mut bytes) = (Vec::new(), 0);
        while let Some(key) = self.todo.front()
            && part.len() < PART_KEYS
        {
            let room = PART_BYTES.saturating_sub(bytes + key.len());
            let entry = self.base.as_ref().and_then(|base| base.keys.get(key));
            let Piece(copied, takes, next) = piece(entry, self.next_field.as_ref(), room);
            if !part.is_empty() && bytes + key.len() + takes > PART_BYTES {
                break;
            }
            bytes += key.len() + takes;
            part.push((key.clone(), copied));
            self.next_field = next;
            if self.next_field.is_none() {
                self.todo.pop_front();
            }
        }
        self.moved.keys += part.len() as u64;
        self.moved.bytes += bytes as u64;
        part
    }
}

/// The part of a key from a field on: no more fields than there is room for, and one at least.
fn piece(entry: Option<&Entry>, from: Option<&Bytes>, room: usize) -> Piece {
    let Some(entry) = entry else {
        return Piece(None, 0, None);
    };
    let (value, takes, next) = match &entry.value {
        Value::Text(text) => (Value::Text(text.clone()), text.len(), None),
        Value::Fields(fields) => {
            let (some, takes, next) = some_fields(fields, from, room);
            (Value::Fields(some), takes, next)
        }
    };
    let until = entry.until.filter(|_| !mutants::on(Mutant::T09));
    let copied = Copied {
        entry: Entry::new(value, entry.version, until),
        is_more: from.is_some(),
    };
    Piece(Some(copied), takes, next)
}

/// The fields from one on for which there is room: one at least.
fn some_fields(
    fields: &OrdMap<Bytes, Bytes>,
    from: Option<&Bytes>,
    room: usize,
) -> (OrdMap<Bytes, Bytes>, usize, Option<Bytes>) {
    let (mut some, mut takes) = (OrdMap::new(), 0);
    let first = from.cloned().unwrap_or_default();
    for (field, value) in fields.range(first..) {
        let bytes = field.len() + value.len();
        if !some.is_empty() && takes + bytes > room {
            return (some, takes, Some(field.clone()));
        }
        takes += bytes;
        some.insert(field.clone(), value.clone());
    }
    (some, takes, None)
}

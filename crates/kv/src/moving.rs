//! How a group of slots gets from one partition to another, as a process that has the first one carries it out, without I/O.
//!
//! What the slots have is copied while clients write to them; then what has changed meanwhile, until that is little. Then nobody writes to them for a
//! moment: the rest is copied, and all partitions give them away at one place of the order. Whatever fails before that ends the move, and the slots
//! stay where they are; whoever has a move that does not go on ends it for all.

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

/// A group has about so many bytes and keys, if it is not one slot that has more.
const GROUP_BYTES: usize = 256 << 10;
const GROUP_KEYS: usize = 2_048;
/// So much is copied at once, if it is not one value that is larger.
const PART_BYTES: usize = 32 << 10;
const PART_KEYS: usize = 1_024;
/// When no more keys than these have changed, nor more bytes, nobody writes to the slots any more.
const FEW_KEYS: usize = 64;
const FEW_BYTES: usize = 256 << 10;
/// Where it was copied so often that it is not to be expected, no more bytes than these.
const MOST_ROUNDS: u32 = 5;
const MOST_FROZEN_BYTES: usize = 1 << 20;
/// So often it is said that a move has ended, where nobody answers.
const MOST_ENDS: u32 = 5;

/// What is to be done next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Next {
    /// The partition that has the slots is to be looked at: [`Mover::looked`].
    Look,
    /// Each partition is to answer to something that waits for no other one: [`Mover::answered`].
    Ask,
    /// This is to be ordered: [`Mover::heard`].
    Order(Step),
    /// That is all.
    Ended(Result<Moved, Failure>),
}

/// What has another partition now.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Moved {
    /// These slots.
    pub slots: Slots,
    /// So many keys were copied, some of them more than once.
    pub keys: u64,
    /// And so many bytes.
    pub bytes: u64,
}

/// Why slots stay where they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// Another move is under way.
    Busy,
    /// Before anything was frozen some partition did not answer.
    Silent,
    /// Somebody has ended it, or did not answer.
    Lost,
    /// What the slots have changes faster than it is copied.
    Fast,
    /// It is not known whether they stay.
    Unknown,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "another move is under way",
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

/// How far it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Begin,
    Copy,
    Compare,
    /// Whether all partitions answer: what is of all of them holds up each where one does not.
    Ask,
    Freeze,
    /// What has changed until they were frozen.
    Seal,
    Close,
    Give,
    End(Failure),
    Check(Failure),
    Ended(Result<(), Failure>),
}

/// See the module's page. A mover moves one group; of several, one begins when the other has ended.
#[derive(Debug)]
pub struct Mover {
    of: MoveName,
    from: Partition,
    to: Partition,
    wanted: Slots,
    phase: Phase,
    base: Option<Snapshot>,
    todo: VecDeque<Bytes>,
    /// Of the first of those: the field to go on with.
    next_field: Option<Bytes>,
    at: u32,
    rounds: u32,
    ends: u32,
    /// It was asked that slots be frozen.
    froze: bool,
    moved: Moved,
}

/// What is copied of a key: its bytes, and where to go on, if this is not all.
struct Piece(Option<Copied>, usize, Option<Bytes>);

impl Mover {
    /// `wanted`: the group is the first of these.
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

    /// The time that what is ordered has at least: keys that have come to their end do not live again elsewhere.
    pub fn stamp(&self) -> u64 {
        self.base.as_ref().map_or(0, |base| base.now)
    }

    /// Whether clients may be waiting for it.
    pub const fn has_frozen(&self) -> bool {
        matches!(
            self.phase,
            Phase::Freeze | Phase::Seal | Phase::Close | Phase::Give
        )
    }

    /// What is to be done next.
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
            // Only one partition knows of it.
            Phase::End(_) => Next::Order(Step::Forget { of, to: self.to }),
            Phase::Ended(result) => Next::Ended(result.map(|()| self.moved.clone())),
        }
    }

    /// The partition as it is now.
    pub fn looked(&mut self, snapshot: Snapshot) {
        self.phase = match self.phase {
            Phase::Begin => self.begin(&snapshot),
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

    /// Whether all partitions have answered.
    pub const fn answered(&mut self, by_all: bool) {
        if matches!(self.phase, Phase::Ask) {
            self.froze = by_all;
            self.phase = match by_all {
                true => Phase::Freeze,
                false => Phase::End(Failure::Silent),
            };
        }
    }

    /// What became of what was ordered; `None`: it is not known.
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
            // It may be done or not.
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

    /// Which slots it is.
    fn begin(&mut self, snapshot: &Snapshot) -> Phase {
        let (mut bytes, mut slots) = (0, Vec::new());
        for slot in self.wanted.iter() {
            if bytes > GROUP_BYTES || self.todo.len() > GROUP_KEYS {
                break;
            }
            if snapshot.map.of_slot(slot) != self.from {
                continue;
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
        match self.moved.slots.is_empty() {
            true => Phase::Ended(Ok(())),
            false => Phase::Copy,
        }
    }

    /// What has changed since it was copied.
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

/// What is copied of a key, from a field on: no more fields than there is room for, and one at least.
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

/// One field at least.
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

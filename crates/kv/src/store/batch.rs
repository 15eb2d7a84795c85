//! Batches: conditions, and operations that are done if all of them hold.

use rota_core::bytes::{Reader, put_bytes, put_some, take_bytes, take_list, take_some};
use rota_multiring::Place;

use super::action::Action;
use super::pack::Pack;
use super::step::Step;
use crate::map::Partition;

/// The size of most batches, at most.
const USUAL_BYTES: usize = 1_536;

/// The data that a range shows of each key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// Only the name.
    Names,
    /// The kind.
    Kinds,
    /// The value.
    Values,
}

impl Wanted {
    const ALL: [Self; 3] = [Self::Names, Self::Kinds, Self::Values];
}

/// An operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operation<'a> {
    /// An action on a key.
    Key(&'a [u8], Action<'a>),
    /// Reads the keys of a range.
    Range {
        /// The first key.
        from: &'a [u8],
        /// The key behind the last one.
        to: Option<&'a [u8]>,
        /// The number of keys, at most.
        limit: u32,
        /// The data of each key.
        wanted: Wanted,
        /// The partition; `None`: all.
        of: Option<Partition>,
    },
    /// Reads the number of keys in this partition; `None`: in all.
    Size(Option<Partition>),
    /// Deletes all keys in this partition; `None`: in all.
    Clear(Option<Partition>),
    /// A step of a move of slots.
    Step(Step),
    /// Lets time pass, in all partitions: to the stamp of the batch. Only for the ring of all.
    Time,
}

/// A condition on a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Test<'a> {
    /// The key was changed last at this place of the order; `None`: there is no such key.
    Version(Option<Place>),
    /// The key has these bytes; `None`: there is no such key.
    Value(Option<&'a [u8]>),
}

/// Conditions, and operations that are done if all of them hold: at one place of the order, in all partitions.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Batch<'a> {
    /// The time at the sender: milliseconds of the Unix epoch.
    pub stamp: u64,
    /// The epoch of the map by which it was sent.
    pub epoch: u64,
    /// The conditions.
    pub conditions: Vec<(&'a [u8], Test<'a>)>,
    /// The operations.
    pub operations: Vec<Operation<'a>>,
}

/// The number of a partition, from 1; 0 is none.
fn put_partition(out: &mut Vec<u8>, of: Option<Partition>) {
    out.extend(of.map_or(0, |of| of.0).to_le_bytes());
}

fn take_partition(bytes: &mut Reader<'_>) -> Option<Option<Partition>> {
    let number = bytes.u16()?;
    Some((number > 0).then_some(Partition(number)))
}

impl<'a> Operation<'a> {
    /// Whether the operation changes anything, or might.
    pub const fn writes(&self) -> bool {
        match self {
            Self::Key(_, action) => action.writes(),
            Self::Range { .. } | Self::Size(_) => false,
            Self::Clear(_) | Self::Step(_) | Self::Time => true,
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Key(key, action) => {
                out.push(0);
                put_bytes(out, key);
                action.put(out);
            }
            Self::Range {
                from,
                to,
                limit,
                wanted,
                of,
            } => {
                out.push(1);
                put_bytes(out, from);
                put_some(out, *to);
                out.extend(limit.to_le_bytes());
                out.push(*wanted as u8);
                put_partition(out, *of);
            }
            Self::Size(of) => {
                out.push(2);
                put_partition(out, *of);
            }
            Self::Clear(of) => {
                out.push(3);
                put_partition(out, *of);
            }
            Self::Step(step) => {
                out.push(4);
                step.put(out);
            }
            Self::Time => out.push(5),
        }
    }

    fn take(bytes: &mut Reader<'a>) -> Option<Self> {
        Some(match bytes.byte()? {
            0 => Self::Key(take_bytes(bytes)?, Action::take(bytes)?),
            1 => Self::Range {
                from: take_bytes(bytes)?,
                to: take_some(bytes)?,
                limit: bytes.u32()?,
                wanted: *Wanted::ALL.get(usize::from(bytes.byte()?))?,
                of: take_partition(bytes)?,
            },
            2 => Self::Size(take_partition(bytes)?),
            3 => Self::Clear(take_partition(bytes)?),
            4 => Self::Step(Step::take(bytes)?),
            5 => Self::Time,
            _ => return None,
        })
    }
}

impl<'a> Test<'a> {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Version(None) => out.push(0),
            Self::Version(Some(place)) => {
                out.push(1);
                place.put(out);
            }
            Self::Value(value) => {
                out.push(2);
                put_some(out, *value);
            }
        }
    }

    fn take(bytes: &mut Reader<'a>) -> Option<Self> {
        Some(match bytes.byte()? {
            0 => Self::Version(None),
            1 => Self::Version(Some(Place::take(bytes)?)),
            2 => Self::Value(take_some(bytes)?),
            _ => return None,
        })
    }
}

impl<'a> Batch<'a> {
    /// The message that has this batch alone.
    pub fn alone(&self) -> Vec<u8> {
        Pack(vec![self.encode()]).encode()
    }

    /// Whether there is nothing to be ordered.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty() && self.conditions.is_empty()
    }

    /// Whether the batch has no work for any partition: it lets time pass, if anything.
    pub fn is_idle(&self) -> bool {
        let mut operations = self.operations.iter();
        self.conditions.is_empty() && operations.all(|one| matches!(one, Operation::Time))
    }

    /// Whether the batch founds the store.
    pub(super) fn founds(&self) -> bool {
        matches!(self.operations[..], [Operation::Step(Step::Found(_))])
            && self.conditions.is_empty()
    }

    /// Whether the batch changes anything, or might.
    pub fn writes(&self) -> bool {
        self.operations.iter().any(Operation::writes)
    }

    /// Whether keys get lives that come to an end: whoever has the batch ordered has to know the time.
    pub fn limits_lives(&self) -> bool {
        let mut operations = self.operations.iter();
        operations.any(|one| matches!(one, Operation::Key(_, action) if action.limits_life()))
    }

    /// Whether the batch only reads.
    pub fn only_looks(&self) -> bool {
        self.conditions.is_empty() && !self.writes()
    }

    /// The batch as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(USUAL_BYTES);
        out.extend(self.stamp.to_le_bytes());
        out.extend(self.epoch.to_le_bytes());
        out.extend((self.conditions.len() as u32).to_le_bytes());
        for (key, test) in &self.conditions {
            put_bytes(&mut out, key);
            test.put(&mut out);
        }
        out.extend((self.operations.len() as u32).to_le_bytes());
        self.operations
            .iter()
            .for_each(|operation| operation.put(&mut out));
        out
    }

    /// The batch that [`Self::encode`] has written; `None` for anything else.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let mut bytes = Reader(bytes);
        let (stamp, epoch) = (bytes.u64()?, bytes.u64()?);
        let conditions = take_list(&mut bytes, |bytes| {
            Some((take_bytes(bytes)?, Test::take(bytes)?))
        })?;
        let operations = take_list(&mut bytes, Operation::take)?;
        bytes.0.is_empty().then_some(Self {
            stamp,
            epoch,
            conditions,
            operations,
        })
    }
}

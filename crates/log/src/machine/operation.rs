//! The operations that are ordered.

use rota_core::bytes::{Reader, put_bytes, put_some, take_bytes, take_list, take_some};

use super::log::Limits;
use super::{MOST_PACKED, Position};

/// A rule for the entries that a log keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// This number of entries, the last ones.
    Last(u64),
    /// The entry at this position, and all behind it.
    From(Position),
}

/// Entries that are appended to one log, one behind the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Append<'a> {
    /// The log's name.
    pub log: &'a [u8],
    /// The log is made if there is none.
    pub makes: bool,
    /// The first entry has to get this position.
    pub expected: Option<Position>,
    /// The producer, and its name for this append: an append with a known name is not done again.
    pub producer: Option<(&'a [u8], &'a [u8])>,
    /// The rule for the entries that the log keeps then.
    pub keep: Option<Keep>,
    /// The entries, as they are kept and told.
    pub entries: Vec<&'a [u8]>,
}

/// An operation on one log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operation<'a> {
    /// Appends entries.
    Append(Append<'a>),
    /// Makes the log, or changes its limits. `true`: only makes it.
    Make(&'a [u8], Limits, bool),
    /// Removes old entries; if a number is given, only if the log still has it: the name may be that of another one by
    /// now.
    Trim(&'a [u8], Keep, Option<u64>),
    /// Seals the log: no entry is appended any more.
    Seal(&'a [u8]),
    /// Deletes the log.
    Delete(&'a [u8]),
}

/// Operations that are done at one place of the order, one behind the other.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Batch<'a> {
    /// The time at the sender, in milliseconds since 1970.
    pub stamp: u64,
    /// Either all operations are done, or none.
    pub is_atomic: bool,
    /// The operations.
    pub operations: Vec<Operation<'a>>,
}

/// The bytes that an operation takes beside its names and entries, about; and a batch.
const OPERATION_BYTES: usize = 96;

const APPEND: u8 = 1;
const MAKE: u8 = 2;
const TRIM: u8 = 3;
const SEAL: u8 = 4;
const DELETE: u8 = 5;

fn put_number(out: &mut Vec<u8>, number: Option<u64>) {
    out.push(u8::from(number.is_some()));
    out.extend(number.unwrap_or(0).to_le_bytes());
}

fn take_number(bytes: &mut Reader<'_>) -> Option<Option<u64>> {
    let (is_there, number) = (bytes.flag()?, bytes.u64()?);
    Some(is_there.then_some(number))
}

impl Keep {
    fn put(keep: Option<Self>, out: &mut Vec<u8>) {
        let (kind, number) = match keep {
            None => (0, 0),
            Some(Self::Last(count)) => (1, count),
            Some(Self::From(position)) => (2, position),
        };
        out.push(kind);
        out.extend(u64::to_le_bytes(number));
    }

    fn take(bytes: &mut Reader<'_>) -> Option<Option<Self>> {
        let (kind, number) = (bytes.byte()?, bytes.u64()?);
        Some(match kind {
            0 => None,
            1 => Some(Self::Last(number)),
            2 => Some(Self::From(number)),
            _ => return None,
        })
    }
}

impl Limits {
    pub(super) fn put(self, out: &mut Vec<u8>) {
        for limit in [self.entries, self.bytes, self.millis] {
            put_number(out, limit);
        }
    }

    pub(super) fn take(bytes: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            entries: take_number(bytes)?,
            bytes: take_number(bytes)?,
            millis: take_number(bytes)?,
        })
    }
}

impl<'a> Append<'a> {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(out, self.log);
        out.push(u8::from(self.makes));
        put_number(out, self.expected);
        put_some(out, self.producer.map(|(producer, _)| producer));
        put_some(out, self.producer.map(|(_, name)| name));
        Keep::put(self.keep, out);
        out.extend((self.entries.len() as u32).to_le_bytes());
        self.entries.iter().for_each(|entry| put_bytes(out, entry));
    }

    fn take(bytes: &mut Reader<'a>) -> Option<Self> {
        Some(Self {
            log: take_bytes(bytes)?,
            makes: bytes.flag()?,
            expected: take_number(bytes)?,
            producer: match (take_some(bytes)?, take_some(bytes)?) {
                (Some(producer), Some(name)) => Some((producer, name)),
                (None, None) => None,
                _ => return None,
            },
            keep: Keep::take(bytes)?,
            entries: take_list(bytes, take_bytes)?,
        })
    }
}

impl<'a> Operation<'a> {
    /// The log.
    pub const fn log(&self) -> &'a [u8] {
        match self {
            Self::Append(append) => append.log,
            Self::Make(log, ..) | Self::Trim(log, ..) | Self::Seal(log) | Self::Delete(log) => log,
        }
    }

    /// The bytes that it takes when it is ordered, at most, but for names that are longer than usual.
    fn room(&self) -> usize {
        let Self::Append(append) = self else {
            return OPERATION_BYTES + self.log().len();
        };
        let entries = append.entries.iter().map(|entry| 4 + entry.len());
        OPERATION_BYTES + append.log.len() + entries.sum::<usize>()
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Append(append) => {
                out.push(APPEND);
                append.put(out);
            }
            Self::Make(log, limits, is_new) => {
                out.push(MAKE);
                put_bytes(out, log);
                limits.put(out);
                out.push(u8::from(*is_new));
            }
            Self::Trim(log, keep, id) => {
                out.push(TRIM);
                put_bytes(out, log);
                Keep::put(Some(*keep), out);
                put_number(out, *id);
            }
            Self::Seal(log) => {
                out.push(SEAL);
                put_bytes(out, log);
            }
            Self::Delete(log) => {
                out.push(DELETE);
                put_bytes(out, log);
            }
        }
    }

    fn take(bytes: &mut Reader<'a>) -> Option<Self> {
        Some(match bytes.byte()? {
            APPEND => Self::Append(Append::take(bytes)?),
            MAKE => Self::Make(take_bytes(bytes)?, Limits::take(bytes)?, bytes.flag()?),
            TRIM => Self::Trim(take_bytes(bytes)?, Keep::take(bytes)??, take_number(bytes)?),
            SEAL => Self::Seal(take_bytes(bytes)?),
            DELETE => Self::Delete(take_bytes(bytes)?),
            _ => return None,
        })
    }
}

impl<'a> Batch<'a> {
    /// The batch in the form in which it is ordered.
    pub fn encode(&self) -> Vec<u8> {
        let room: usize = self.operations.iter().map(Operation::room).sum();
        let mut out = Vec::with_capacity(OPERATION_BYTES + room);
        out.extend(self.stamp.to_le_bytes());
        out.push(u8::from(self.is_atomic));
        out.extend((self.operations.len() as u32).to_le_bytes());
        for operation in &self.operations {
            operation.put(&mut out);
        }
        out
    }

    /// The batch that was ordered. `None`: it is of a version that this one does not know.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let mut bytes = Reader(bytes);
        let batch = Self {
            stamp: bytes.u64()?,
            is_atomic: bytes.flag()?,
            operations: take_list(&mut bytes, Operation::take)?,
        };
        bytes.0.is_empty().then_some(batch)
    }
}

/// Several batches in one message: each is done by itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pack<T>(pub Vec<T>);

impl<T: AsRef<[u8]>> Pack<T> {
    /// The message in the form in which it is ordered.
    pub fn encode(&self) -> Vec<u8> {
        let length: usize = self.0.iter().map(|batch| 4 + batch.as_ref().len()).sum();
        let mut out = Vec::with_capacity(length);
        for batch in &self.0 {
            put_bytes(&mut out, batch.as_ref());
        }
        out
    }
}

impl<'a> Pack<&'a [u8]> {
    /// The batches of a message. `None`: the bytes are no message.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (mut bytes, mut batches) = (Reader(bytes), Vec::new());
        while !bytes.0.is_empty() {
            batches.push(take_bytes(&mut bytes)?);
        }
        (batches.len() <= MOST_PACKED).then_some(Self(batches))
    }
}

//! The changes that commands make, as watchers are told them.

use bytes::Bytes;
use imbl::OrdMap;
use rota_multiring::Place;

use super::outcome::Kind;
use super::value::{Entry, Value, field_bytes};
use crate::map::Partition;
use crate::slots::Slots;

/// The bytes of a value that a change tells, at most.
pub const MOST_TOLD_BYTES: usize = 16 << 10;
/// The bytes of all values that the changes of one place tell, at most.
pub const MOST_TOLD_TOGETHER: usize = 1 << 20;
/// The number of fields up to which a change has fields of its own. A change that shares them keeps whole nodes of the
/// old map, each with room for sixteen, and not only the memory that it counts for.
const FEW_FIELDS: usize = 64;
/// The memory of a change beside its bytes, about.
const CHANGE_BYTES: usize = 128;

/// The value of a key, as a change tells it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Told {
    /// Bytes.
    Text(Bytes),
    /// A few fields with bytes, in order.
    Fields(Vec<(Bytes, Bytes)>),
    /// The same for many: they share memory with those of the key.
    ManyFields(OrdMap<Bytes, Bytes>),
    /// The value is too large to be told: the watcher reads the key.
    Large(Kind),
}

/// A change of a key, or of many.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// The key has this value now. Also where only the end of its life has changed.
    Set(Bytes, Told),
    /// The key was deleted.
    Deleted(Bytes),
    /// The key came to its end.
    Expired(Bytes),
    /// All keys of the partition were deleted.
    Cleared,
    /// The slots belong to this other partition now, with all of their keys.
    Left(Slots, Partition),
    /// The slots came from this other partition, with all of their keys.
    Arrived(Slots, Partition),
}

/// All changes at one place of the order, as they were made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Changed {
    /// The place.
    pub place: Place,
    /// The last command of several partitions there, or before: nothing of this is told before that is stable.
    pub behind: Option<Place>,
    /// The changes: at least one.
    pub changes: Vec<Change>,
}

impl Told {
    /// The value of an entry.
    fn of(entry: &Entry, may_tell: bool) -> Self {
        match &entry.value {
            value if !may_tell => Self::Large(value.kind()),
            Value::Text(bytes) => Self::Text(bytes.clone()),
            Value::Fields(fields) if fields.len() > FEW_FIELDS => Self::ManyFields(fields.clone()),
            Value::Fields(fields) => {
                let pair = |(field, value): (&Bytes, &Bytes)| (field.clone(), value.clone());
                Self::Fields(fields.iter().map(pair).collect())
            }
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Text(bytes) => bytes.len(),
            Self::Fields(fields) => {
                let bytes = |(field, value): &(Bytes, Bytes)| field_bytes(field, value);
                fields.iter().map(bytes).sum()
            }
            Self::ManyFields(fields) => {
                let bytes = |(field, value): (&Bytes, &Bytes)| field_bytes(field, value);
                fields.iter().map(bytes).sum()
            }
            Self::Large(_) => 0,
        }
    }
}

impl Change {
    /// The memory of the change, about.
    pub fn bytes(&self) -> usize {
        CHANGE_BYTES
            + match self {
                Self::Set(key, told) => key.len() + told.bytes(),
                Self::Deleted(key) | Self::Expired(key) => key.len(),
                Self::Cleared => 0,
                Self::Left(slots, _) | Self::Arrived(slots, _) => 8 * slots.len(),
            }
    }

    /// The key, if it is a change of one.
    pub const fn key(&self) -> Option<&Bytes> {
        match self {
            Self::Set(key, _) | Self::Deleted(key) | Self::Expired(key) => Some(key),
            Self::Cleared | Self::Left(..) | Self::Arrived(..) => None,
        }
    }
}

/// The changes of the place at which a store is.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    /// Somebody is told of changes.
    is_on: bool,
    changes: Vec<Change>,
    /// The bytes of the values among them.
    value_bytes: usize,
}

impl Recorder {
    pub(super) const fn turn(&mut self, is_on: bool) {
        self.is_on = is_on;
    }

    /// Notes that a key has an entry now.
    pub(super) fn set(&mut self, key: &Bytes, entry: &Entry) {
        if !self.is_on {
            return;
        }
        let together = self.value_bytes + entry.bytes;
        let may_tell = entry.bytes <= MOST_TOLD_BYTES && together <= MOST_TOLD_TOGETHER;
        if may_tell {
            self.value_bytes = together;
        }
        let told = Told::of(entry, may_tell);
        self.changes.push(Change::Set(key.clone(), told));
    }

    /// Notes another change.
    pub(super) fn note(&mut self, change: Change) {
        if self.is_on {
            self.changes.push(change);
        }
    }

    /// The changes since the last call.
    pub(super) fn take(&mut self) -> Vec<Change> {
        self.value_bytes = 0;
        std::mem::take(&mut self.changes)
    }
}

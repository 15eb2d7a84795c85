//! The steps of a move of slots, as commands: the keys are copied, then the slots are frozen for a moment, keys that
//! have changed meanwhile are copied, and then the slots have another partition, for all at one place of the order
//! (`docs/protocols/kv.md`).

use bytes::Bytes;
use rota_core::bytes::{Reader, put_bytes, take_list};

use super::outcome::owned;
use super::value::Entry;
use crate::map::{Map, Partition};
use crate::slots::Slots;

/// The name of a move: no two have the same.
pub type MoveName = (u64, u64);

/// The copied value of a key, or a part of its fields.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Copied {
    /// The value, the place of its last change, and its end.
    pub entry: Entry,
    /// The fields come in addition to those that were copied before.
    pub is_more: bool,
}

/// Slots that are frozen: no command may write to them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Freeze {
    /// The move.
    pub of: MoveName,
    /// The partition that has the slots.
    pub from: Partition,
    /// The partition that is to have the slots.
    pub to: Partition,
    /// The slots.
    pub slots: Slots,
}

/// A step of a move.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// The partition that is to have the slots keeps these keys aside; `None`: there is no such key any more.
    Copy {
        /// The move.
        of: MoveName,
        /// The partition that is to have the slots.
        to: Partition,
        /// The number of copies before this one, all of which have to be there. 0: the move begins.
        at: u32,
        /// The keys.
        keys: Vec<(Bytes, Option<Copied>)>,
    },
    /// In all partitions: the slots are frozen.
    Freeze(Freeze),
    /// In all partitions: the slots have another partition.
    Give(MoveName),
    /// The partition that was to have the slots keeps nothing aside any more: they were not frozen.
    Forget {
        /// The move.
        of: MoveName,
        /// The partition that was to have the slots.
        to: Partition,
    },
    /// In all partitions: the store begins with this map. Only the first of these counts, whatever files of processes
    /// say.
    Found(Map),
    /// In all partitions: the move has ended, and nothing has moved if the slots were not given before.
    End(MoveName),
}

pub(super) fn put_name(out: &mut Vec<u8>, of: MoveName) {
    out.extend(of.0.to_le_bytes());
    out.extend(of.1.to_le_bytes());
}

pub(super) fn take_name(bytes: &mut Reader<'_>) -> Option<MoveName> {
    Some((bytes.u64()?, bytes.u64()?))
}

impl Copied {
    fn put(&self, out: &mut Vec<u8>) {
        self.entry.put(out);
        out.push(u8::from(self.is_more));
    }

    fn take(bytes: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            entry: Entry::take(bytes)?,
            is_more: bytes.flag()?,
        })
    }
}

impl Freeze {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put_name(out, self.of);
        out.extend(self.from.0.to_le_bytes());
        out.extend(self.to.0.to_le_bytes());
        self.slots.put(out);
    }

    pub(super) fn take(bytes: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            of: take_name(bytes)?,
            from: Partition(bytes.u16()?),
            to: Partition(bytes.u16()?),
            slots: Slots::take(bytes)?,
        })
    }
}

impl Step {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Copy { of, to, at, keys } => {
                out.push(0);
                put_name(out, *of);
                out.extend(to.0.to_le_bytes());
                out.extend(at.to_le_bytes());
                out.extend((keys.len() as u32).to_le_bytes());
                for (key, copied) in keys {
                    put_bytes(out, key);
                    out.push(u8::from(copied.is_some()));
                    copied.iter().for_each(|copied| copied.put(out));
                }
            }
            Self::Freeze(freeze) => {
                out.push(1);
                freeze.put(out);
            }
            Self::Give(of) | Self::End(of) => {
                out.push(if matches!(self, Self::Give(_)) { 2 } else { 3 });
                put_name(out, *of);
            }
            Self::Found(map) => {
                out.push(5);
                map.encode(out);
            }
            Self::Forget { of, to } => {
                out.push(4);
                put_name(out, *of);
                out.extend(to.0.to_le_bytes());
            }
        }
    }

    /// The partition of a step that is for one only.
    pub(super) const fn only_for(&self) -> Option<Partition> {
        match self {
            Self::Copy { to, .. } | Self::Forget { to, .. } => Some(*to),
            Self::Freeze(_) | Self::Give(_) | Self::End(_) | Self::Found(_) => None,
        }
    }

    pub(super) fn take(bytes: &mut Reader<'_>) -> Option<Self> {
        Some(match bytes.byte()? {
            0 => Self::Copy {
                of: take_name(bytes)?,
                to: Partition(bytes.u16()?),
                at: bytes.u32()?,
                keys: take_list(bytes, |bytes| {
                    let key = owned(bytes)?;
                    let copied = match bytes.flag()? {
                        true => Some(Copied::take(bytes)?),
                        false => None,
                    };
                    Some((key, copied))
                })?,
            },
            1 => Self::Freeze(Freeze::take(bytes)?),
            2 => Self::Give(take_name(bytes)?),
            3 => Self::End(take_name(bytes)?),
            4 => Self::Forget {
                of: take_name(bytes)?,
                to: Partition(bytes.u16()?),
            },
            5 => Self::Found(Map::decode(bytes)?),
            _ => return None,
        })
    }
}

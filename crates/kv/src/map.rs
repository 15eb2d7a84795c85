//! Which partition has which keys.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use rota_core::bytes::Reader;
use rota_resp::slot::{self, SLOTS};

/// A part of the keys, with replicas of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Partition(pub u16);

/// Some of them.
pub type Partitions = BTreeSet<Partition>;

/// Each slot's partition. It is a part of the state of all partitions, and changes for all of them at one place of the order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Map {
    epoch: u64,
    of: Vec<Partition>,
}

/// What is no map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapError {
    /// There is no partition.
    None,
    /// A slot has no partition.
    Missing(u16),
    /// A slot has two.
    Twice(u16),
    /// A range ends before it begins, or behind the last slot.
    Range(u16, u16),
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => write!(f, "there is no partition"),
            Self::Missing(slot) => write!(f, "no partition has slot {slot}"),
            Self::Twice(slot) => write!(f, "two partitions have slot {slot}"),
            Self::Range(first, last) => {
                let most = SLOTS - 1;
                write!(f, "slots {first} to {last}: a range is within 0 to {most}")
            }
        }
    }
}

impl std::error::Error for MapError {}

impl Map {
    /// The slots dealt out evenly, in order.
    ///
    /// # Errors
    /// There is no partition.
    pub fn even(partitions: &[Partition]) -> Result<Self, MapError> {
        if partitions.is_empty() {
            return Err(MapError::None);
        }
        let count = partitions.len();
        let of = |slot| partitions[usize::from(slot) * count / usize::from(SLOTS)];
        Ok(Self {
            epoch: 1,
            of: (0..SLOTS).map(of).collect(),
        })
    }

    /// From ranges of slots, their last ones included.
    ///
    /// # Errors
    /// [`MapError`].
    pub fn of_ranges(ranges: &[(Partition, u16, u16)]) -> Result<Self, MapError> {
        let mut of = vec![None; usize::from(SLOTS)];
        for (partition, first, last) in ranges {
            if first > last || *last >= SLOTS {
                return Err(MapError::Range(*first, *last));
            }
            for slot in *first..=*last {
                if of[usize::from(slot)].replace(*partition).is_some() {
                    return Err(MapError::Twice(slot));
                }
            }
        }
        let missing = of.iter().position(Option::is_none);
        match missing {
            Some(slot) => Err(MapError::Missing(slot as u16)),
            None => Ok(Self {
                epoch: 1,
                of: of.into_iter().flatten().collect(),
            }),
        }
    }

    /// Grows with each change.
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Which partition has a slot.
    pub fn of_slot(&self, slot: u16) -> Partition {
        self.of[usize::from(slot % SLOTS)]
    }

    /// Which partition has a key.
    pub fn of_key(&self, key: &[u8]) -> Partition {
        self.of_slot(slot::of(key))
    }

    /// All partitions that have slots.
    pub fn partitions(&self) -> Partitions {
        self.of.iter().copied().collect()
    }

    /// The slots in ranges, in order.
    pub fn ranges(&self) -> Vec<(Range<u16>, Partition)> {
        let mut ranges: Vec<(Range<u16>, Partition)> = Vec::new();
        for (slot, partition) in (0..SLOTS).zip(&self.of) {
            match ranges.last_mut() {
                Some((range, last)) if last == partition => range.end = slot + 1,
                _ => ranges.push((slot..slot + 1, *partition)),
            }
        }
        ranges
    }

    /// As bytes, for a state.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.epoch.to_le_bytes());
        let ranges = self.ranges();
        out.extend((ranges.len() as u16).to_le_bytes());
        for (range, partition) in ranges {
            out.extend(range.end.to_le_bytes());
            out.extend(partition.0.to_le_bytes());
        }
    }

    /// What [`Self::encode`] has made; `None` for anything else.
    pub fn decode(bytes: &mut Reader<'_>) -> Option<Self> {
        let epoch = bytes.u64()?;
        let mut of = Vec::new();
        for _ in 0..bytes.u16()? {
            let (end, partition) = (usize::from(bytes.u16()?), Partition(bytes.u16()?));
            let is_ascending = end > of.len() && end <= usize::from(SLOTS);
            if !is_ascending || of.last() == Some(&partition) {
                return None;
            }
            of.resize(end, partition);
        }
        (of.len() == usize::from(SLOTS)).then_some(Self { epoch, of })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_dealt_out_evenly_and_each_once() {
        let three = [1, 2, 3].map(Partition);
        let map = Map::even(&three).expect("three");
        let ranges = map.ranges();
        let sizes: Vec<usize> = ranges.iter().map(|(range, _)| range.len()).collect();
        assert_eq!(sizes, [5462, 5461, 5461]);
        assert_eq!(map.partitions(), three.into());
        assert_eq!(map.of_slot(0), Partition(1));
        assert_eq!(map.of_slot(SLOTS - 1), Partition(3));
        assert_eq!(map.of_key(b"foo"), map.of_slot(12182));
        assert_eq!(Map::even(&[]), Err(MapError::None));
    }

    #[test]
    fn ranges_that_are_no_map_are_refused() {
        let [one, two] = [1, 2].map(Partition);
        let of = |ranges: &[(Partition, u16, u16)]| Map::of_ranges(ranges);
        let last = SLOTS - 1;
        assert!(of(&[(one, 0, 99), (two, 100, last)]).is_ok());
        assert_eq!(
            of(&[(one, 0, 99), (two, 101, last)]),
            Err(MapError::Missing(100))
        );
        assert_eq!(
            of(&[(one, 0, 100), (two, 100, last)]),
            Err(MapError::Twice(100))
        );
        assert_eq!(of(&[(one, 5, 4)]), Err(MapError::Range(5, 4)));
        assert_eq!(of(&[(one, 0, SLOTS)]), Err(MapError::Range(0, SLOTS)));
    }

    #[test]
    fn a_map_is_read_as_it_was_written_and_nothing_else_is_one() {
        let map = Map::of_ranges(&[
            (Partition(7), 0, 9),
            (Partition(2), 10, 9000),
            (Partition(7), 9001, SLOTS - 1),
        ]);
        let map = map.expect("a map");
        let mut bytes = Vec::new();
        map.encode(&mut bytes);
        assert_eq!(Map::decode(&mut Reader(&bytes)), Some(map));
        for at in 0..bytes.len() {
            assert_eq!(Map::decode(&mut Reader(&bytes[..at])), None, "{at}");
        }
    }
}

//! The map of slots to partitions.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use rota_core::bytes::Reader;
use rota_resp::slot::{self, SLOTS};

use crate::slots::Slots;

/// A part of the keys, with replicas of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Partition(pub u16);

/// A set of partitions.
pub type Partitions = BTreeSet<Partition>;

/// The partition of a slot, and the epoch in which it got the slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Owner {
    partition: Partition,
    since: u64,
}

/// The partition of each slot. The map is a part of the state of all partitions, and changes for all of them at one
/// place of the order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Map {
    epoch: u64,
    /// All partitions, also those without a slot.
    partitions: Partitions,
    of: Vec<Owner>,
    /// The partition of each slot at first.
    first: Arc<[Partition]>,
}

/// An error in ranges of slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapError {
    /// There is no partition.
    None,
    /// A slot has no partition.
    Missing(u16),
    /// A slot has two partitions.
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
    /// A map that deals out the slots evenly, in order.
    ///
    /// # Errors
    /// There is no partition.
    pub fn even(partitions: &[Partition]) -> Result<Self, MapError> {
        if partitions.is_empty() {
            return Err(MapError::None);
        }
        let count = partitions.len();
        let of = |slot| partitions[usize::from(slot) * count / usize::from(SLOTS)];
        let first = (0..SLOTS).map(of).collect();
        Ok(Self::begun(partitions.iter().copied().collect(), first))
    }

    fn begun(partitions: Partitions, first: Arc<[Partition]>) -> Self {
        Self::of_epoch(1, partitions, first)
    }

    /// The map of a store that has not been founded: it says what slots the partitions are to have at first, and no
    /// command is done by it.
    pub fn unfounded(&self) -> Self {
        Self::of_epoch(0, self.partitions.clone(), Arc::clone(&self.first))
    }

    /// The map with which a store begins that is founded by this one: later moves do not matter.
    pub fn founded(&self) -> Self {
        Self::begun(self.partitions.clone(), Arc::clone(&self.first))
    }

    /// Whether it is the map of a store that has been founded.
    pub const fn is_founded(&self) -> bool {
        self.epoch > 0
    }

    fn of_epoch(epoch: u64, partitions: Partitions, first: Arc<[Partition]>) -> Self {
        let owner = |partition: &Partition| Owner {
            partition: *partition,
            since: epoch,
        };
        Self {
            epoch,
            partitions,
            of: first.iter().map(owner).collect(),
            first,
        }
    }

    /// A map from ranges of slots, their last ones included. `partitions`: all, since one may have no slot.
    ///
    /// # Errors
    /// [`MapError`].
    pub fn of_ranges(
        partitions: &[Partition],
        ranges: &[(Partition, u16, u16)],
    ) -> Result<Self, MapError> {
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
            None => {
                let named = ranges.iter().map(|(partition, ..)| partition);
                let all = partitions.iter().chain(named).copied().collect();
                Ok(Self::begun(all, of.into_iter().flatten().collect()))
            }
        }
    }

    /// The epoch of the map, which grows with each change. 0: the store has not been founded.
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The partition of a slot.
    pub fn of_slot(&self, slot: u16) -> Partition {
        self.of[usize::from(slot % SLOTS)].partition
    }

    /// The epoch in which a slot's partition got it.
    pub fn since(&self, slot: u16) -> u64 {
        self.of[usize::from(slot % SLOTS)].since
    }

    /// Whether both maps began with the same slots; later moves do not matter.
    pub fn has_begun_as(&self, other: &Self) -> bool {
        self.first == other.first
    }

    /// Gives slots to another partition from now on.
    pub(crate) fn give(&mut self, slots: &Slots, to: Partition) {
        self.epoch += 1;
        for slot in slots.iter() {
            self.of[usize::from(slot)] = Owner {
                partition: to,
                since: self.epoch,
            };
        }
    }

    /// The partition of a key.
    pub fn of_key(&self, key: &[u8]) -> Partition {
        self.of_slot(slot::of(key))
    }

    /// All partitions, also those without a slot.
    pub fn partitions(&self) -> Partitions {
        self.partitions.clone()
    }

    /// Whether there is one partition, which has all slots.
    pub fn is_of_one(&self) -> bool {
        self.partitions.len() == 1
    }

    /// The slots in ranges, in order.
    pub fn ranges(&self) -> Vec<(Range<u16>, Partition)> {
        ranges(self.of.iter().map(|owner| owner.partition))
    }

    /// The slots of a partition.
    pub fn slots_of(&self, partition: Partition) -> Slots {
        let own = |slot: &u16| self.of_slot(*slot) == partition;
        (0..SLOTS).filter(own).collect()
    }

    /// Writes the map as bytes, for a state.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.epoch.to_le_bytes());
        out.extend((self.partitions.len() as u16).to_le_bytes());
        for partition in &self.partitions {
            out.extend(partition.0.to_le_bytes());
        }
        put_ranges(out, &ranges(self.of.iter().copied()), |out, owner| {
            out.extend(owner.partition.0.to_le_bytes());
            out.extend(owner.since.to_le_bytes());
        });
        put_ranges(
            out,
            &ranges(self.first.iter().copied()),
            |out, partition| {
                out.extend(partition.0.to_le_bytes());
            },
        );
    }

    /// The map that [`Self::encode`] has written; `None` for anything else.
    pub fn decode(bytes: &mut Reader<'_>) -> Option<Self> {
        let epoch = bytes.u64()?;
        let mut partitions = Partitions::new();
        for _ in 0..bytes.u16()? {
            let partition = Partition(bytes.u16()?);
            let is_next = partitions.last().is_none_or(|last| *last < partition);
            if !is_next || !partitions.insert(partition) {
                return None;
            }
        }
        let of = take_ranges(bytes, |bytes| {
            Some(Owner {
                partition: Partition(bytes.u16()?),
                since: bytes.u64()?,
            })
        })?;
        let first = take_ranges(bytes, |bytes| Some(Partition(bytes.u16()?)))?;
        let is_known = |owner: &Owner| {
            owner.since <= epoch
                && (owner.since > 0 || epoch == 0)
                && partitions.contains(&owner.partition)
        };
        let is_map = of.iter().all(is_known) && first.iter().all(|of| partitions.contains(of));
        is_map.then_some(Self {
            epoch,
            partitions,
            of,
            first: first.into(),
        })
    }
}

/// The ranges of slots that have the same value.
fn ranges<T: PartialEq>(of: impl Iterator<Item = T>) -> Vec<(Range<u16>, T)> {
    let mut ranges: Vec<(Range<u16>, T)> = Vec::new();
    for (slot, owner) in (0..SLOTS).zip(of) {
        match ranges.last_mut() {
            Some((range, last)) if *last == owner => range.end = slot + 1,
            _ => ranges.push((slot..slot + 1, owner)),
        }
    }
    ranges
}

fn put_ranges<T>(out: &mut Vec<u8>, ranges: &[(Range<u16>, T)], put: impl Fn(&mut Vec<u8>, &T)) {
    out.extend((ranges.len() as u16).to_le_bytes());
    for (range, owner) in ranges {
        out.extend(range.end.to_le_bytes());
        put(out, owner);
    }
}

fn take_ranges<T: Clone + PartialEq>(
    bytes: &mut Reader<'_>,
    take: impl Fn(&mut Reader<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let mut of: Vec<T> = Vec::new();
    for _ in 0..bytes.u16()? {
        let (end, owner) = (usize::from(bytes.u16()?), take(bytes)?);
        let is_ascending = end > of.len() && end <= usize::from(SLOTS);
        if !is_ascending || of.last() == Some(&owner) {
            return None;
        }
        of.resize(end, owner);
    }
    (of.len() == usize::from(SLOTS)).then_some(of)
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
    fn slots_that_are_given_away_have_another_partition_since_then() {
        let [one, two] = [1, 2].map(Partition);
        let begun = Map::of_ranges(&[one, two], &[(one, 0, SLOTS - 1)]).expect("a map");
        let mut map = begun.clone();
        map.give(&(100..200).collect(), two);
        assert_eq!((map.of_slot(99), map.since(99)), (one, 1));
        assert_eq!((map.of_slot(100), map.since(100)), (two, 2));
        assert_eq!(map.slots_of(two), (100..200).collect());
        assert_eq!((map.epoch(), map.partitions()), (2, [one, two].into()));
        assert!(map != begun && map.has_begun_as(&begun));
    }

    #[test]
    fn ranges_that_are_no_map_are_refused() {
        let [one, two] = [1, 2].map(Partition);
        let of = |ranges: &[(Partition, u16, u16)]| Map::of_ranges(&[one, two], ranges);
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
        let [two, three, seven] = [2, 3, 7].map(Partition);
        let ranges = [(seven, 0, 9), (two, 10, 9000), (seven, 9001, SLOTS - 1)];
        let map = Map::of_ranges(&[two, three, seven], &ranges);
        let mut map = map.expect("a map");
        map.give(&[5, 6, 10].into_iter().collect(), three);
        let mut bytes = Vec::new();
        map.encode(&mut bytes);
        assert_eq!(Map::decode(&mut Reader(&bytes)), Some(map));
        for at in 0..bytes.len() {
            assert_eq!(Map::decode(&mut Reader(&bytes[..at])), None, "{at}");
        }
    }
}

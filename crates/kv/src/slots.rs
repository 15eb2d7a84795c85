//! Sets of slots.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;

use rota_core::bytes::Reader;
use rota_resp::slot::SLOTS;

/// A set of slots, in order.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Slots(BTreeSet<u16>);

impl FromIterator<u16> for Slots {
    /// Numbers behind the last slot are left out.
    fn from_iter<I: IntoIterator<Item = u16>>(slots: I) -> Self {
        Self(slots.into_iter().filter(|slot| *slot < SLOTS).collect())
    }
}

impl Slots {
    /// Reads `0-99,105`; `None`: the text is no such list, or names a slot twice.
    pub fn parse(text: &str) -> Option<Self> {
        let mut slots = BTreeSet::new();
        let parts = text.split(',').map(str::trim);
        for part in parts.filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.trim().parse::<u16>().ok();
            let (first, last) = number(first).zip(number(last))?;
            let is_range = first <= last && last < SLOTS;
            // Each slot may be named once.
            if !is_range || !(first..=last).all(|slot| slots.insert(slot)) {
                return None;
            }
        }
        Some(Self(slots))
    }

    /// The number of slots.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no slot.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a slot is in the set.
    pub fn has(&self, slot: u16) -> bool {
        self.0.contains(&slot)
    }

    /// The first slot.
    pub(crate) fn first(&self) -> Option<u16> {
        self.0.first().copied()
    }

    /// Adds a slot. Whether it was not there.
    pub(crate) fn insert(&mut self, slot: u16) -> bool {
        self.0.insert(slot)
    }

    /// Takes a slot away.
    pub(crate) fn remove(&mut self, slot: u16) {
        self.0.remove(&slot);
    }

    /// All slots, in order.
    pub fn iter(&self) -> impl Iterator<Item = u16> + Clone {
        self.0.iter().copied()
    }

    /// The slots in ranges.
    pub fn ranges(&self) -> Vec<RangeInclusive<u16>> {
        let mut ranges: Vec<RangeInclusive<u16>> = Vec::new();
        for slot in self.iter() {
            match ranges.last_mut() {
                Some(last) if *last.end() + 1 == slot => *last = *last.start()..=slot,
                _ => ranges.push(slot..=slot),
            }
        }
        ranges
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let ranges = self.ranges();
        out.extend((ranges.len() as u16).to_le_bytes());
        for range in ranges {
            out.extend(range.start().to_le_bytes());
            out.extend(range.end().to_le_bytes());
        }
    }

    pub(crate) fn take(bytes: &mut Reader<'_>) -> Option<Self> {
        let (mut slots, mut last) = (BTreeSet::new(), None);
        for _ in 0..bytes.u16()? {
            let (first, end) = (bytes.u16()?, bytes.u16()?);
            // Ranges that touch would have been written as one.
            let is_next = last.is_none_or(|last: u16| last + 1 < first);
            if !is_next || first > end || end >= SLOTS {
                return None;
            }
            slots.extend(first..=end);
            last = Some(end);
        }
        Some(Self(slots))
    }
}

impl fmt::Display for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, range) in self.ranges().iter().enumerate() {
            let between = if at == 0 { "" } else { "," };
            match range.start() == range.end() {
                true => write!(f, "{between}{}", range.start())?,
                false => write!(f, "{between}{}-{}", range.start(), range.end())?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_read_as_they_are_shown_and_written() {
        for text in ["", "0", "0-99,105", "3,5-6,16383"] {
            let slots = Slots::parse(text).expect("slots");
            assert_eq!(slots.to_string(), text);
            let mut bytes = Vec::new();
            slots.put(&mut bytes);
            assert_eq!(Slots::take(&mut Reader(&bytes)), Some(slots));
        }
        assert_eq!(Slots::parse("4-4, 3").expect("slots").to_string(), "3-4");
        for text in ["x", "5-4", "16384", "1-16384", "-1", "1-5,5"] {
            assert_eq!(Slots::parse(text), None, "{text}");
        }
        for ranges in [&[5_u16, 4][..], &[1, 2, 3, 4], &[0, SLOTS], &[7, 8, 1, 2]] {
            let mut bytes = ((ranges.len() / 2) as u16).to_le_bytes().to_vec();
            bytes.extend(ranges.iter().flat_map(|number| number.to_le_bytes()));
            assert_eq!(Slots::take(&mut Reader(&bytes)), None, "{ranges:?}");
        }
    }
}

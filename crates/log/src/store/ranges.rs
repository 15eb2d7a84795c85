//! Sets of positions, as ranges.

use std::collections::BTreeMap;

/// Positions, kept as ranges that neither meet nor overlap: each one's beginning, and the position behind it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().map(|(from, to)| (*from, *to))
    }

    pub(super) fn add(&mut self, from: u64, to: u64) {
        if from >= to {
            return;
        }
        let (mut start, mut end) = (from, to);
        let touching: Vec<u64> = self.0.range(..=to).rev().map(|(start, _)| *start).collect();
        for other in touching {
            let Some(other_end) = self.0.get(&other).copied() else {
                continue;
            };
            if other_end < from {
                break;
            }
            self.0.remove(&other);
            (start, end) = (start.min(other), end.max(other_end));
        }
        self.0.insert(start, end);
    }

    pub(super) fn remove(&mut self, from: u64, to: u64) {
        for (start, end) in self.within(from, to) {
            let whole = self.at(start);
            if let Some((whole_start, whole_end)) = whole {
                self.0.remove(&whole_start);
                for (start, end) in [(whole_start, start), (end, whole_end)] {
                    if start < end {
                        self.0.insert(start, end);
                    }
                }
            }
        }
    }

    /// The range that `position` is in.
    pub(super) fn at(&self, position: u64) -> Option<(u64, u64)> {
        let (from, to) = self.0.range(..=position).next_back()?;
        (position < *to).then_some((*from, *to))
    }

    /// The ranges between `from` and `to`, cut there.
    pub(super) fn within(&self, from: u64, to: u64) -> Vec<(u64, u64)> {
        let mut found: Vec<(u64, u64)> = Vec::new();
        if from >= to {
            return found;
        }
        for (start, end) in self.0.range(..to).rev() {
            if *end <= from {
                break;
            }
            found.push(((*start).max(from), (*end).min(to)));
        }
        found.reverse();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_as_a_set_of_positions_would_be() {
        let mut random = 1_u64;
        let mut below = |bound: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) % bound
        };
        let (mut ranges, mut model) = (Ranges::default(), [false; 40]);
        for _ in 0..5_000 {
            let from = below(40);
            let to = (from + below(9)).min(40);
            let adds = below(2) == 0;
            match adds {
                true => ranges.add(from, to),
                false => ranges.remove(from, to),
            }
            (from..to).for_each(|at| model[at as usize] = adds);
            for at in 0..40 {
                assert_eq!(ranges.at(at).is_some(), model[at as usize]);
            }
            let all: Vec<_> = ranges.iter().collect();
            assert!(all.windows(2).all(|two| two[0].1 < two[1].0), "{all:?}");
            let part: u64 = ranges.within(10, 30).iter().map(|(a, b)| b - a).sum();
            let expected = model[10..30].iter().filter(|is| **is).count();
            assert_eq!(part, expected as u64);
        }
    }
}

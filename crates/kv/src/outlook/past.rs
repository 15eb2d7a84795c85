//! The commands of several partitions that a state stands behind.

use std::collections::BTreeMap;

use rota_core::bytes::Reader;
use rota_multiring::Place;

use crate::map::{Partition, Partitions};

/// The number of sets of partitions, at most, that are told apart.
const MOST_SETS: usize = 64;

/// The last command of each set of partitions. It is a part of the state: a replica that begins with one knows by it
/// which partitions have to have delivered its commands.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Past(BTreeMap<Partitions, Place>);

impl Past {
    /// Takes in a command that is delivered. Where there are too many sets, the two that come first count as one, whose
    /// last command is the later one of theirs: more counts as before others then, and nothing less.
    pub fn note(&mut self, place: Place, of: &Partitions) {
        if let Some(last) = self.0.get_mut(of) {
            *last = place;
            return;
        }
        self.0.insert(of.clone(), place);
        while self.0.len() > MOST_SETS {
            let firsts = [self.0.pop_first(), self.0.pop_first()];
            let (mut all, mut last) = (Partitions::new(), place);
            for (index, (of, place)) in firsts.into_iter().flatten().enumerate() {
                last = if index == 0 { place } else { last.max(place) };
                all.extend(of);
            }
            let last = self.0.get(&all).map_or(last, |known| last.max(*known));
            self.0.insert(all, last);
        }
    }

    /// The last command: more than the last one of a set is never forgotten.
    pub fn last(&self) -> Option<Place> {
        self.0.values().max().copied()
    }

    /// The commands, in their order.
    pub fn commands(&self) -> Vec<(Place, Partitions)> {
        let commands = self.0.iter().map(|(of, place)| (*place, of.clone()));
        let mut commands: Vec<_> = commands.collect();
        commands.sort();
        commands
    }

    /// A partition, all others that have had commands together with it, all that have had some with these, and so on:
    /// no command of theirs concerns any other partition.
    pub fn together(&self, me: Partition) -> Partitions {
        let mut all = Partitions::from([me]);
        loop {
            let known = all.len();
            let concerns = self.0.keys().filter(|of| !of.is_disjoint(&all));
            all = concerns.flatten().chain(&all).copied().collect();
            if all.len() == known {
                return all;
            }
        }
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.extend((self.0.len() as u32).to_le_bytes());
        for (of, place) in &self.0 {
            out.extend((of.len() as u32).to_le_bytes());
            of.iter().for_each(|of| out.extend(of.0.to_le_bytes()));
            place.put(out);
        }
    }

    pub(crate) fn take(bytes: &mut Reader<'_>) -> Option<Self> {
        let mut past = Self::default();
        for _ in 0..bytes.u32()? {
            let mut of = Partitions::new();
            for _ in 0..bytes.u32()? {
                of.insert(Partition(bytes.u16()?));
            }
            if past.0.insert(of, Place::take(bytes)?).is_some() || past.0.len() > MOST_SETS {
                return None;
            }
        }
        Some(past)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_multiring::Rank;

    fn place(round: u64) -> Place {
        Place {
            round,
            rank: Rank(9),
            instance: round,
            index: 0,
        }
    }

    fn of<const N: usize>(partitions: [u16; N]) -> Partitions {
        partitions.map(Partition).into()
    }

    #[test]
    fn the_last_command_of_each_set_is_kept() {
        let mut past = Past::default();
        assert_eq!(past.last(), None);
        for (round, set) in [
            (1, of([2, 3])),
            (2, of([1, 2])),
            (3, of([2, 3])),
            (4, of([4, 5])),
        ] {
            past.note(place(round), &set);
        }
        let kept = [(2, of([1, 2])), (3, of([2, 3])), (4, of([4, 5]))];
        assert_eq!(
            past.commands(),
            kept.map(|(round, set)| (place(round), set))
        );
        let together = [1, 2, 5, 6].map(|me| past.together(Partition(me)));
        assert_eq!(
            together,
            [of([1, 2, 3]), of([1, 2, 3]), of([4, 5]), of([6])]
        );
        let mut bytes = Vec::new();
        past.put(&mut bytes);
        assert_eq!(Past::take(&mut Reader(&bytes)), Some(past));
        assert_eq!(Past::take(&mut Reader(&bytes[..bytes.len() - 1])), None);
    }

    #[test]
    fn where_there_are_many_sets_some_count_as_one_and_none_is_lost() {
        let mut past = Past::default();
        let pairs = (1..=20).flat_map(|one| (one + 1..=20).map(move |other| [one, other]));
        let mut last = BTreeMap::new();
        for (round, pair) in (1..).zip(pairs) {
            past.note(place(round), &of(pair));
            assert_eq!(past.last(), Some(place(round)));
            last.extend(pair.map(|one| (one, round)));
            assert!(past.commands().len() <= MOST_SETS);
        }
        for (one, round) in last {
            let commands = past.commands();
            let mut own = commands.iter().rev();
            let own = own.find(|(_, of)| of.contains(&Partition(one)));
            assert!(own.is_some_and(|(last, _)| *last >= place(round)), "{one}");
        }
        let together = past.together(Partition(1));
        assert_eq!(together, (1..=20).map(Partition).collect());
    }
}

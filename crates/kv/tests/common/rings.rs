//! The rings of a small world: that of each partition, and one of all. Each has its own rounds, so that they lag behind each other.

use std::collections::BTreeMap;

use rota_kv::{Partition, Partitions};
use rota_multiring::{Place, Rank};

/// The ring of all.
pub const ALL: u16 = 0;

/// The one that something of these partitions is ordered in.
pub fn ring_of(of: &Partitions) -> u16 {
    match of.first().filter(|_| of.len() == 1) {
        Some(only) => only.0,
        None => ALL,
    }
}

/// What is ordered in each, by its number.
#[derive(Default)]
pub struct Rings {
    ordered: BTreeMap<u16, Vec<(Place, usize)>>,
    rounds: BTreeMap<u16, u64>,
}

impl Rings {
    /// The next of a ring, so many rounds behind its last one, and behind a round that was delivered: a ring does not go back.
    pub fn order(&mut self, ring: u16, what: usize, (least, step): (u64, u64)) -> Place {
        let round = self.rounds.entry(ring).or_default();
        *round = (*round).max(least) + step;
        let place = Place {
            round: *round,
            rank: Rank(10 - ring),
            instance: *round,
            index: 0,
        };
        self.ordered.entry(ring).or_default().push((place, what));
        place
    }

    /// What a replica of a partition delivers next that has done so much: in the order of places, as nothing comes before another ring's any more.
    pub fn next(&self, partition: Partition, done: usize) -> Option<usize> {
        let rings = [partition.0, ALL].map(|ring| self.ordered.get(&ring));
        let mut all: Vec<_> = rings.into_iter().flatten().flatten().collect();
        all.sort();
        all.get(done).map(|(_, what)| *what)
    }
}

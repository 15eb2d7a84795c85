//! Partitions: hosts with the same rings, which may be others from a round on.

use std::collections::{BTreeMap, BTreeSet};

use rota_multiring::Round;

use super::world::World;

/// A partition.
pub struct PartitionOf {
    /// Its replicas.
    pub hosts: Vec<usize>,
    /// The rings with which it began, by index, in the order of their ranks.
    pub begins: Vec<usize>,
    /// The rings that all its replicas are on: those to which it may subscribe.
    pub may: Vec<usize>,
    /// The rings in which it has an account, or wants one.
    pub accounts: BTreeSet<usize>,
    /// Its applications are replicas of no partition: they have no accounts, and their rings do not change.
    pub only_reads: bool,
    /// By the round from which on it counts: a ring, and whether the partition has it then.
    pub changes: BTreeMap<Round, (usize, bool)>,
}

impl PartitionOf {
    /// Whether it has a ring in a round.
    pub fn has(&self, ring: usize, round: Round) -> bool {
        let before = self.changes.range(..=round).rev();
        let mut of_ring = before.filter(|(_, (of, _))| *of == ring);
        let last = of_ring.next().map(|(_, (_, has))| *has);
        last.unwrap_or_else(|| self.begins.contains(&ring))
    }

    /// Its rings in a round.
    pub fn rings(&self, round: Round) -> BTreeSet<usize> {
        let all = self.may.iter().copied();
        all.filter(|ring| self.has(*ring, round)).collect()
    }

    /// Whether it may have other rings.
    pub fn has_choice(&self) -> bool {
        self.may.len() > 1 && !self.only_reads
    }

    /// Its rings when all has happened.
    pub fn rings_at_last(&self) -> BTreeSet<usize> {
        self.rings(Round::MAX)
    }
}

impl World {
    /// Hosts that stand next to each other are a partition, of some of the rings that all of them are on.
    pub fn draw_partitions(&mut self) {
        let hosts = self.hosts.len();
        let count = 1 + self.below(hosts.min(3) as u64) as usize;
        for partition in 0..count {
            let of: Vec<usize> = (0..hosts)
                .filter(|host| host * count / hosts == partition)
                .collect();
            of.iter()
                .for_each(|host| self.hosts[*host].partition = partition);
            let rings = self.rings.iter().enumerate();
            let on_all = rings.filter(|(_, ring)| of.iter().all(|host| ring.hosts.contains(host)));
            let mut may: Vec<usize> = on_all.map(|(index, _)| index).collect();
            may.sort_by_key(|index| self.rings[*index].of.constants.rank);
            let mut begins = may.clone();
            begins.retain(|_| self.random.below(4) > 0);
            if begins.is_empty() {
                begins.push(0);
            }
            self.partitions.push(PartitionOf {
                hosts: of,
                accounts: begins.iter().copied().collect(),
                begins,
                may,
                only_reads: false,
                changes: BTreeMap::new(),
            });
        }
    }

    pub fn partition_of(&self, host: usize) -> &PartitionOf {
        &self.partitions[self.hosts[host].partition]
    }

    /// The rings with which the next life of a host begins: those of its state, or else of the beginning.
    pub fn begins_with(&self, host: usize) -> Vec<usize> {
        let Some(kept) = &self.hosts[host].kept else {
            return self.partition_of(host).begins.clone();
        };
        let states = kept.resume.rings.iter();
        let index = |state: &rota_multiring::ResumeRing| {
            let mut rings = self.rings.iter();
            rings.position(|ring| ring.of.constants == state.of)
        };
        states.filter_map(index).collect()
    }
}

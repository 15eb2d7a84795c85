//! Situations that are rare, and counted: what never comes up in a campaign was not tried by it.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use rota_multiring::{Instance, Resume};
use rota_paxos::{VOTES_LOG, VoteHead};

use super::disk::Disk;
use super::partitions::PartitionOf;
use super::world::World;

/// What was seen in earlier steps.
#[derive(Default)]
pub struct Seen {
    /// By host and ring: what its acceptor has not forgotten.
    kept: BTreeMap<(usize, usize), Instance>,
    /// The partitions of which no process lives.
    down: BTreeSet<u32>,
}

/// Whether a vote for a skip is on this disk that has begun before an instance, and ends behind it.
fn has_skip_around(disk: &mut Disk, next: Instance) -> bool {
    let is_around = |(log, at, bytes): &(_, Instance, Bytes)| {
        let span = VoteHead::read(bytes).map_or(1, |head| head.span);
        *log == VOTES_LOG && *at < next && next < at.saturating_add(span)
    };
    disk.found().iter().any(is_around)
}

impl World {
    /// An application is to keep a state at this point.
    pub fn count_point(&mut self, resume: &Resume) {
        self.add("points");
        if resume.rings.iter().any(|ring| !ring.base.open.is_empty()) {
            self.add("points inside cut messages");
        }
        let is_inside = |ring: &rota_multiring::ResumeRing| {
            let mut rings = self.rings.iter();
            let at = rings.position(|known| known.of.constants == ring.of);
            let disks = self.hosts.iter_mut().flat_map(|host| &mut host.disks);
            let mut disks = disks.filter(|(of, _)| Some(**of) == at);
            disks.any(|(_, disk)| has_skip_around(disk, ring.base.next))
        };
        if resume.rings.iter().any(is_inside) {
            self.add("points inside skips");
        }
    }

    /// A life of a host begins, behind its state if it has one.
    pub fn count_beginning(&mut self, host: usize) {
        let this = &mut self.hosts[host];
        let is_fetched = std::mem::take(&mut this.is_fetched);
        let point = this.kept.as_ref().map(|kept| kept.resume.point);
        let is_again = point.is_some() && this.began == point;
        this.began = point;
        if point.is_some() {
            self.add_if_observes(host, "observers recovered");
        }
        self.add(match point {
            None => "begun",
            Some(_) if is_fetched => "remote recoveries",
            Some(_) => "local recoveries",
        });
        if is_again {
            self.add("recoveries repeated");
        }
    }

    /// A host begins to get another's state.
    pub fn count_transfer(&mut self, host: usize) {
        let this = &mut self.hosts[host];
        this.transfers += 1;
        // It has kept no state of its own since the one before.
        if this.transfers > 1 {
            self.add("transfers repeated");
        }
    }

    /// What has happened in a step.
    pub fn look_around(&mut self) {
        self.look_at_trims();
        self.look_at_lives();
    }

    fn look_at_trims(&mut self) {
        let mut trimmed = Vec::new();
        for (at, host) in self.hosts.iter().enumerate() {
            let engines = host.life.iter().flat_map(|life| &life.engines);
            for (ring, engine) in engines {
                let kept = engine.get().get().kept();
                let before = self.seen.kept.insert((at, *ring), kept).unwrap_or(1);
                if before < kept {
                    trimmed.push((at, *ring, kept));
                }
            }
        }
        for (host, ring, kept) in trimmed {
            let of = self.rings[ring].of.constants;
            let has = |fetched: &super::host::Fetched| {
                let mut rings = fetched.kept.resume.rings.iter();
                rings.any(|state| state.of == of)
            };
            let mut transfers = self.hosts.iter().filter_map(|host| host.fetches.as_ref());
            if transfers.any(has) {
                self.add("trims during transfers");
            }
            self.note_trim(host, (ring, kept));
        }
    }

    fn look_at_lives(&mut self) {
        let all = (0..self.hosts.len()).map(|host| self.partition(host));
        let mut down: BTreeSet<u32> = all.collect();
        let is_all = self.hosts.iter().all(|host| host.life.is_none());
        for host in 0..self.hosts.len() {
            if self.hosts[host].life.is_some() {
                down.remove(&self.partition(host));
            }
        }
        let news = down.difference(&self.seen.down).count();
        if is_all && news > 0 {
            self.add("all processes down");
        }
        let has_several = |partition: &u32| {
            self.replicas(*partition).count() > 1 && !self.seen.down.contains(partition)
        };
        let partitions = down
            .iter()
            .filter(|partition| has_several(partition))
            .count();
        for _ in 0..partitions {
            self.add("all replicas of a partition down");
        }
        self.seen.down = down;
    }

    /// Partitions have rings in common, and not all of them.
    pub fn count_overlaps(&mut self) {
        let sets = self.partitions.iter();
        let sets: BTreeSet<BTreeSet<usize>> = sets.map(PartitionOf::rings_at_last).collect();
        let overlap = |one: &BTreeSet<usize>| {
            let mut others = sets.iter();
            others.any(|other| one != other && !one.is_disjoint(other))
        };
        if sets.iter().any(overlap) {
            self.add("overlapping subscriptions");
        }
    }
}

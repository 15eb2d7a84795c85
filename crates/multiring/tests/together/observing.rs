//! Hosts that only observe some of their rings: they deliver what is ordered there as others do, and order nothing.
//!
//! A replica of a partition orders its marks and its wishes in each ring that the partition has, so no partition has a ring
//! that a replica only observes: nodes refuse that. Applications of no partition may observe what they merge. They keep
//! states and go on behind them, without accounts, and their rings are always the same.

use rota_core::contract::Delivery;
use rota_core::random::Random;

use super::world::{World, node_id};

/// Worlds with observers are drawn from a stream of their own: the others are what they were before there were any.
const OBSERVING: u64 = 0x0b5e_71e5;

impl World {
    /// In one of three worlds, hosts that do not vote in a ring may observe it. Half of the partitions with such a host
    /// only read.
    pub fn draw_observers(&mut self, seed: u64) {
        let mut random = Random::new(seed ^ OBSERVING);
        if random.below(3) > 0 {
            return;
        }
        self.add("worlds with observers");
        let reads: Vec<bool> = self
            .partitions
            .iter()
            .map(|_| random.below(2) == 0)
            .collect();
        for ring in 0..self.rings.len() {
            let others = self.rings[ring].hosts[3..].iter().copied();
            let drawn: Vec<usize> = others.filter(|_| random.below(2) == 0).collect();
            for host in drawn {
                self.draw_observer((host, ring), &reads);
            }
        }
    }

    /// A host observes a ring, unless its partition needs that.
    fn draw_observer(&mut self, (host, ring): (usize, usize), reads: &[bool]) {
        let number = self.hosts[host].partition;
        let partition = &mut self.partitions[number];
        let is_needed = partition.begins.contains(&ring);
        if is_needed && reads[number] {
            partition.only_reads = true;
            partition.accounts.clear();
        } else if is_needed {
            return;
        } else {
            partition.may.retain(|may| *may != ring);
        }
        let observers = &mut self.rings[ring].config.observers;
        observers.push(node_id(host));
    }

    /// Whether a host is on no ring there, but learns.
    pub fn observes(&self, host: usize, ring: usize) -> bool {
        let observers = &self.rings[ring].config.observers;
        observers.contains(&node_id(host))
    }

    /// Whether rings keep what the states of a host need.
    pub fn has_account(&self, host: usize) -> bool {
        self.has_accounts && !self.partition_of(host).only_reads
    }

    /// Whether the application of a host merges a ring that the host observes.
    fn merges_observed(&self, host: usize) -> bool {
        let partition = self.partition_of(host);
        let mut rings = partition.begins.iter();
        rings.any(|ring| self.observes(host, *ring))
    }

    /// Something of a host is to be ordered: in no ring that it only observes.
    pub fn judge_order(&mut self, host: usize, ring: usize) {
        if self.observes(host, ring) {
            let what =
                format!("order: host {host} observes ring {ring}, and has something ordered");
            self.judge.found(what);
        }
    }

    /// Something happens to a host that counts apart where that merges a ring which it observes.
    pub fn add_if_observes(&mut self, host: usize, what: &'static str) {
        if self.merges_observed(host) {
            self.add(what);
        }
    }

    /// A ring has handed something to an observer.
    pub fn count_observed(&mut self, (host, ring): (usize, usize), delivery: &Delivery) {
        if !self.observes(host, ring) {
            return;
        }
        match delivery {
            Delivery::Message(_) => self.add("observed messages"),
            Delivery::Missed { .. } => self.add("observers behind what is forgotten"),
            _ => {}
        }
    }
}

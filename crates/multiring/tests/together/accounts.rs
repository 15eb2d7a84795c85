//! The accounts, marks and pins by which rings keep instances for applications with states, and the rules that have to
//! hold of them.

use std::collections::BTreeMap;

use rota_core::contract::Time;
use rota_multiring::accounts::{Command, Replicas};

use super::host::{Fetched, Host, Kept};
use super::world::{MILLI, World, node_id};

/// Longer than anything here lasts.
const PINNED: u64 = 1 << 40;

/// Of a host: how far its states have been, by the ring's index.
pub type Ever = BTreeMap<usize, u64>;

impl World {
    /// Hosts with the same rings are a partition, which has the number of the first.
    pub fn partition(&self, host: usize) -> u32 {
        let is_same = |other: &Host| other.subscribes == self.hosts[host].subscribes;
        let first = self.hosts.iter().position(is_same);
        first.map_or(0, |first| first as u32)
    }

    fn replicas(&self, partition: u32) -> impl Iterator<Item = usize> {
        (0..self.hosts.len()).filter(move |host| self.partition(*host) == partition)
    }

    fn order(&mut self, host: usize, ring: usize, command: &Command) {
        let now = self.now;
        if let Some(engine) = self.engine(host, ring) {
            let inner = engine.get_mut().get_mut();
            inner.order_account(Time(now), (command, now));
            self.drain(host, ring);
        }
    }

    /// A process begins: its partition has an account in each of its rings, and its state is what it is.
    pub fn open_accounts(&mut self, host: usize) {
        if !self.has_accounts {
            return;
        }
        let partition = self.partition(host);
        let replicas: Replicas = self.replicas(partition).map(node_id).collect();
        for ring in self.hosts[host].subscribes.clone() {
            let kept = self.rings[ring].config.acceptor.kept_instances;
            let hold = Command::Hold(partition, replicas.clone(), kept);
            self.order(host, ring, &hold);
        }
        self.mark(host);
    }

    /// How far the state of a host is in its rings.
    fn next(&self, kept: Option<&Kept>, ring: usize) -> u64 {
        let of = self.rings[ring].of.constants;
        let rings = kept.into_iter().flat_map(|kept| &kept.resume.rings);
        let mut rings = rings.filter(|ring| ring.of == of);
        rings.next().map_or(1, |ring| ring.base.next)
    }

    /// The state of a host is durable.
    pub fn mark(&mut self, host: usize) {
        for ring in self.hosts[host].subscribes.clone() {
            let next = self.next(self.hosts[host].kept.as_ref(), ring);
            let ever = self.hosts[host].ever.entry(ring).or_insert(1);
            *ever = next.max(*ever);
            if self.has_accounts {
                let mark = Command::Mark(self.partition(host), node_id(host), next);
                self.order(host, ring, &mark);
                self.add("marks");
            }
        }
    }

    /// A process begins to get a state of another, and what is behind it has to stay until it has it.
    pub fn fetch(&mut self, host: usize, kept: Kept) {
        if self.has_accounts {
            for ring in self.hosts[host].subscribes.clone() {
                let next = self.next(Some(&kept), ring);
                let pin = Command::Pin(node_id(host), next, PINNED);
                self.order(host, ring, &pin);
            }
        }
        let takes = [10, 2500][self.below(2) as usize];
        let at = self.now + (10 + self.below(takes)) * MILLI;
        let is_pinned = false;
        self.hosts[host].fetches = Some(Fetched {
            at,
            kept,
            is_pinned,
        });
    }

    /// A process has a state of its own.
    pub fn unpin(&mut self, host: usize) {
        if std::mem::take(&mut self.hosts[host].is_pinned) {
            for ring in self.hosts[host].subscribes.clone() {
                self.order(host, ring, &Command::Unpin(node_id(host)));
            }
        }
    }

    /// Whether all rings keep what is behind the state that a process gets, as it has learnt; once it is so it stays so.
    pub fn look_at_pins(&mut self, host: usize) {
        let Some(fetched) = self.hosts[host].fetches.as_ref() else {
            return;
        };
        let rings = &self.hosts[host].subscribes;
        let mut rings = rings
            .iter()
            .map(|ring| (*ring, self.next(Some(&fetched.kept), *ring)));
        let Some(life) = &self.hosts[host].life else {
            return;
        };
        let is_kept = rings.all(|(ring, next)| {
            let accounts = life.engines[&ring].get().get().accounts();
            let mut pins = accounts.pins();
            pins.any(|(node, pinned, _)| node == node_id(host) && pinned == next)
        });
        if is_kept && !fetched.is_pinned {
            self.add("pinned");
            if let Some(fetched) = &mut self.hosts[host].fetches {
                fetched.is_pinned = true;
            }
        }
    }

    /// Nothing is forgotten that a majority of some partition had no state behind, once it has an account.
    pub fn judge_forgotten(&mut self) {
        if !self.has_accounts {
            return;
        }
        let mut all = Vec::new();
        for life in self.hosts.iter().filter_map(|host| host.life.as_ref()) {
            for (ring, engine) in &life.engines {
                let inner = engine.get().get();
                let accounts = inner.accounts();
                for partition in accounts.partitions() {
                    let needed = accounts.account(partition).map_or(1, |(needed, _)| needed);
                    all.push((*ring, partition, needed, inner.kept()));
                }
            }
        }
        for (ring, partition, needed, kept) in all {
            let first = *self.opened.entry((ring, partition)).or_insert(needed);
            let replicas = self.replicas(partition);
            let states =
                replicas.map(|host| self.hosts[host].ever.get(&ring).copied().unwrap_or(1));
            let states: Vec<u64> = states.collect();
            let behind = states.iter().filter(|next| **next >= kept).count();
            if kept > first && 2 * behind <= states.len() {
                self.judge.found(format!(
                    "forgotten: ring {ring} before {kept}, states of partition {partition}: {states:?}"
                ));
            }
        }
    }
}

//! The accounts, marks and pins by which rings keep instances for applications with states, and the rules that have to
//! hold of them.

use std::collections::BTreeMap;

use rota_core::contract::Time;
use rota_multiring::accounts::{Command, Replicas};

use super::host::{Fetched, Kept};
use super::world::{MILLI, World, node_id};

/// Longer than anything here lasts.
const PINNED: u64 = 1 << 40;

/// Of a host: how far its states have been, by the ring's index.
pub type Ever = BTreeMap<usize, u64>;

impl World {
    pub fn partition(&self, host: usize) -> u32 {
        self.hosts[host].partition as u32
    }

    pub fn replicas(&self, partition: u32) -> impl Iterator<Item = usize> {
        self.partitions[partition as usize].hosts.iter().copied()
    }

    /// The rings in which the partition of a host has an account, or wants one.
    fn accounts_of(&self, host: usize) -> Vec<usize> {
        self.partition_of(host).accounts.iter().copied().collect()
    }

    pub fn order(&mut self, host: usize, ring: usize, command: &Command) {
        let now = self.now;
        self.judge_order(host, ring);
        if let Some(engine) = self.engine(host, ring) {
            let inner = engine.get_mut().get_mut();
            inner.order_account(Time(now), (command, now));
            self.drain(host, ring);
        }
    }

    /// A process begins: its partition has an account in each of its rings, and its state is what it is.
    pub fn open_accounts(&mut self, host: usize) {
        if !self.has_account(host) {
            return;
        }
        let partition = self.partition(host);
        let replicas: Replicas = self.replicas(partition).map(node_id).collect();
        for ring in self.accounts_of(host) {
            let kept = self.rings[ring].config.acceptor.kept_instances;
            let hold = Command::Hold(partition, replicas.clone(), kept);
            self.order(host, ring, &hold);
        }
        self.mark(host);
    }

    /// How far a state is in each of its rings; without one it is nowhere. A ring that the partition has not got there, but
    /// wants, keeps everything from the hold on: a replica that did not hear of that keeps nothing for the subscription.
    fn nexts(&self, host: usize, kept: Option<&Kept>) -> BTreeMap<usize, u64> {
        let Some(kept) = kept else {
            let all = self.accounts_of(host).into_iter();
            return all.map(|ring| (ring, 1)).collect();
        };
        let states = kept.resume.rings.iter();
        let index = |state: &rota_multiring::ResumeRing| {
            let mut rings = self.rings.iter();
            rings.position(|ring| ring.of.constants == state.of)
        };
        let nexts = states.filter_map(|state| Some((index(state)?, state.base.next)));
        nexts.collect()
    }

    /// The state of a host is durable.
    pub fn mark(&mut self, host: usize) {
        for (ring, next) in self.nexts(host, self.hosts[host].kept.as_ref()) {
            let ever = self.hosts[host].ever.entry(ring).or_insert(1);
            *ever = next.max(*ever);
            if self.has_account(host) {
                let mark = Command::Mark(self.partition(host), node_id(host), next);
                self.order(host, ring, &mark);
                self.add("marks");
            }
        }
    }

    /// A process begins to get a state of another, and what is behind it has to stay until it has it.
    pub fn fetch(&mut self, host: usize, kept: Kept) {
        self.count_transfer(host);
        // Somebody wants other rings meanwhile.
        self.next_wish = self.now.max(2) - 1;
        let mut pins = BTreeMap::new();
        if self.has_account(host) {
            pins = self.nexts(host, Some(&kept));
            for (ring, next) in pins.clone() {
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
            pins,
            is_pinned,
        });
    }

    /// A process has a state of its own.
    pub fn unpin(&mut self, host: usize) {
        self.hosts[host].pinned.clear();
        let engines = self.hosts[host].life.iter().flat_map(|life| &life.engines);
        let has_pin = |engine: &super::host::RingEngine| {
            let mut pins = engine.get().get().accounts().pins();
            pins.any(|(node, ..)| node == node_id(host))
        };
        // Also those of earlier lives.
        let pinned = engines.filter(|(_, engine)| has_pin(engine));
        let pinned: Vec<usize> = pinned.map(|(ring, _)| *ring).collect();
        for ring in pinned {
            self.order(host, ring, &Command::Unpin(node_id(host)));
        }
    }

    /// Whether all rings keep what is behind the state that a process gets, as it has learnt; once it is so it stays so.
    pub fn look_at_pins(&mut self, host: usize) {
        let Some(fetched) = self.hosts[host].fetches.as_ref() else {
            return;
        };
        let Some(life) = &self.hosts[host].life else {
            return;
        };
        let is_kept = fetched.pins.iter().all(|(ring, next)| {
            let accounts = life.engines[ring].get().get().accounts();
            let mut pins = accounts.pins();
            pins.any(|(node, pinned, _)| node == node_id(host) && pinned == *next)
        });
        if is_kept && !fetched.pins.is_empty() && !fetched.is_pinned {
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

    /// Whether a host lacks what its ring had forgotten before the account of its partition was opened there: nothing of
    /// what the account was to keep. An account keeps everything from its hold on, and as much before as acceptors keep
    /// for anybody; a replica whose hold is ordered when its ring is further than that, as it was cut off from the ring
    /// when it began, comes too late.
    pub fn was_too_late(&self, host: usize) -> bool {
        let life = self.hosts[host].life.as_ref();
        let Some((ring, forgotten)) = life.and_then(|life| life.lacks) else {
            return false;
        };
        let opened = self.opened.get(&(ring, self.partition(host)));
        opened.is_some_and(|first| forgotten <= *first)
    }
}

//! What a replica has ordered in its rings, so that they keep what it needs: its partition's account, its marks, and its pins.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use rota_multiring::accounts::Command;
use rota_multiring::{Rank, Resume, ResumeRing};
use rota_node::rings::{RingsNode, RingsStatus};

use crate::config::ReplicaConfig;

/// How many instances an acceptor has forgotten: all before the next one.
const FORGOTTEN: &str = "uring_instances_forgotten";
/// How many a node has learnt.
const LEARNT: &str = "uring_instances_learnt";

/// What a replica needs that recovers is kept for so long, unless it says before that it has it. Where too much is kept pins are let go first.
const PINNED: Duration = Duration::from_secs(3600);
/// How often it is looked whether it is there.
const LOOK: Duration = Duration::from_millis(20);
/// So long a pin is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// The account of a replica's partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account<'a> {
    pub(crate) config: &'a ReplicaConfig,
}

impl Account<'_> {
    /// It is opened, if it is not; `newest`: where the own newest checkpoint is, if there is one.
    pub(crate) fn open(&self, node: &RingsNode, newest: Option<&Resume>) {
        let replicas = self.config.replicas();
        for ring in &self.config.subscribe {
            let kept = self.config.kept_instances(*ring);
            let hold = Command::Hold(self.config.partition, replicas.clone(), kept);
            order(node, Rank(*ring), hold);
            if newest.is_none() {
                // Whatever it had is lost.
                order(node, Rank(*ring), self.marked(1));
            }
        }
        if let Some(newest) = newest {
            self.mark(node, newest);
        }
    }

    /// There is a durable checkpoint there: what is before it is not needed.
    pub(crate) fn mark(&self, node: &RingsNode, resume: &Resume) {
        let status = node.status();
        if let Some(status) = &status {
            self.look_at(node, status);
        }
        for ring in &resume.rings {
            order(node, ring.of.rank, self.marked(ring.base.next));
            if let Some(status) = &status {
                self.look_at_pin(node, status, ring);
            }
        }
    }

    /// What it has pinned, here or in an earlier life, goes with its checkpoints until it has nearly caught up: a majority without it may be far ahead.
    fn look_at_pin(&self, node: &RingsNode, status: &RingsStatus, ring: &ResumeRing) {
        let rank = ring.of.rank;
        if !self.pins(status).contains_key(&rank) {
            return;
        }
        let near = self.config.kept_instances(rank.0) / 2;
        let learnt = counter(status, rank, LEARNT).unwrap_or(0);
        let command = match ring.base.next.saturating_add(near) >= learnt {
            true => Command::Unpin(self.config.node),
            false => self.pinned(ring),
        };
        order(node, rank, command);
    }

    /// Its partition has an account in each ring, and the replicas are those that this one knows.
    fn look_at(&self, node: &RingsNode, status: &RingsStatus) {
        let (partition, replicas) = (self.config.partition, self.config.replicas());
        for (ring, table) in &status.accounts {
            if !self.config.subscribe.contains(&ring.0) {
                continue;
            }
            match table.account(partition) {
                None => {
                    let kept = self.config.kept_instances(ring.0);
                    order(
                        node,
                        *ring,
                        Command::Hold(partition, replicas.clone(), kept),
                    );
                }
                Some((_, of)) if *of != replicas => tracing::warn!(
                    ring = ring.0,
                    ?of,
                    ?replicas,
                    "the ring keeps what other replicas of the partition need, too"
                ),
                Some(_) => {}
            }
        }
    }

    fn marked(&self, next: u64) -> Command {
        Command::Mark(self.config.partition, self.config.node, next)
    }

    /// What is behind a checkpoint that it is about to get has to stay. Whether it is there, as far as this process has learnt.
    pub(crate) fn pin(&self, node: &RingsNode, resume: &Resume, stop: &AtomicBool) -> bool {
        let before = node.status().map(|status| self.pins(&status));
        let before = before.unwrap_or_default();
        self.order_pins(node, resume);
        let began = Instant::now();
        while began.elapsed() < PATIENCE && !stop.load(SeqCst) {
            let Some(status) = node.status() else {
                break;
            };
            if !has_what_follows(&status, resume) {
                return false;
            }
            let pins = self.pins(&status);
            // Not one of an earlier life, which may be over elsewhere.
            let is_new = |ring: &ResumeRing| {
                let pin = pins.get(&ring.of.rank);
                pin.is_some_and(|pin| pin.0 == ring.base.next) && pin != before.get(&ring.of.rank)
            };
            if resume.rings.iter().all(is_new) {
                return true;
            }
            std::thread::sleep(LOOK);
        }
        tracing::warn!("it is not known whether what follows that checkpoint is kept meanwhile");
        true
    }

    /// The same again, while it comes.
    pub(crate) fn pin_again(&self, node: &RingsNode, resume: &Resume) -> bool {
        self.order_pins(node, resume);
        let status = node.status();
        status.is_none_or(|status| has_what_follows(&status, resume))
    }

    fn order_pins(&self, node: &RingsNode, resume: &Resume) {
        let rings = resume.rings.iter();
        rings.for_each(|ring| order(node, ring.of.rank, self.pinned(ring)));
    }

    fn pinned(&self, ring: &ResumeRing) -> Command {
        Command::Pin(self.config.node, ring.base.next, PINNED.as_nanos() as u64)
    }

    /// What this node has pinned, and until when.
    fn pins(&self, status: &RingsStatus) -> BTreeMap<Rank, (u64, u64)> {
        let accounts = status.accounts.iter();
        let of = accounts.filter_map(|(rank, table)| {
            let mut pins = table.pins();
            let pin = pins.find(|(node, ..)| *node == self.config.node)?;
            Some((*rank, (pin.1, pin.2)))
        });
        of.collect()
    }
}

/// Whether the acceptors of this process have what is behind a state.
fn has_what_follows(status: &RingsStatus, resume: &Resume) -> bool {
    resume.rings.iter().all(|ring| {
        let forgotten = counter(status, ring.of.rank, FORGOTTEN);
        forgotten.is_none_or(|forgotten| ring.base.next > forgotten)
    })
}

fn counter(status: &RingsStatus, rank: Rank, name: &str) -> Option<u64> {
    let mut rings = status.rings.iter();
    let (_, status) = rings.find(|(of, _)| *of == rank)?;
    status.counters.get(name).copied()
}

fn order(node: &RingsNode, ring: Rank, command: Command) {
    if let Err(error) = node.order(ring, command) {
        // A start, and the next checkpoint, say it once more.
        tracing::warn!(ring = ring.0, %error, "what this replica needs of a ring is not said");
    }
}

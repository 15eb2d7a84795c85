//! The words that a replica has ordered in its rings, so that the rings keep the instances it needs: the account of its
//! partition, its marks, and its pins.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use rota_multiring::accounts::Command;
use rota_multiring::{Rank, Resume, ResumeRing};
use rota_node::rings::{RingsNode, RingsStatus};

use crate::config::ReplicaConfig;

/// The counter of the instances that an acceptor has forgotten, which are the first ones.
const FORGOTTEN: &str = "uring_instances_forgotten";
/// The counter of the instances that a node has learnt.
const LEARNT: &str = "uring_instances_learnt";

/// The duration of a pin while a replica catches up: a ring keeps the instances that it needs for this time, unless the
/// replica says before that it has them. A ring that keeps too much lets pins go first.
const PINNED: Duration = Duration::from_secs(3600);
/// The same while a state comes, when the pin is ordered again every few seconds: a replica that is lost meanwhile holds
/// back no ring for longer. The machine may take so long to take the state.
const PINNED_COMING: Duration = Duration::from_secs(900);
/// The time between two looks at whether a pin was delivered.
const LOOK: Duration = Duration::from_millis(20);
/// The time for which a replica waits for its pins.
const PATIENCE: Duration = Duration::from_secs(5);

/// The account of a replica's partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account<'a> {
    pub(crate) config: &'a ReplicaConfig,
}

impl Account<'_> {
    /// Opens the account in each ring, if it is not open.
    pub(crate) fn hold(&self, node: &RingsNode) {
        let replicas = self.config.replicas();
        for ring in &self.config.subscribe {
            let kept = self.config.kept_instances(*ring);
            let hold = Command::Hold(self.config.partition, replicas.clone(), kept);
            order(node, Rank(*ring), hold);
        }
    }

    /// The same, and says how far this replica is; `newest`: the place of the own newest checkpoint, if there is one.
    pub(crate) fn open(&self, node: &RingsNode, newest: Option<&Resume>) {
        self.hold(node);
        match newest {
            Some(newest) => self.mark(node, newest),
            // A replica without a checkpoint has lost its earlier ones.
            None => {
                let rings = self.config.subscribe.iter();
                rings.for_each(|ring| order(node, Rank(*ring), self.marked(1)));
            }
        }
    }

    /// Orders marks for a durable checkpoint: the rings need not keep the instances before it.
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

    /// Moves the pins of this node, also those of an earlier incarnation, along with its checkpoints until the node has
    /// nearly caught up: a majority without it may be far ahead.
    fn look_at_pin(&self, node: &RingsNode, status: &RingsStatus, ring: &ResumeRing) {
        let rank = ring.of.rank;
        if !self.pins(status).contains_key(&rank) {
            return;
        }
        let near = self.config.kept_instances(rank.0) / 2;
        let learnt = counter(status, rank, LEARNT).unwrap_or(0);
        let command = match ring.base.next.saturating_add(near) >= learnt {
            true => Command::Unpin(self.config.node),
            false => self.pinned(ring, PINNED),
        };
        order(node, rank, command);
    }

    /// Sees to it that the partition has an account in each ring, and warns if the account is of other replicas than
    /// this one knows.
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

    /// Pins the instances behind a checkpoint that this replica is about to get. Whether the acceptors of this process
    /// still have them.
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
            // A pin of an earlier incarnation does not count: it may be over elsewhere.
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

    /// Orders the same pins once more, while the checkpoint comes.
    pub(crate) fn pin_again(&self, node: &RingsNode, resume: &Resume) -> bool {
        self.order_pins(node, resume);
        let status = node.status();
        status.is_none_or(|status| has_what_follows(&status, resume))
    }

    fn order_pins(&self, node: &RingsNode, resume: &Resume) {
        let rings = resume.rings.iter();
        rings.for_each(|ring| order(node, ring.of.rank, self.pinned(ring, PINNED_COMING)));
    }

    fn pinned(&self, ring: &ResumeRing, time: Duration) -> Command {
        Command::Pin(self.config.node, ring.base.next, time.as_nanos() as u64)
    }

    /// The pins of this node: the first instance, and the end of its time.
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

/// Whether the acceptors of this process have the instances behind a state.
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
        // The next start or the next checkpoint orders it once more.
        tracing::warn!(ring = ring.0, %error, "what this replica needs of a ring is not said");
    }
}

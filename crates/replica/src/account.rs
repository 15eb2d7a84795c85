//! What a replica has ordered in its rings, so that they keep what it needs: its partition's account, its marks, and its pins.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use rota_multiring::accounts::{Command, Table};
use rota_multiring::{Rank, Resume, ResumeRing};
use rota_node::rings::{RingsNode, RingsStatus};

use crate::config::ReplicaConfig;

/// How many instances an acceptor has forgotten: all before the next one.
const FORGOTTEN: &str = "uring_instances_forgotten";

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
        if let Some(status) = node.status() {
            self.look_at(node, &status);
        }
        for ring in &resume.rings {
            order(node, ring.of.rank, self.marked(ring.base.next));
        }
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

    /// What is behind a checkpoint that it is about to get has to stay. Whether it does, as far as this process has learnt.
    pub(crate) fn pin(&self, node: &RingsNode, resume: &Resume, stop: &AtomicBool) -> bool {
        self.order_pins(node, resume);
        let began = Instant::now();
        while began.elapsed() < PATIENCE && !stop.load(SeqCst) {
            let Some(status) = node.status() else {
                return true;
            };
            let of = |ring: &ResumeRing| {
                let mut accounts = status.accounts.iter();
                let (_, table) = accounts.find(|(rank, _)| *rank == ring.of.rank)?;
                Some((table, ring.base.next))
            };
            let tables = || resume.rings.iter().filter_map(of);
            let is_pinned = |(table, next): (&Table, u64)| {
                let mut pins = table.pins();
                pins.any(|(node, pinned, _)| node == self.config.node && pinned <= next)
            };
            if tables().all(is_pinned) {
                return Self::has_what_follows(&status, resume);
            }
            if tables().any(|(table, next)| table.granted() > next && !is_pinned((table, next))) {
                tracing::warn!("what follows that checkpoint may be forgotten: it does not help");
                return false;
            }
            std::thread::sleep(LOOK);
        }
        true
    }

    fn order_pins(&self, node: &RingsNode, resume: &Resume) {
        for ring in &resume.rings {
            let lasts = PINNED.as_nanos() as u64;
            let pin = Command::Pin(self.config.node, ring.base.next, lasts);
            order(node, ring.of.rank, pin);
        }
    }

    /// Whether the acceptors of this process have what is behind a state.
    fn has_what_follows(status: &RingsStatus, resume: &Resume) -> bool {
        resume.rings.iter().all(|ring| {
            let mut rings = status.rings.iter();
            let of = rings.find(|(rank, _)| *rank == ring.of.rank);
            let forgotten = of.and_then(|(_, status)| status.counters.get(FORGOTTEN));
            forgotten.is_none_or(|forgotten| ring.base.next > *forgotten)
        })
    }

    /// It has got it.
    pub(crate) fn unpin(&self, node: &RingsNode) {
        for ring in &self.config.subscribe {
            order(node, Rank(*ring), Command::Unpin(self.config.node));
        }
    }
}

fn order(node: &RingsNode, ring: Rank, command: Command) {
    if let Err(error) = node.order(ring, command) {
        // A start, and the next checkpoint, say it once more.
        tracing::warn!(ring = ring.0, %error, "what this replica needs of a ring is not said");
    }
}

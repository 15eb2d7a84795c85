//! What a replica has ordered in its rings, so that they keep what it needs: its partition's account, its marks, and its pins.

use std::time::Duration;

use rota_multiring::accounts::Command;
use rota_multiring::{Rank, Resume};
use rota_node::rings::RingsNode;

use crate::config::ReplicaConfig;

/// What a replica needs that recovers is kept for so long, unless it says before that it has it.
const PINNED: Duration = Duration::from_secs(600);

/// The account of a replica's partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account<'a> {
    pub(crate) config: &'a ReplicaConfig,
}

impl Account<'_> {
    /// It is opened, if it is not; `newest`: where the own newest checkpoint is, if there is one.
    pub(crate) fn open(&self, node: &RingsNode, newest: Option<&Resume>) {
        let replicas = self.config.replicas();
        let kept = self.config.kept_instances();
        for ring in &self.config.subscribe {
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
        for ring in &resume.rings {
            order(node, ring.of.rank, self.marked(ring.base.next));
        }
    }

    fn marked(&self, next: u64) -> Command {
        Command::Mark(self.config.partition, self.config.node, next)
    }

    /// What is behind a checkpoint that it is about to get has to stay.
    pub(crate) fn pin(&self, node: &RingsNode, resume: &Resume) {
        for ring in &resume.rings {
            let lasts = PINNED.as_nanos() as u64;
            let pin = Command::Pin(self.config.node, ring.base.next, lasts);
            order(node, ring.of.rank, pin);
        }
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
        // The next mark says all that this one would have said.
        tracing::warn!(ring = ring.0, %error, "what this replica needs of a ring is not said");
    }
}

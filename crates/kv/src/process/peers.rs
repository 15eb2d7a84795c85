//! The processes that are asked for partitions: which of them are there, and can answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use rota_core::contract::NodeId;
use rota_replica::Ready;

use super::link::Link;
use crate::map::Partition;
use crate::store::Store;

/// The processes of all partitions, and this one.
pub(super) struct Peers {
    own: Partition,
    ready: Arc<Ready<Store>>,
    /// The own partition has no room for more.
    is_full: Arc<AtomicBool>,
    links: BTreeMap<NodeId, Link>,
    /// The other processes of each partition, in the order in which they are asked.
    others: BTreeMap<Partition, Vec<NodeId>>,
}

impl Peers {
    /// The links to other processes, and the partitions of these, in the order in which they are asked.
    pub(super) fn new(
        own: Partition,
        (ready, is_full): (Arc<Ready<Store>>, Arc<AtomicBool>),
        links: BTreeMap<NodeId, Link>,
        others: BTreeMap<Partition, Vec<NodeId>>,
    ) -> Self {
        Self {
            own,
            ready,
            is_full,
            links,
            others,
        }
    }

    /// Whether the replica here has caught up.
    pub(super) fn is_ready(&self) -> bool {
        self.ready.is_open()
    }

    /// The number of other processes that are connected, and of those that are configured.
    pub(super) fn connected(&self) -> (usize, usize) {
        let connected = self.links.values().filter(|link| link.is_up());
        (connected.count(), self.links.len())
    }

    /// The latest epoch that another process is in.
    pub(super) fn newest_epoch(&self) -> u64 {
        let epochs = self.links.values().map(|link| link.health().epoch);
        epochs.max().unwrap_or(0)
    }

    /// Whether a process is connected, and its replica takes commands.
    pub(super) fn is_open(&self, node: NodeId) -> bool {
        match self.links.get(&node) {
            None => self.ready.is_open(),
            Some(link) => link.is_up() && link.health().is_open,
        }
    }

    /// Whether another process has to be asked for a partition: also for the own one, where the replica here has not
    /// caught up.
    pub(super) fn is_elsewhere(&self, partition: Partition) -> bool {
        partition != self.own
            || !self.ready.is_open()
                && self
                    .others
                    .get(&partition)
                    .is_some_and(|nodes| nodes.iter().any(|node| self.is_open(*node)))
    }

    /// The process that is asked for a partition: the first one from a place on that is connected and takes commands;
    /// or else one that is connected.
    pub(super) fn of(&self, partition: Partition, from: usize) -> Option<(&Link, usize)> {
        let nodes = self.others.get(&partition)?;
        let links = (0..nodes.len()).filter_map(|at| {
            let at = (from + at) % nodes.len();
            Some((self.links.get(&nodes[at])?, at))
        });
        let mut there = links.filter(|(link, _)| link.is_up());
        let mut open = there.clone().filter(|(link, _)| link.health().is_open);
        open.next().or_else(|| there.next())
    }

    pub(super) fn is_full(&self, partition: Partition) -> bool {
        if partition == self.own {
            return self.is_full.load(SeqCst);
        }
        let nodes = self.others.get(&partition).into_iter().flatten();
        let mut links = nodes.filter_map(|node| self.links.get(node));
        links.any(|link| link.health().is_full)
    }
}

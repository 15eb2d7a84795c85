//! The cluster, as a connection knows it.

use std::sync::Arc;

use crate::map::{Map, Partition};

/// A process, for clients.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeView {
    /// Its number in the cluster.
    pub node: u16,
    /// The partition of which it has a replica.
    pub partition: Partition,
    /// The address for clients of the cluster's protocol.
    pub host: String,
    /// See above.
    pub port: u16,
    /// Whether it is connected and takes commands, as this process knows.
    pub is_up: bool,
}

/// The cluster, as a process sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    /// The number of the cluster.
    pub cluster: u32,
    /// This process.
    pub me: u16,
    /// The partition of each slot.
    pub map: Arc<Map>,
    /// The epoch from which on any process takes commands for the slots that have moved: not all clients know yet where
    /// they are.
    pub young: u64,
    /// All processes, by their numbers.
    pub nodes: Vec<NodeView>,
}

impl NodeView {
    /// Its name as Redis has them: forty digits.
    pub fn id(&self, cluster: u32) -> String {
        format!("{cluster:016x}{:024x}", self.node)
    }
}

impl View {
    /// This process, if it is named.
    pub fn own(&self) -> Option<&NodeView> {
        self.nodes.iter().find(|node| node.node == self.me)
    }

    /// Whether commands for a slot are taken here.
    pub fn is_here(&self, slot: u16) -> bool {
        let own = self.own().map(|own| own.partition);
        own == Some(self.map.of_slot(slot)) || self.map.since(slot) >= self.young
    }

    /// The number of other processes that have the partition of this one.
    pub fn others(&self) -> usize {
        let own = self.own().map(|own| own.partition);
        own.map_or(0, |own| self.of(own).len() - 1)
    }

    /// The processes that have a partition, those that are up first. The first one is a master in Redis' words, the
    /// same in the view of all processes that see the same ones up; the others are its replicas.
    pub fn of(&self, partition: Partition) -> Vec<&NodeView> {
        let nodes = self.nodes.iter();
        let mut nodes: Vec<&NodeView> = nodes.filter(|node| node.partition == partition).collect();
        nodes.sort_by_key(|node| (!node.is_up, node.node));
        nodes
    }

    /// The error that sends a client to the process that has a slot, if one is up.
    pub fn moved(&self, slot: u16) -> Option<String> {
        let nodes = self.of(self.map.of_slot(slot));
        let node = nodes.first().filter(|node| node.is_up)?;
        Some(format!("MOVED {slot} {}:{}", node.host, node.port))
    }
}

//! What a connection knows of the cluster.

use std::sync::Arc;

use crate::map::{Map, Partition};

/// A process, for clients.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeView {
    /// Its number in the cluster.
    pub node: u16,
    /// Of which partition it has a replica.
    pub partition: Partition,
    /// Where clients of the cluster's protocol connect.
    pub host: String,
    /// See above.
    pub port: u16,
    /// Whether it is there and takes commands, as far as this process knows.
    pub is_up: bool,
}

/// The cluster, as a process sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    /// Its number.
    pub cluster: u32,
    /// This process.
    pub me: u16,
    /// Which partition has what.
    pub map: Arc<Map>,
    /// Slots that have moved in this epoch or later are asked for anywhere: not everybody knows yet where they are.
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

    /// Whether a slot's partition is here.
    pub fn is_here(&self, slot: u16) -> bool {
        let own = self.own().map(|own| own.partition);
        own == Some(self.map.of_slot(slot)) || self.map.since(slot) >= self.young
    }

    /// How many other processes have the partition of this one.
    pub fn others(&self) -> usize {
        let own = self.own().map(|own| own.partition);
        own.map_or(0, |own| self.of(own).len() - 1)
    }

    /// The processes that have a partition: those that are there first. The first one is what Redis calls a master, the same as all processes see it
    /// that see the same ones; the others are its replicas.
    pub fn of(&self, partition: Partition) -> Vec<&NodeView> {
        let nodes = self.nodes.iter();
        let mut nodes: Vec<&NodeView> = nodes.filter(|node| node.partition == partition).collect();
        nodes.sort_by_key(|node| (!node.is_up, node.node));
        nodes
    }

    /// Where a slot's keys are, for who asked for them here.
    pub fn moved(&self, slot: u16) -> Option<String> {
        let nodes = self.of(self.map.of_slot(slot));
        let node = nodes.first().filter(|node| node.is_up)?;
        Some(format!("MOVED {slot} {}:{}", node.host, node.port))
    }
}

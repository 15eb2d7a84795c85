//! The node that this host is.

use std::net::UdpSocket;

use rota_core::contract::NodeId;
use rota_node::NodeConfig;

/// The node whose paths are looked at: the one asked about, else the first whose address this host has.
/// If there is none, any node does: this host then knows no path of it.
pub fn viewpoint(config: &NodeConfig, node: Option<NodeId>) -> Option<NodeId> {
    let members = config.members();
    let is_here = |id: &&NodeId| is_here(config, **id);
    let here = || members.iter().find(is_here).or(members.first()).copied();
    node.or_else(here)
}

/// Whether this host has the node's address.
pub fn is_here(config: &NodeConfig, id: NodeId) -> bool {
    let node = config.node(id);
    node.is_some_and(|node| UdpSocket::bind((node.address, 0)).is_ok())
}

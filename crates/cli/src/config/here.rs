//! The node that this host is.

use std::net::UdpSocket;

use rota_core::contract::NodeId;
use rota_node::members::why_fixed;
use rota_node::{MemberFile, NodeConfig};

use super::table::Table;

/// The node whose paths are looked at: the one asked about, else the first whose address this host has.
/// If there is none, any node does: this host then knows no path of it.
pub fn viewpoint(config: &NodeConfig, node: Option<NodeId>) -> Option<NodeId> {
    let members = config.members();
    let is_here = |id: &&NodeId| is_here(config, **id);
    let here = || members.iter().find(is_here).or(members.first()).copied();
    node.or_else(here)
}

/// The one node whose address this host has. An error says, in words, that there is none or more than one.
pub fn node_here(config: &NodeConfig) -> Result<NodeId, String> {
    let config = &config.resolved_as_seen();
    let members = config.members().into_iter();
    let here: Vec<NodeId> = members.filter(|id| is_here(config, *id)).collect();
    match here[..] {
        [node] => Ok(node),
        [] => Err(
            "no node in it has an address of this host; say which one it is with --node".to_owned(),
        ),
        _ => Err(format!(
            "{} of its nodes have an address of this host; say which one it is with --node",
            here.len()
        )),
    }
}

/// Begins the section of the nodes, and says where others count than those of the file.
pub fn begin_nodes(config: &NodeConfig, node: Option<NodeId>, table: &mut Table) {
    table.section("nodes");
    let path = node.and_then(|node| MemberFile::path(config, node));
    if let Some(path) = path.filter(|path| path.exists())
        && why_fixed(config).is_none()
    {
        let value = format!(
            "{}: the nodes there count, and not these; see `rota member list`",
            path.display()
        );
        table.row("kept", value);
    }
}

/// Whether this host has the node's address, which is known: a name has to be looked up before.
pub fn is_here(config: &NodeConfig, id: NodeId) -> bool {
    let address = config.address(id);
    address.is_some_and(|address| UdpSocket::bind((address, 0)).is_ok())
}

//! The check of the listed nodes and their addresses.

use rota_net::NodeAddress;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use super::{ConfigError, NodeConfig, transport};

/// Checks that each node and each socket is listed once, and that the nodes can reach each other.
pub(super) fn check(nodes: &[NodeAddress]) -> Result<(), ConfigError> {
    let mut ids = BTreeSet::new();
    let mut addresses = BTreeSet::new();
    for node in nodes {
        if node.id == 0 {
            return Err(ConfigError::NodeIdZero);
        }
        if !ids.insert(node.id) {
            return Err(ConfigError::DuplicateNode(node.id));
        }
        if node.data_port == 0 || node.token_port == 0 {
            return Err(ConfigError::PortZero(node.id));
        }
        for port in [node.data_port, node.token_port] {
            let place = node.place(port);
            if !addresses.insert(place.clone()) {
                return Err(ConfigError::DuplicateAddress(place));
            }
        }
    }
    check_reach(nodes)
}

/// This configuration with other nodes.
///
/// # Errors
/// [`ConfigError`]: what is wrong with the nodes, on any host of the cluster.
pub(crate) fn with_nodes(
    config: &NodeConfig,
    nodes: Vec<NodeAddress>,
) -> Result<NodeConfig, ConfigError> {
    let config = NodeConfig {
        nodes,
        ..config.clone()
    };
    check(&config.nodes)?;
    config.directory()?;
    transport::check(&config)?;
    Ok(config)
}

/// Checks that the addresses are of single hosts, and that these can reach each other as far as addresses show it.
fn check_reach(nodes: &[NodeAddress]) -> Result<(), ConfigError> {
    for node in nodes {
        if let Some(host) = node.host.as_ref().filter(|_| !node.has_sound_host()) {
            return Err(ConfigError::HostName(node.id, host.clone()));
        }
    }
    // Addresses of names are known when these have been looked up, and may change.
    let mut known = nodes.iter().filter(|node| node.is_known());
    let Some(first) = known.clone().next() else {
        return Ok(());
    };
    known.try_for_each(|node| {
        if node.address.is_ipv4() != first.address.is_ipv4() {
            return Err(ConfigError::MixedAddresses(node.address));
        }
        let broadcast = IpAddr::V4(Ipv4Addr::BROADCAST);
        let no_host = node.address.is_unspecified() || node.address.is_multicast();
        if no_host || node.address == broadcast {
            return Err(ConfigError::NoHost(node.id, node.address));
        }
        if node.address.is_loopback() != first.address.is_loopback() {
            return Err(ConfigError::LoopbackBesideOthers);
        }
        Ok(())
    })
}

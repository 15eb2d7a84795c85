//! The transport of data, as the configuration names it.

use rota_net::Transport;
use std::net::IpAddr;

use super::{ConfigError, NodeConfig};

/// Nodes of which one multicasts and another does not listen there would pass tokens on and never get each other's data: to
/// each other they are other clusters.
pub(super) fn mark(transport: Transport) -> u32 {
    let Transport::Multicast(group) = transport else {
        return 0;
    };
    let mut bytes = match group.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    bytes.extend(group.port().to_le_bytes());
    crc_fast::crc32_iscsi(&bytes)
}

/// Checks that all nodes can send to the group, if there is one.
pub(super) fn check(config: &NodeConfig) -> Result<(), ConfigError> {
    let Transport::Multicast(group) = config.transport else {
        return Ok(());
    };
    if !group.ip().is_multicast() || group.port() == 0 {
        return Err(ConfigError::NotMulticast(group));
    }
    for node in &config.nodes {
        if node.is_known() && node.address.is_ipv4() != group.is_ipv4() {
            return Err(ConfigError::MixedAddresses(node.address));
        }
        if group.is_ipv6() && config.interface.is_none() {
            return Err(ConfigError::NeedsInterface);
        }
    }
    Ok(())
}

//! The transport of data, as the configuration names it.

use rota_net::{Network, Transport, Tuning};
use std::net::IpAddr;
use std::num::NonZeroU8;

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

impl NodeConfig {
    /// The configuration of sockets and links.
    pub fn network(&self) -> Network {
        Network {
            cluster: self.wire_cluster(),
            nodes: self.nodes.clone(),
            transport: self.transport,
            interface: self.interface.clone(),
            multicast_ttl: self.multicast_ttl.unwrap_or(NonZeroU8::MIN),
            open_membership: self.open_membership,
            key_file: self.key_file.clone(),
            tuning: Tuning {
                receive_buffer_bytes: self.receive_buffer_bytes,
                send_buffer_bytes: Some(self.send_buffer_bytes),
                offload: self.offload,
            },
            timers: self.ring_config().timers,
        }
    }

    pub(super) fn check_transport(&self) -> Result<(), ConfigError> {
        let Transport::Multicast(group) = self.transport else {
            return Ok(());
        };
        if !group.ip().is_multicast() || group.port() == 0 {
            return Err(ConfigError::NotMulticast(group));
        }
        for node in &self.nodes {
            if node.address.is_ipv4() != group.is_ipv4() {
                return Err(ConfigError::MixedAddresses(node.address));
            }
            if group.is_ipv6() && self.interface.is_none() {
                return Err(ConfigError::NeedsInterface);
            }
        }
        Ok(())
    }
}

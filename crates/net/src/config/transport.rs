//! How data travels.

use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

use super::{ConfigError, NodeConfig};

/// How data gets to the other nodes. Tokens always go from node to node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// A copy for each node: works everywhere.
    Unicast,
    /// One datagram for all: `transport = { multicast = "239.192.0.1:7700" }`.
    Multicast(SocketAddr),
}

impl Transport {
    /// Nodes of which one multicasts and another does not listen there would pass tokens on and never get each other's data: to each
    /// other they are other clusters.
    pub(super) fn mark(self) -> u32 {
        let Self::Multicast(group) = self else {
            return 0;
        };
        let mut bytes = match group.ip() {
            IpAddr::V4(ip) => ip.octets().to_vec(),
            IpAddr::V6(ip) => ip.octets().to_vec(),
        };
        bytes.extend(group.port().to_le_bytes());
        crc_fast::crc32_iscsi(&bytes)
    }
}

impl NodeConfig {
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

//! The check that nodes can reach each other.

use std::net::{IpAddr, Ipv4Addr};

use super::{ConfigError, NodeConfig};

impl NodeConfig {
    /// Checks that the addresses are of single hosts, and that these can reach each other as far as addresses show it.
    pub(super) fn check_addresses(&self) -> Result<(), ConfigError> {
        for node in &self.nodes {
            if node.address.is_ipv4() != self.nodes[0].address.is_ipv4() {
                return Err(ConfigError::MixedAddresses(node.address));
            }
            let broadcast = IpAddr::V4(Ipv4Addr::BROADCAST);
            let no_host = node.address.is_unspecified() || node.address.is_multicast();
            if no_host || node.address == broadcast {
                return Err(ConfigError::NoHost(node.id, node.address));
            }
            if node.address.is_loopback() != self.nodes[0].address.is_loopback() {
                return Err(ConfigError::LoopbackBesideOthers);
            }
        }
        Ok(())
    }
}

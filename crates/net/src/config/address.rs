//! Where a node is.

use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::{ConfigError, NodeConfig};

/// Where a node is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeAddress {
    /// Its number, not 0.
    pub id: u16,
    /// What clients call its daemon: up to 19 characters from `$` to `~`. Its number if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its address; with multicast also the interface.
    pub address: IpAddr,
    /// UDP port that it sends data from, and receives data at when there is no multicast.
    pub data_port: u16,
    /// UDP port for tokens.
    pub token_port: u16,
}

impl NodeAddress {
    /// Address and port of the data socket.
    pub const fn data(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.data_port)
    }

    /// Address and port of the token socket.
    pub const fn token(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.token_port)
    }

    /// Where others connect to for reliable links, by TCP: the number of the token port, among the ports of TCP.
    pub const fn link(&self) -> SocketAddr {
        self.token()
    }
}

impl NodeConfig {
    /// Whether the addresses are of single hosts, which can reach each other as far as that shows.
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

//! The size of the datagrams of a node.
//!
//! Without a setting, a datagram fills one packet of the narrowest path and no more: see [`PathMtu`].

use rota_core::contract::NodeId;
use rota_net::PathMtu;
use rota_ring::RingConfig;
use std::fmt;

use super::{ConfigError, NodeConfig};

/// Ethernet's MTU. Some interfaces take more, but no node can know whether the switches between them do: larger
/// datagrams are for the configuration to ask for.
const MOST: usize = 1500;

/// The largest datagram of a node, and why it is that large.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DatagramSize {
    /// Bytes of UDP payload.
    pub bytes: usize,
    /// The configuration says so.
    pub set: bool,
    /// The narrowest path, if the kernel knows any.
    pub path: Option<PathMtu>,
}

impl DatagramSize {
    /// The size for node `me`. Looks the paths up in this host's kernel, and sends nothing.
    pub(super) fn of(config: &NodeConfig, me: NodeId) -> Self {
        let path = config.network().narrowest_path(me);
        // The default is the size that fits `MOST`.
        let fits = config.ring_config().datagram_bytes;
        let bytes = match (config.datagram_bytes, path) {
            (Some(bytes), _) => bytes,
            (None, Some(path)) => fits.min(path.payload()),
            (None, None) => fits,
        };
        Self {
            bytes,
            set: config.datagram_bytes.is_some(),
            path,
        }
    }

    /// The configuration of a ring with datagrams of this size. Warns if they will be fragmented.
    pub(super) fn apply(self, mut ring: RingConfig) -> Result<RingConfig, ConfigError> {
        if let Some(path) = self.fragmented() {
            tracing::warn!(
                datagram_bytes = self.bytes,
                path_mtu = path.mtu,
                to = %path.to,
                "datagrams are larger than a path takes: they travel as IP fragments, and are lost \
                 whole when one of those is"
            );
        }
        ring.datagram_bytes = self.bytes;
        match ring.check() {
            Ok(()) => Ok(ring),
            Err(error) => Err(match self.path {
                Some(path) if !self.set && self.bytes < RingConfig::MIN_DATAGRAM_BYTES => {
                    ConfigError::PathMtu(path)
                }
                _ => ConfigError::Ring(error),
            }),
        }
    }

    /// The path on which datagrams of this size become IP fragments.
    pub fn fragmented(&self) -> Option<PathMtu> {
        self.path.filter(|path| self.bytes > path.payload())
    }
}

impl fmt::Display for DatagramSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.set, self.path) {
            (true, _) => match self.fragmented() {
                Some(path) => write!(f, "set; sent in IP fragments: {path}"),
                None => f.write_str("set"),
            },
            (false, Some(path)) if path.mtu > MOST => {
                write!(f, "{path}, used up to {MOST}")
            }
            (false, Some(path)) => path.fmt(f),
            (false, None) => write!(f, "no path is known here: a path MTU of {MOST} is assumed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use rota_net::Transport;

    const V4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
    const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

    fn one() -> NodeId {
        NodeId::new(1).unwrap()
    }

    #[test]
    fn a_datagram_is_fragmented_from_a_byte_more_than_fits() {
        let size = |bytes| DatagramSize {
            bytes,
            set: true,
            path: Some(PathMtu { mtu: 1300, to: V4 }),
        };
        assert_eq!(size(1272).fragmented(), None);
        assert_eq!(size(1273).fragmented(), size(1273).path);
        assert_eq!(size(1272).to_string(), "set");
        let fragments = "set; sent in IP fragments: path MTU of 1300 towards 10.0.0.2";
        assert_eq!(size(1273).to_string(), fragments);
    }

    #[test]
    fn loopback_takes_more_than_is_used() {
        let mut config = NodeConfig::loopback(2, 27_000);
        let size = config.datagram_size(one());
        assert_eq!((size.bytes, size.set), (1472, false), "{size}");
        assert!(size.path.unwrap().mtu > MOST, "{size}");
        config.datagram_bytes = Some(9000);
        let size = config.datagram_size(one());
        assert_eq!((size.bytes, size.to_string().as_str()), (9000, "set"));
        for node in &mut config.nodes {
            node.address = V6;
        }
        config.datagram_bytes = None;
        config.transport = Transport::Unicast;
        assert_eq!(config.datagram_size(one()).bytes, 1452);
        assert_eq!(config.ring_config_at(one()).unwrap().datagram_bytes, 1452);
    }

    #[test]
    fn a_host_that_is_none_of_the_nodes_assumes_ethernet() {
        let mut config = NodeConfig::loopback(2, 27_010);
        for node in &mut config.nodes {
            // An address for documentation, which no host has.
            node.address = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        }
        let size = config.datagram_size(one());
        assert_eq!((size.bytes, size.path), (1472, None));
        assert!(size.to_string().contains("assumed"), "{size}");
    }
}

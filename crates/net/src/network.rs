//! The configuration of sockets and links: the addresses of the nodes, and the transport of data between them.

use rota_core::contract::NodeId;
use rota_core::timing::{Timers, Timing};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU8;
use std::path::PathBuf;

/// The address of a node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeAddress {
    /// Its number, not 0.
    pub id: u16,
    /// The name of its daemon for clients: up to 19 characters from `$` to `~`. Its number if it has none.
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
    /// `nodes` nodes on this host, at the UDP ports behind `base_port`: two for each node.
    pub fn loopback(nodes: u16, base_port: u16) -> Vec<Self> {
        let node = |id: u16| Self {
            id,
            name: None,
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            data_port: base_port.saturating_add(2 * id - 1),
            token_port: base_port.saturating_add(2 * id),
        };
        (1..=nodes).map(node).collect()
    }

    /// The one of these nodes that has this id.
    pub fn find(nodes: &[Self], id: NodeId) -> Option<&Self> {
        nodes.iter().find(|node| node.id == id.get())
    }

    /// Address and port of the data socket.
    pub const fn data(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.data_port)
    }

    /// Address and port of the token socket.
    pub const fn token(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.token_port)
    }

    /// The address for reliable links of other nodes, by TCP: the number of the token port, among the ports of TCP.
    pub const fn link(&self) -> SocketAddr {
        self.token()
    }
}

/// The way of data to the other nodes. Tokens always go from node to node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// A copy for each node: works everywhere.
    Unicast,
    /// One datagram for all: `transport = { multicast = "239.192.0.1:7700" }`.
    Multicast(SocketAddr),
}

impl Transport {
    /// Multicast over the loopback interface, to this port.
    pub fn loopback(port: u16) -> Self {
        let [high, low] = port.to_be_bytes();
        Self::Multicast(SocketAddr::from((Ipv4Addr::new(239, 192, high, low), port)))
    }
}

/// The tuning of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tuning {
    /// Receive buffer, in bytes.
    pub receive_buffer_bytes: usize,
    /// Send buffer, in bytes; `None` leaves the kernel's default.
    pub send_buffer_bytes: Option<usize>,
    /// Use segmentation offload and receive offload.
    pub offload: bool,
}

impl Tuning {
    /// The default receive buffer, in bytes.
    pub const RECEIVE_BUFFER_BYTES: usize = 8 << 20;
    /// The default send buffer, in bytes.
    pub const SEND_BUFFER_BYTES: usize = 400_000;
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            receive_buffer_bytes: Self::RECEIVE_BUFFER_BYTES,
            send_buffer_bytes: Some(Self::SEND_BUFFER_BYTES),
            offload: true,
        }
    }
}

/// The configuration of sockets and links.
#[derive(Clone, PartialEq, Debug)]
pub struct Network {
    /// The mark of datagrams and links: those of other clusters are counted and dropped.
    pub cluster: u32,
    /// The nodes.
    pub nodes: Vec<NodeAddress>,
    /// The transport of data.
    pub transport: Transport,
    /// The network interface for multicast; else the one that has the node's address.
    pub interface: Option<String>,
    /// The number of links that multicasts cross: with 1, no router passes them on.
    pub multicast_ttl: NonZeroU8,
    /// Let nodes join that are not listed. Their data port has to be the one below their token port.
    pub open_membership: bool,
    /// Seal datagrams and links with the keys in this file.
    pub key_file: Option<PathBuf>,
    /// The tuning of sockets.
    pub tuning: Tuning,
    /// The time-outs of the ring, by which links are patient.
    pub timers: Timers,
}

impl Network {
    /// `nodes` nodes on this host, not sealed, with multicast over the loopback interface. Uses the UDP ports from
    /// `base_port` on: one for the group, then two for each node.
    pub fn loopback(nodes: u16, base_port: u16) -> Self {
        Self {
            cluster: u32::from(base_port),
            nodes: NodeAddress::loopback(nodes, base_port),
            transport: Transport::loopback(base_port),
            interface: None,
            multicast_ttl: NonZeroU8::MIN,
            open_membership: false,
            key_file: None,
            tuning: Tuning::default(),
            timers: Timers::derive(Timing::Default, usize::from(nodes)),
        }
    }

    /// The node with this id.
    pub fn node(&self, id: NodeId) -> Option<&NodeAddress> {
        NodeAddress::find(&self.nodes, id)
    }

    /// Ids of the nodes.
    pub fn members(&self) -> impl Iterator<Item = NodeId> {
        self.nodes.iter().filter_map(|node| NodeId::new(node.id))
    }
}

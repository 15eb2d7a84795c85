//! The configuration of sockets and links: the addresses of the nodes, and the transport of data between them.

use rota_core::contract::NodeId;
use rota_core::timing::{Timers, Timing};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU8;
use std::path::PathBuf;

/// The address of a node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(from = "NodeText", into = "NodeText")]
pub struct NodeAddress {
    /// Its number, not 0.
    pub id: u16,
    /// The name of its daemon for clients: up to 19 characters from `$` to `~`. Its number if it has none.
    pub name: Option<String>,
    /// The name of its host, which is looked up; `None` where the configuration has the address itself.
    pub host: Option<String>,
    /// Its address; with multicast also the interface. Unspecified while the name of its host has not been looked up.
    pub address: IpAddr,
    /// UDP port that it sends data from, and receives data at when there is no multicast.
    pub data_port: u16,
    /// UDP port for tokens.
    pub token_port: u16,
}

/// A node as a configuration has it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeText {
    id: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// An address, or the name of a host.
    address: String,
    data_port: u16,
    token_port: u16,
}

impl From<NodeText> for NodeAddress {
    fn from(text: NodeText) -> Self {
        let ports = (text.data_port, text.token_port);
        let node = Self::at(text.id, &text.address, ports);
        Self {
            name: text.name,
            ..node
        }
    }
}

impl From<NodeAddress> for NodeText {
    fn from(node: NodeAddress) -> Self {
        Self {
            id: node.id,
            address: node.host_text(),
            name: node.name,
            data_port: node.data_port,
            token_port: node.token_port,
        }
    }
}

impl NodeAddress {
    /// A node without a name, at an address or on the host of this name, with its ports for data and for tokens.
    pub fn at(id: u16, place: &str, (data_port, token_port): (u16, u16)) -> Self {
        let (address, host) = match place.parse() {
            Ok(address) => (address, None),
            Err(_) => (IpAddr::V4(Ipv4Addr::UNSPECIFIED), Some(place.to_owned())),
        };
        Self {
            id,
            name: None,
            host,
            address,
            data_port,
            token_port,
        }
    }

    /// Its address, or the name of its host, as a configuration has it.
    pub fn host_text(&self) -> String {
        self.host
            .clone()
            .unwrap_or_else(|| self.address.to_string())
    }

    /// `nodes` nodes on this host, at the UDP ports behind `base_port`: two for each node.
    pub fn loopback(nodes: u16, base_port: u16) -> Vec<Self> {
        let node = |id: u16| Self {
            id,
            name: None,
            host: None,
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

    /// Whether its address is known: that of a name is not until it has been looked up.
    pub const fn is_known(&self) -> bool {
        self.host.is_none() || !self.address.is_unspecified()
    }

    /// Whether the name of its host can be one (RFC 1123). What looks like a number is an address with a mistake.
    pub fn has_sound_host(&self) -> bool {
        let Some(host) = &self.host else { return true };
        let labels = || host.trim_end_matches('.').split('.');
        let is_label = |label: &str| {
            let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            let is_edge = |c: char| c != '-';
            (1..=63).contains(&label.len())
                && label.chars().all(is_letter)
                && label.starts_with(is_edge)
                && label.ends_with(is_edge)
        };
        let is_number = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
        host.len() <= 253 && labels().all(is_label) && !labels().next_back().is_some_and(is_number)
    }

    /// Where the configuration has one of its ports, in words: two sockets must not have the same.
    pub fn place(&self, port: u16) -> String {
        match &self.host {
            Some(host) => format!("{host}:{port}"),
            None => SocketAddr::new(self.address, port).to_string(),
        }
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

//! The other nodes, and their addresses.
//!
//! The configured nodes are known from the start. With `open_membership` others join them: the address
//! of a node that is not configured is learned from the control datagrams it sends. These leave from
//! its token socket; its data socket is where every example in the documentation has it, at the port
//! below.
//!
//! The identity of a sender is not proved here. Any host that may send to the token socket, with the cluster's key, or
//! without one the right checksum and cluster number, may name any id that is not configured, and the last to do so has
//! it. Nor is the path to a learned node considered in the size of datagrams.

use rota_core::contract::NodeId;
use rota_core::wire::{HEADER_BYTES, VERSION};
use socket2::SockAddr;
use std::net::{IpAddr, SocketAddr};

use crate::network::{Network, NodeAddress};

/// Nodes that are known without being configured: bounds what strangers can make this node remember, and
/// send to.
pub(super) const MOST_LEARNED: usize = 128;

/// The addresses of one other node.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) node: NodeId,
    ip: IpAddr,
    pub(super) data: SockAddr,
    pub(super) token: SockAddr,
    /// The time at which it was last heard of or sent to on its own, on a clock that counts such uses.
    used: u64,
}

impl Peer {
    fn configured(address: &NodeAddress) -> Option<Self> {
        Some(Self {
            node: NodeId::new(address.id)?,
            ip: address.address,
            data: SockAddr::from(address.data()),
            token: SockAddr::from(address.token()),
            used: 0,
        })
    }

    /// `None` where no data port is below.
    fn learned(node: NodeId, token: SocketAddr, used: u64) -> Option<Self> {
        let mut data = token;
        data.set_port(token.port().checked_sub(1).filter(|port| *port != 0)?);
        Some(Self {
            node,
            ip: token.ip(),
            data: SockAddr::from(data),
            token: SockAddr::from(token),
            used,
        })
    }
}

/// All other nodes that are known.
#[derive(Debug)]
pub(super) struct Peers {
    me: NodeId,
    cluster: u32,
    /// Strangers may join.
    open: bool,
    /// First the configured ones. A place is only ever taken over, never moved: a burst on its way out
    /// remembers which place is next.
    all: Vec<Peer>,
    configured: usize,
    uses: u64,
}

impl Peers {
    pub(super) fn new(network: &Network, me: NodeId) -> Self {
        let others = network.nodes.iter().filter(|node| node.id != me.get());
        let all: Vec<Peer> = others.filter_map(Peer::configured).collect();
        Self {
            me,
            cluster: network.cluster,
            open: network.open_membership,
            configured: all.len(),
            all,
            uses: 0,
        }
    }

    pub(super) fn get(&self, place: usize) -> Option<&Peer> {
        self.all.get(place)
    }

    /// Whether control datagrams may come from strangers.
    pub(super) const fn is_open(&self) -> bool {
        self.open
    }

    /// Whether some node that is known sends from this address.
    pub(super) fn has(&self, ip: IpAddr) -> bool {
        self.all.iter().any(|peer| peer.ip == ip)
    }

    /// The node with a socket at this address and port.
    pub(super) fn at(&self, address: SocketAddr) -> Option<NodeId> {
        let is_it = |peer: &&Peer| {
            let ports = [peer.data.as_socket(), peer.token.as_socket()];
            ports.contains(&Some(address))
        };
        self.all.iter().find(is_it).map(|peer| peer.node)
    }

    /// Notes that something is sent to this node alone.
    pub(super) fn use_of(&mut self, node: NodeId) {
        self.uses += 1;
        let learned = self.all.iter_mut().skip(self.configured);
        for peer in learned.filter(|peer| peer.node == node) {
            peer.used = self.uses;
        }
    }

    /// Reads the sender of a control datagram, whose checksum is right, and remembers the address of a node that is not
    /// configured. Says whether the address may be heard.
    pub(super) fn learn(&mut self, datagram: &[u8], source: SocketAddr) -> bool {
        if let Some(node) = stranger(datagram, self.cluster)
            && node != self.me
            && !self.is_configured(node, source)
        {
            self.uses += 1;
            let place = self.place_for(node);
            match (Peer::learned(node, source, self.uses), place) {
                (Some(peer), Some(place)) => self.all[place] = peer,
                (Some(peer), None) => self.all.push(peer),
                (None, _) => {}
            }
        }
        self.has(source.ip())
    }

    /// Whether the node, or the address that it would be at, is a configured node's.
    fn is_configured(&self, node: NodeId, token: SocketAddr) -> bool {
        let configured = &self.all[..self.configured];
        let is_it = |peer: &Peer| peer.node == node || peer.token.as_socket() == Some(token);
        configured.iter().any(is_it)
    }

    /// The place that a learned node takes over: its own, or, when there are enough, that of the one that was not used
    /// for longest.
    fn place_for(&self, node: NodeId) -> Option<usize> {
        let learned = || (self.configured..).zip(&self.all[self.configured..]);
        let own = learned().find(|(_, peer)| peer.node == node);
        let full = self.all.len() - self.configured >= MOST_LEARNED;
        let oldest = || learned().filter(|_| full).min_by_key(|(_, peer)| peer.used);
        own.or_else(oldest).map(|(place, _)| place)
    }
}

/// The sender of a datagram, if that is a control datagram of this cluster. The engine's own check of everything else
/// comes later.
fn stranger(datagram: &[u8], cluster: u32) -> Option<NodeId> {
    /// The kind of a data packet: its header names the initiator, and any node may repeat it.
    const DATA: u8 = 0;
    let header: &[u8; HEADER_BYTES] = datagram.first_chunk()?;
    let named = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
    if header[0] != VERSION || header[1] & 0x0f == DATA || named != cluster {
        return None;
    }
    NodeId::new(u16::from_le_bytes([header[32], header[33]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(node: u16) -> NodeId {
        NodeId::new(node).unwrap()
    }

    fn peers() -> Peers {
        let mut network = Network::loopback(3, 27_900);
        network.open_membership = true;
        Peers::new(&network, id(1))
    }

    fn hello(node: u16, cluster: u32, kind: u8) -> Vec<u8> {
        let mut datagram = vec![0; 60];
        datagram[0] = VERSION;
        datagram[1] = kind;
        datagram[4..8].copy_from_slice(&cluster.to_le_bytes());
        datagram[32..34].copy_from_slice(&node.to_le_bytes());
        datagram
    }

    fn from(last: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, last], port))
    }

    #[test]
    fn a_stranger_is_where_its_datagram_came_from_and_its_data_port_is_one_below() {
        let mut peers = peers();
        assert!(peers.learn(&hello(9, 27_900, 3), from(9, 7702)));
        assert_eq!(peers.at(from(9, 7702)), Some(id(9)));
        assert_eq!(peers.at(from(9, 7701)), Some(id(9)));
        assert!(peers.learn(&hello(9, 27_900, 3), from(8, 7702)), "moved");
        assert_eq!(peers.at(from(9, 7702)), None);
        assert!(!peers.has(from(9, 1).ip()) && peers.has(from(8, 1).ip()));
    }

    #[test]
    fn nothing_is_learned_from_what_is_not_a_control_datagram_of_this_cluster() {
        let mut peers = peers();
        let mut version = hello(9, 27_900, 3);
        version[0] ^= 1;
        let wrong = [
            hello(9, 27_901, 3),
            hello(9, 27_900, 0),
            hello(0, 27_900, 3),
            hello(1, 27_900, 3),
            hello(2, 27_900, 3),
            version,
            vec![VERSION; 20],
        ];
        for datagram in wrong {
            assert!(!peers.learn(&datagram, from(9, 7702)), "{datagram:?}");
        }
        for port in [0, 1] {
            assert!(!peers.learn(&hello(9, 27_900, 3), from(9, port)));
        }
        assert_eq!(peers.all.len(), 2);
    }

    #[test]
    fn a_configured_node_stays_where_it_is_and_nobody_else_is_there() {
        let mut peers = peers();
        let here = peers.all[0].token.as_socket();
        assert!(peers.learn(&hello(9, 27_900, 3), here.unwrap()));
        assert_eq!(peers.all.len(), 2);
        let elsewhere = SocketAddr::from(([127, 0, 0, 1], 9));
        assert!(peers.learn(&hello(2, 27_900, 3), elsewhere));
        assert_eq!(peers.all[0].token.as_socket(), here);
        assert_eq!(peers.at(elsewhere), None);
    }

    #[test]
    fn the_one_that_was_not_used_for_longest_is_forgotten() {
        let mut peers = peers();
        let first = 100;
        for node in first..first + MOST_LEARNED as u16 {
            peers.learn(&hello(node, 27_900, 3), from(1, node));
        }
        peers.use_of(id(first));
        peers.learn(&hello(first + 1, 27_900, 3), from(1, first + 1));
        peers.learn(&hello(9, 27_900, 3), from(9, 7702));
        assert_eq!(peers.all.len(), 2 + MOST_LEARNED);
        let known = |peers: &Peers, node| peers.all.iter().any(|peer| peer.node == id(node));
        assert!(known(&peers, 2) && known(&peers, 3), "configured");
        assert!(known(&peers, first) && known(&peers, first + 1) && known(&peers, 9));
        assert!(!known(&peers, first + 2));
    }
}

//! The other nodes, and their addresses.
//!
//! The configured nodes are known from the start. With `open_membership` others join them: the address
//! of a node that is not configured is learned from the control datagrams it sends. These leave from
//! its token socket; its data socket is where every example in the documentation has it, at the port
//! below.
//!
//! A node whose host has a name may come back at another address. While nothing comes from where it was, its name is looked
//! up; an address that it has not had yet is a second place of the node, to which everything is sent as well. When a
//! control datagram of the node comes from there, with the cluster's key or the right checksum, that is where it is.
//!
//! The identity of a sender is not proved here. Any host that may send to the token socket, with the cluster's key, or
//! without one the right checksum and cluster number, may name any id that is not configured, and the last to do so has
//! it. Nor is the path to a learned node considered in the size of datagrams.

use rota_core::contract::NodeId;
use rota_core::wire::{HEADER_BYTES, VERSION};
use socket2::SockAddr;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use crate::names::Names;
use crate::network::{Network, NodeAddress};

/// Nodes that are known without being configured: bounds what strangers can make this node remember, and
/// send to.
pub(super) const MOST_LEARNED: usize = 128;

/// The addresses of one other node.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    pub(super) node: NodeId,
    /// The name of its host, where the configuration has that.
    host: Option<String>,
    ip: IpAddr,
    pub(super) data: SockAddr,
    pub(super) token: SockAddr,
    /// The time at which it was last heard of or sent to on its own, on a clock that counts such uses.
    used: u64,
    /// It has an address: a place for one that is not known, or where nobody is expected, has none.
    pub(super) is_somewhere: bool,
    /// Something has come from its address since the names were looked after last.
    was_heard: bool,
}

impl Peer {
    fn configured(address: &NodeAddress) -> Option<Self> {
        Some(Self {
            node: NodeId::new(address.id)?,
            host: address.host.clone(),
            ip: address.address,
            data: SockAddr::from(address.data()),
            token: SockAddr::from(address.token()),
            used: 0,
            is_somewhere: address.is_known(),
            was_heard: false,
        })
    }

    /// A second place of a node, where it is not expected yet.
    fn second(address: &NodeAddress) -> Option<Self> {
        address.host.as_ref()?;
        Some(Self {
            is_somewhere: false,
            ..Self::configured(address)?
        })
    }

    /// Whether the configuration has the same address for both.
    fn is_listed_as(&self, other: &Self) -> bool {
        let ports = |peer: &Self| {
            let of = |at: &SockAddr| at.as_socket().map(|at| at.port());
            (of(&peer.data), of(&peer.token))
        };
        let same = (self.node, &self.host, ports(self)) == (other.node, &other.host, ports(other));
        same && (self.host.is_some() || self.ip == other.ip)
    }

    /// From now on it is at this address, at the same ports.
    fn put(&mut self, ip: IpAddr) {
        for at in [&mut self.data, &mut self.token] {
            if let Some(mut address) = at.as_socket() {
                address.set_ip(ip);
                *at = SockAddr::from(address);
            }
        }
        self.ip = ip;
        self.is_somewhere = true;
        self.was_heard = false;
    }

    /// `None` where no data port is below.
    fn learned(node: NodeId, token: SocketAddr, used: u64) -> Option<Self> {
        let mut data = token;
        data.set_port(token.port().checked_sub(1).filter(|port| *port != 0)?);
        Some(Self {
            node,
            host: None,
            ip: token.ip(),
            data: SockAddr::from(data),
            token: SockAddr::from(token),
            used,
            is_somewhere: true,
            was_heard: false,
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
    /// First the configured ones, then the second places of those that have names. A place is only ever taken over, never
    /// moved: a burst on its way out remembers which place is next.
    all: Vec<Peer>,
    configured: usize,
    /// The end of the second places; behind it are those that were learned.
    fixed: usize,
    uses: u64,
    /// `None`: all addresses are in the configuration.
    names: Option<Names>,
    /// Nodes that may be elsewhere now, and were not asked for yet.
    moved: VecDeque<(NodeId, IpAddr)>,
}

impl Peers {
    pub(super) fn new(network: &Network, me: NodeId) -> Self {
        Self::with_names(network, me, Names::watch(network, me))
    }

    fn with_names(network: &Network, me: NodeId, names: Option<Names>) -> Self {
        let others = || network.nodes.iter().filter(|node| node.id != me.get());
        let mut all: Vec<Peer> = others().filter_map(Peer::configured).collect();
        let configured = all.len();
        all.extend(others().filter_map(Peer::second));
        Self {
            me,
            cluster: network.cluster,
            open: network.open_membership,
            configured,
            fixed: all.len(),
            all,
            uses: 0,
            names,
            moved: VecDeque::new(),
        }
    }

    /// These nodes are configured from now on. Those that were so before, with the same address or name, stay where
    /// they are known to be. Places move: so not while a burst is on its way out.
    pub(super) fn relist(&mut self, network: &Network) {
        let mut fresh = Self::new(network, self.me);
        let known = &self.all[..self.configured];
        for peer in &mut fresh.all[..fresh.configured] {
            if let Some(known) = known.iter().find(|known| known.is_listed_as(peer)) {
                peer.clone_from(known);
            }
        }
        *self = fresh;
    }

    pub(super) fn get(&self, place: usize) -> Option<&Peer> {
        self.all.get(place)
    }

    /// Whether a control datagram from there may say who is there.
    pub(super) fn may_learn_from(&self, source: SocketAddr) -> bool {
        let second = &self.all[self.configured..self.fixed];
        self.open
            || second
                .iter()
                .any(|peer| peer.is_somewhere && peer.ip == source.ip())
    }

    /// Whether some node that is known sends from this address; notes that something has come from there.
    pub(super) fn hear(&mut self, ip: IpAddr) -> bool {
        let mut is_known = false;
        for peer in &mut self.all {
            if peer.ip == ip && peer.is_somewhere {
                peer.was_heard = true;
                is_known = true;
            }
        }
        is_known
    }

    /// The node with a socket at this address and port.
    pub(super) fn at(&self, address: SocketAddr) -> Option<NodeId> {
        let is_it = |peer: &&Peer| {
            if !peer.is_somewhere {
                return false;
            }
            let ports = [peer.data.as_socket(), peer.token.as_socket()];
            ports.contains(&Some(address))
        };
        self.all.iter().find(is_it).map(|peer| peer.node)
    }

    /// Notes that something is sent to this node alone.
    pub(super) fn use_of(&mut self, node: NodeId) {
        self.uses += 1;
        let learned = self.all.iter_mut().skip(self.fixed);
        for peer in learned.filter(|peer| peer.node == node) {
            peer.used = self.uses;
        }
    }

    /// Reads the sender of a control datagram, whose checksum is right, and remembers the address of a node that is not
    /// configured. Says whether the address may be heard.
    pub(super) fn learn(&mut self, datagram: &[u8], source: SocketAddr) -> bool {
        if let Some(node) = stranger(datagram, self.cluster)
            && node != self.me
            && !self.follow(node, source)
            && self.open
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
        self.hear(source.ip())
    }

    /// A node speaks from its second place: there it is now. `false` if it does not.
    fn follow(&mut self, node: NodeId, source: SocketAddr) -> bool {
        let (first, rest) = self.all.split_at_mut(self.configured);
        let second = rest[..self.fixed - self.configured].iter_mut();
        let is_there = |peer: &&mut Peer| {
            peer.node == node && peer.is_somewhere && peer.token.as_socket() == Some(source)
        };
        let Some(second) = { second }.find(is_there) else {
            return false;
        };
        second.is_somewhere = false;
        if let Some(peer) = first.iter_mut().find(|peer| peer.node == node) {
            tracing::info!(node = node.get(), from = %peer.ip, to = %source.ip(), "the node has moved");
            peer.put(source.ip());
        }
        true
    }

    /// Asks for the names of nodes that are silent, and takes over what has been found.
    pub(super) fn follow_names(&mut self) {
        let Some(names) = &self.names else { return };
        for (node, found) in names.answers() {
            self.find(node, &found);
        }
        let Some(names) = &self.names else { return };
        let (first, rest) = self.all.split_at_mut(self.configured);
        for second in &mut rest[..self.fixed - self.configured] {
            let node = second.node;
            if let Some(peer) = first.iter_mut().find(|peer| peer.node == node) {
                let was_heard = std::mem::take(&mut peer.was_heard);
                names.note(node, !was_heard);
                // It is where it was.
                second.is_somewhere &= !was_heard;
            }
        }
    }

    /// The name of a node has these addresses.
    fn find(&mut self, node: NodeId, found: &[IpAddr]) {
        let (first, rest) = self.all.split_at_mut(self.configured);
        let mut second = rest[..self.fixed - self.configured].iter_mut();
        let Some(peer) = first.iter_mut().find(|peer| peer.node == node) else {
            return;
        };
        // Nodes of the other version of IP cannot be reached from these sockets.
        let mut fits = found.iter().filter(|ip| ip.is_ipv4() == peer.ip.is_ipv4());
        if peer.is_somewhere && found.contains(&peer.ip) {
            return;
        }
        let Some(ip) = fits.next() else { return };
        if !peer.is_somewhere {
            tracing::info!(node = node.get(), address = %ip, "the name of the node has an address");
            peer.put(*ip);
        } else if let Some(second) = second.find(|second| second.node == node) {
            if second.is_somewhere && second.ip == *ip {
                return;
            }
            second.put(*ip);
        }
        self.moved.push_back((node, *ip));
    }

    /// A node that may be elsewhere now.
    pub(super) fn next_moved(&mut self) -> Option<(NodeId, IpAddr)> {
        self.moved.pop_front()
    }

    /// The notes about nodes that have no address yet.
    pub(super) fn without_address(&self) -> Vec<String> {
        let configured = self.all[..self.configured].iter();
        let nowhere = configured.filter(|peer| !peer.is_somewhere);
        let note = |peer: &Peer| format!("the name of node {} has no address yet", peer.node);
        nowhere.map(note).collect()
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
        let learned = || (self.fixed..).zip(&self.all[self.fixed..]);
        let own = learned().find(|(_, peer)| peer.node == node);
        let full = self.all.len() - self.fixed >= MOST_LEARNED;
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
mod tests;

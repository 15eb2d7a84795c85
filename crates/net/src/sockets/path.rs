//! The largest datagram: what the kernel knows about the paths to the peers.
//!
//! A datagram larger than the path's MTU travels as several IP fragments. That works, and costs: one lost fragment
//! loses the datagram, and the kernel takes no bursts of such datagrams whole. So, without a setting, a datagram fills
//! one packet of the narrowest path and no more.
//!
//! A path that becomes narrower while a node runs is not followed (the kernel then fragments), nor are the peers asked
//! what their paths take.

use rota_core::contract::NodeId;
use socket2::{Domain, Protocol, Socket, Type};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use super::multicast;
use crate::network::{Network, NodeAddress, Transport};
use crate::sys;

/// The narrowest path that a node's datagrams take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathMtu {
    /// The largest IP packet it takes whole, in bytes.
    pub mtu: usize,
    /// A peer, or the multicast group.
    pub to: IpAddr,
}

impl PathMtu {
    /// Bytes of UDP payload that one packet carries.
    pub fn payload(self) -> usize {
        payload(self.mtu, self.to)
    }
}

impl fmt::Display for PathMtu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "path MTU of {} towards {}", self.mtu, self.to)
    }
}

/// The bytes that remain of a packet after the headers of IP and UDP.
fn payload(mtu: usize, to: IpAddr) -> usize {
    let headers = if to.is_ipv4() { 20 + 8 } else { 40 + 8 };
    mtu.saturating_sub(headers)
}

impl Network {
    /// The narrowest path that datagrams of node `me` take, if the kernel knows any. Looks it up in this host's kernel, and
    /// sends nothing.
    pub fn narrowest_path(&self, me: NodeId) -> Option<PathMtu> {
        let own = self.node(me)?;
        let others = self.nodes.iter().filter(|node| node.id != own.id);
        let peers = others.filter(|node| node.is_known());
        let peers = peers.map(|peer| (peer.address, mtu_to_peer(own, peer)));
        let group = match self.transport {
            Transport::Multicast(group) => Some((group.ip(), mtu_to_group(own, group, self))),
            Transport::Unicast => None,
        };
        let known = peers.chain(group).filter_map(|(to, mtu)| match mtu {
            Ok(mtu) => Some(PathMtu { mtu, to }),
            Err(error) => {
                tracing::warn!(%to, %error, "the path MTU is not known, and not considered");
                None
            }
        });
        known.min_by_key(|path| path.mtu)
    }
}

fn mtu_to_peer(own: &NodeAddress, peer: &NodeAddress) -> io::Result<usize> {
    path_mtu(&bound(own)?, peer.data())
}

/// The MTU of the interface that multicasts leave by, or of the route to the group.
fn mtu_to_group(own: &NodeAddress, group: SocketAddr, network: &Network) -> io::Result<usize> {
    let (group, index) = multicast::scoped(group, network).map_err(io::Error::other)?;
    let socket = bound(own)?;
    multicast::aim(&socket, own.address, index)?;
    path_mtu(&socket, group)
}

/// Bound to the node's address like the sockets that will send, since routes can depend on it.
fn bound(own: &NodeAddress) -> io::Result<Socket> {
    let address = SocketAddr::new(own.address, 0);
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// The kernel answers for connected sockets only. To connect one for datagrams sends nothing: it is a
/// look into the routing table and what path MTU discovery has found before.
fn path_mtu(socket: &Socket, to: SocketAddr) -> io::Result<usize> {
    socket.connect(&to.into())?;
    let (level, name) = if to.is_ipv4() {
        (libc::SOL_IP, libc::IP_MTU)
    } else {
        (libc::SOL_IPV6, libc::IPV6_MTU)
    };
    let mtu = sys::option(socket.as_raw_fd(), level, name)?;
    usize::try_from(mtu).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    const V4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
    const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

    #[test]
    fn a_path_takes_its_mtu_less_the_headers_of_ip_and_udp() {
        assert_eq!(PathMtu { mtu: 1300, to: V4 }.payload(), 1272);
        assert_eq!(PathMtu { mtu: 1300, to: V6 }.payload(), 1252);
        assert_eq!(PathMtu { mtu: 20, to: V4 }.payload(), 0);
    }
}

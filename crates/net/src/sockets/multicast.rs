//! Joining a multicast group.

use socket2::{InterfaceIndexOrAddress, Socket};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU8;
use std::os::fd::AsRawFd;

use super::SocketError;
use crate::interfaces;
use crate::network::{Network, NodeAddress};
use crate::socket::Port;
use crate::sys;

/// The number of the interface for multicast, and the group with it where IPv6 wants that. Without
/// `interface`, IPv4 goes by the node's address.
pub(super) fn scoped(
    group: SocketAddr,
    network: &Network,
) -> Result<(SocketAddr, Option<u32>), SocketError> {
    let name = match (&network.interface, group) {
        (Some(name), _) => name.as_str(),
        (None, SocketAddr::V4(_)) => return Ok((group, None)),
        // The configuration's check has refused this.
        (None, SocketAddr::V6(_)) => "",
    };
    let index = sys::interface_index(name);
    let index = index.ok_or_else(|| SocketError::NoInterface(name.to_owned()))?;
    let mut group = group;
    if let SocketAddr::V6(group) = &mut group {
        group.set_scope_id(index);
    }
    Ok((group, Some(index)))
}

/// The parameters of joining a group, to do it again.
#[derive(Debug)]
pub(super) struct Joined {
    group: IpAddr,
    own: IpAddr,
    /// The name of the interface, where one is configured.
    interface: Option<String>,
    /// The number of the interface, as far as it is known.
    index: Option<u32>,
    /// Own multicasts come back, and are filtered out where they do.
    shared: bool,
    /// Joining again was tried and failed, and that was said.
    failed: bool,
}

impl Joined {
    /// Own multicasts come back and are filtered out.
    pub const fn is_filtered(&self) -> bool {
        self.shared
    }

    /// The number of the interface as of now; `None` for an IPv4 address that no interface has, or where it is not
    /// known.
    fn index_now(&self) -> Option<u32> {
        match (&self.interface, self.own) {
            (Some(name), _) => sys::interface_index(name),
            (None, IpAddr::V4(own)) => interfaces::with_address(own),
            (None, IpAddr::V6(_)) => None,
        }
    }

    /// Joins, and aims the sending socket at the group, by the interface as of now.
    fn join(&self, data: &Port, sender: &Port) -> io::Result<()> {
        match (self.group, self.own) {
            (IpAddr::V4(group), IpAddr::V4(own)) => {
                let index = self.interface.as_ref().and(self.index);
                let interface = index.map_or(
                    InterfaceIndexOrAddress::Address(own),
                    InterfaceIndexOrAddress::Index,
                );
                data.socket().join_multicast_v4_n(&group, &interface)?;
                aim(sender.socket(), self.own, index)
            }
            (IpAddr::V6(group), _) => {
                let index = self.index.unwrap_or(0);
                data.socket().join_multicast_v6(&group, index)?;
                let any = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
                aim(sender.socket(), any, Some(index))
            }
            // The configuration's check has refused this.
            (IpAddr::V4(_), IpAddr::V6(_)) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Joins again where that is necessary: with an interface that was deleted goes what was joined there, though one
    /// with the same name and address comes back. Returns the result, if it is worth a word.
    pub fn again(&mut self, data: &Port, sender: &Port) -> Option<io::Result<()>> {
        if self.index.is_some_and(interfaces::exists) {
            return None;
        }
        let now = self.index_now()?;
        let before = self.index.replace(now);
        if let Some(before) = before {
            // The kernel keeps it for the socket, and a socket has few.
            let _ = match self.group {
                IpAddr::V4(group) => {
                    let interface = InterfaceIndexOrAddress::Index(before);
                    data.socket().leave_multicast_v4_n(&group, &interface)
                }
                IpAddr::V6(group) => data.socket().leave_multicast_v6(&group, before),
            };
        }
        let joined = match self.join(data, sender) {
            // The group is joined there: only the number of the interface was not known.
            Err(error) if error.raw_os_error() == Some(libc::EADDRINUSE) => return None,
            joined => joined,
        };
        if joined.is_err() {
            // Joining is tried again.
            self.index = before;
        }
        let said = std::mem::replace(&mut self.failed, joined.is_err());
        (joined.is_ok() || !said).then_some(joined)
    }
}

/// Joins the group on the receiving socket and aims the sending one at it, which then gets nothing.
pub(super) fn join(
    data: &Port,
    sender: &Port,
    group: SocketAddr,
    own: &NodeAddress,
    network: &Network,
    index: Option<u32>,
) -> Result<Joined, SocketError> {
    // A node that is not configured may be on this host, too.
    let shared = network.open_membership
        || own.address.is_loopback()
        || network
            .nodes
            .iter()
            .any(|node| node.id != own.id && node.address == own.address);
    let mut joined = Joined {
        group: group.ip(),
        own: own.address,
        interface: network.interface.clone(),
        index,
        shared,
        failed: false,
    };
    let filtered = || {
        if shared {
            data.drop_own(own.data())
        } else {
            Ok(())
        }
    };
    hear_only_groups(data, group.ip())
        .and_then(|()| joined.join(data, sender))
        .and_then(|()| loop_back(sender.socket(), group.ip(), shared))
        .and_then(|()| set_ttl(sender.socket(), group.ip(), network.multicast_ttl))
        .and_then(|()| sender.receive_nothing())
        .and_then(|()| filtered())
        .map_err(|error| SocketError::Multicast { group, error })?;
    joined.index = joined.index_now().or(index);
    Ok(joined)
}

/// Lets a socket get datagrams to groups that it has joined itself, and not to those of others.
fn hear_only_groups(data: &Port, group: IpAddr) -> io::Result<()> {
    let (level, option) = match group {
        IpAddr::V4(_) => (libc::SOL_IP, libc::IP_MULTICAST_ALL),
        IpAddr::V6(_) => (libc::SOL_IPV6, libc::IPV6_MULTICAST_ALL),
    };
    sys::set_option(data.raw(), level, option, 0_i32)
}

/// Sets whether multicasts of a socket are heard on this host.
fn loop_back(sender: &Socket, group: IpAddr, heard: bool) -> io::Result<()> {
    match group {
        IpAddr::V4(_) => sender.set_multicast_loop_v4(heard),
        IpAddr::V6(_) => sender.set_multicast_loop_v6(heard),
    }
}

/// Sets the number of links that multicasts of a socket cross.
fn set_ttl(sender: &Socket, group: IpAddr, ttl: NonZeroU8) -> io::Result<()> {
    let ttl = u32::from(ttl.get());
    match group {
        IpAddr::V4(_) => sender.set_multicast_ttl_v4(ttl),
        IpAddr::V6(_) => sender.set_multicast_hops_v6(ttl),
    }
}

/// Lets multicasts of a socket leave by the interface with this number; without one, by the interface
/// that has the IPv4 address `own`.
pub(super) fn aim(socket: &Socket, own: IpAddr, index: Option<u32>) -> io::Result<()> {
    match own {
        IpAddr::V4(address) => {
            let outgoing = libc::ip_mreqn {
                imr_multiaddr: libc::in_addr { s_addr: 0 },
                imr_address: libc::in_addr {
                    s_addr: u32::from(address).to_be(),
                },
                imr_ifindex: index.unwrap_or(0).cast_signed(),
            };
            let fd = socket.as_raw_fd();
            sys::set_option(fd, libc::SOL_IP, libc::IP_MULTICAST_IF, outgoing)
        }
        IpAddr::V6(_) => socket.set_multicast_if_v6(index.unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Transport;

    /// Multicasts cross as many links as configured, and by default not more than the own one.
    #[test]
    fn multicasts_cross_as_many_links_as_are_configured() {
        for ttl in [1, 8] {
            let mut network = Network::loopback(2, 27_960);
            network.multicast_ttl = NonZeroU8::new(ttl).expect("not 0");
            let own = network.nodes[0].clone();
            let Transport::Multicast(group) = network.transport else {
                panic!("it is multicast");
            };
            let open = |address, shared| Port::open(address, shared, network.tuning);
            let data = open(group, true).expect("a socket");
            let sender = open(own.data(), false).expect("a socket");
            join(&data, &sender, group, &own, &network, None).expect("it joins");
            let set = sender.socket().multicast_ttl_v4();
            assert_eq!(set.expect("it can be read"), u32::from(ttl));
        }
    }
}

//! Joining a multicast group.

use socket2::{InterfaceIndexOrAddress, Socket};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;

use super::SocketError;
use crate::config::{NodeAddress, NodeConfig};
use crate::socket::Port;
use crate::sys;

/// The number of the interface for multicast, and the group with it where IPv6 wants that. Without
/// `interface`, IPv4 goes by the node's address.
pub(super) fn scoped(
    group: SocketAddr,
    config: &NodeConfig,
) -> Result<(SocketAddr, Option<u32>), SocketError> {
    let name = match (&config.interface, group) {
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

/// Joins the group on the receiving socket and aims the sending one at it, which then gets nothing; says
/// whether own multicasts come back and are filtered out.
pub(super) fn join(
    data: &Port,
    sender: &Port,
    group: SocketAddr,
    own: &NodeAddress,
    config: &NodeConfig,
    index: Option<u32>,
) -> Result<bool, SocketError> {
    // A node that is not configured may be on this host, too.
    let shared = config.open_membership
        || own.address.is_loopback()
        || config
            .nodes
            .iter()
            .any(|node| node.id != own.id && node.address == own.address);
    let result = match (group.ip(), own.address) {
        (IpAddr::V4(group), IpAddr::V4(address)) => {
            let interface = index.map_or(
                InterfaceIndexOrAddress::Address(address),
                InterfaceIndexOrAddress::Index,
            );
            join_v4(data, sender, group, &interface, address, shared)
        }
        (IpAddr::V6(group), _) => join_v6(data, sender, group, index.unwrap_or(0), shared),
        // The configuration's check has refused this.
        (IpAddr::V4(_), IpAddr::V6(_)) => Err(io::ErrorKind::InvalidInput.into()),
    };
    let filtered = || {
        if shared {
            data.drop_own(own.data())
        } else {
            Ok(())
        }
    };
    result
        .and_then(|()| sender.receive_nothing())
        .and_then(|()| filtered())
        .map(|()| shared)
        .map_err(|error| SocketError::Multicast { group, error })
}

fn join_v4(
    data: &Port,
    sender: &Port,
    group: Ipv4Addr,
    interface: &InterfaceIndexOrAddress,
    address: Ipv4Addr,
    loopback: bool,
) -> io::Result<()> {
    sys::set_option(data.raw(), libc::SOL_IP, libc::IP_MULTICAST_ALL, 0_i32)?;
    data.socket().join_multicast_v4_n(&group, interface)?;
    let index = match interface {
        InterfaceIndexOrAddress::Index(index) => Some(*index),
        InterfaceIndexOrAddress::Address(_) => None,
    };
    aim(sender.socket(), IpAddr::V4(address), index)?;
    sender.socket().set_multicast_loop_v4(loopback)
}

fn join_v6(
    data: &Port,
    sender: &Port,
    group: Ipv6Addr,
    index: u32,
    loopback: bool,
) -> io::Result<()> {
    sys::set_option(data.raw(), libc::SOL_IPV6, libc::IPV6_MULTICAST_ALL, 0_i32)?;
    data.socket().join_multicast_v6(&group, index)?;
    aim(
        sender.socket(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        Some(index),
    )?;
    sender.socket().set_multicast_loop_v6(loopback)
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

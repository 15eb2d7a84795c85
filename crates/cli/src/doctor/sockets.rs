//! The sockets of `rota doctor`: at the addresses of a node's own.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use rota_core::contract::NodeId;
use rota_net::{Transport, interface_index};
use rota_node::NodeConfig;
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};

/// How long a thread waits for a datagram before it looks whether it is over.
const WAIT: Duration = Duration::from_millis(20);

/// The sockets of a node.
#[derive(Debug)]
pub struct Sockets {
    /// Sends data, and receives it where there is no multicast.
    pub data: UdpSocket,
    /// Receives data from the group, where there is one.
    pub group: Option<UdpSocket>,
    /// Questions and answers.
    pub token: UdpSocket,
    /// The receive buffer that the kernel gives without privileges, in bytes.
    pub receive_buffer_bytes: usize,
}

impl Sockets {
    /// Opens them. An error is a sentence.
    pub fn open(config: &NodeConfig, me: NodeId) -> Result<Self, String> {
        let node = config.node(me);
        let node = node.ok_or_else(|| format!("node {me} is not listed"))?;
        let wrong = |address: SocketAddr| {
            move |error: io::Error| match error.kind() {
                io::ErrorKind::AddrInUse => format!(
                    "{address} is in use: a daemon runs here, and rota status --explain says more of it than this could"
                ),
                _ => format!("{address}: {error}"),
            }
        };
        let (data, token) = (node.data(), node.token());
        let sender = open(data, false).map_err(wrong(data))?;
        let receive_buffer_bytes = buffer(&sender, config.receive_buffer_bytes)
            .map_err(|error| format!("the receive buffer: {error}"))?;
        let group = match config.transport {
            Transport::Unicast => None,
            Transport::Multicast(group) => {
                let hops = config.multicast_ttl.map_or(1, |ttl| u32::from(ttl.get()));
                let index = config.interface.as_deref().map(|name| {
                    interface_index(name).ok_or_else(|| format!("there is no interface {name}"))
                });
                let index = index.transpose()?;
                let joined = join(&sender, group, (node.address, index), hops);
                Some(joined.map_err(wrong(group))?)
            }
        };
        Ok(Self {
            data: sender.into(),
            group,
            token: open(token, false).map_err(wrong(token))?.into(),
            receive_buffer_bytes,
        })
    }
}

/// A socket bound to an address, which others may have as well if it is `shared`.
fn open(address: SocketAddr, shared: bool) -> io::Result<Socket> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_address(shared)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    socket.set_read_timeout(Some(WAIT))?;
    Ok(socket)
}

/// Asks for a receive buffer as a daemon without privileges does, and says how large it is. The kernel books twice as much.
fn buffer(socket: &Socket, bytes: usize) -> io::Result<usize> {
    socket.set_recv_buffer_size(bytes)?;
    Ok(socket.recv_buffer_size()? / 2)
}

/// A socket for what comes from the group; what `sender` sends there leaves by the same interface.
fn join(
    sender: &Socket,
    group: SocketAddr,
    (own, index): (IpAddr, Option<u32>),
    hops: u32,
) -> io::Result<UdpSocket> {
    let receiver = open(group, true)?;
    match (group.ip(), own) {
        (IpAddr::V4(to), IpAddr::V4(own)) => {
            sender.set_multicast_if_v4(&own)?;
            sender.set_multicast_ttl_v4(hops)?;
            let at = match index {
                Some(index) => InterfaceIndexOrAddress::Index(index),
                None => InterfaceIndexOrAddress::Address(own),
            };
            receiver.join_multicast_v4_n(&to, &at)?;
        }
        (IpAddr::V6(to), _) => {
            let index = index.unwrap_or(0);
            sender.set_multicast_if_v6(index)?;
            sender.set_multicast_hops_v6(hops)?;
            receiver.join_multicast_v6(&to, index)?;
        }
        // The configuration was checked for it.
        (IpAddr::V4(_), IpAddr::V6(_)) => {
            return Err(io::Error::other(
                "it is of another IP version than the node",
            ));
        }
    }
    Ok(receiver.into())
}

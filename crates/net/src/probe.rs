//! A probe whether multicast works here at all.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

/// Sends one datagram to a group of its own on the interface that has `address` (IPv4) and waits up to
/// 200 ms for it.
///
/// # Errors
/// The step that did not work, as a sentence.
pub fn probe_multicast(address: IpAddr) -> Result<(), String> {
    let IpAddr::V4(address) = address else {
        return Err("only IPv4 multicast can be probed".to_owned());
    };
    let failed = |what: &str| {
        let what = what.to_owned();
        move |error: std::io::Error| format!("{what}: {error}")
    };
    let group = Ipv4Addr::new(239, 192, 255, 254);
    let receiver = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))
        .map_err(failed("cannot open a socket"))?;
    let any = SocketAddr::from(SocketAddrV4::new(group, 0));
    receiver
        .bind(&any.into())
        .map_err(failed("cannot bind to a multicast group"))?;
    receiver
        .join_multicast_v4(&group, &address)
        .map_err(failed("cannot join a multicast group"))?;
    let receiver = UdpSocket::from(receiver);
    let port = receiver
        .local_addr()
        .map_err(failed("no local address"))?
        .port();
    let sender = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))
        .map_err(failed("cannot open a socket"))?;
    sender
        .set_multicast_if_v4(&address)
        .map_err(failed("cannot choose the interface"))?;
    let target = SocketAddr::from(SocketAddrV4::new(group, port));
    sender
        .send_to(b"rota", &target.into())
        .map_err(failed("cannot send to a multicast group"))?;
    let patience = Some(Duration::from_millis(200));
    receiver
        .set_read_timeout(patience)
        .map_err(failed("cannot set a timeout"))?;
    let mut buffer = [0; 8];
    match receiver.recv(&mut buffer) {
        Ok(4) if buffer.starts_with(b"rota") => Ok(()),
        Ok(_) => Err("something else came in the probe's place".to_owned()),
        Err(error) => Err(format!("a multicast to this host did not arrive: {error}")),
    }
}

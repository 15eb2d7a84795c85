//! Finds ports for a cluster on this host.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};

use rota_net::random_u64;

/// The ports to choose from: below those that systems hand out by themselves, so that no other
/// program gets one between the look and the use.
const PORTS: std::ops::Range<u16> = 12_000..32_000;
/// Ranges to look at.
const TRIES: usize = 100;

/// The first of a range of so many ports that are free now. They may be gone a moment later.
pub fn free_range(count: u16) -> Option<u16> {
    let choices = PORTS.end - PORTS.start - count;
    (0..TRIES).find_map(|_| {
        let random = random_u64().ok()? % u64::from(choices);
        let base = PORTS.start + u16::try_from(random).ok()?;
        (base..base + count).all(is_free).then_some(base)
    })
}

fn is_free(port: u16) -> bool {
    let at = (Ipv4Addr::LOCALHOST, port);
    UdpSocket::bind(at).is_ok() && TcpListener::bind(at).is_ok()
}

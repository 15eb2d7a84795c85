//! How many connections one address may have.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bits of an IPv6 address that one host cannot choose by itself, most often.
const NETWORK_BITS: u32 = 64;

/// Connections by address, of all sockets that are reached by TCP.
#[derive(Clone, Debug)]
pub(crate) struct Seats(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    most: usize,
    taken: Mutex<HashMap<IpAddr, usize>>,
    refused: AtomicU64,
}

/// One connection's place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    seats: Seats,
    at: IpAddr,
}

impl Seats {
    /// At most so many for each.
    pub fn new(most: usize) -> Self {
        Self(Arc::new(Shared {
            most,
            taken: Mutex::default(),
            refused: AtomicU64::new(0),
        }))
    }

    /// A place for one more from this address, if there is one.
    pub fn take(&self, address: IpAddr) -> Option<Seat> {
        let at = host(address);
        let mut taken = self.taken();
        let count = taken.entry(at).or_default();
        if *count >= self.0.most {
            self.0.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        *count += 1;
        drop(taken);
        let seats = self.clone();
        Some(Seat { seats, at })
    }

    /// How many have got none.
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// No step can panic half-way.
    fn taken(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Entry::Occupied(mut entry) = self.seats.taken().entry(self.at) {
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }
}

/// What counts as one address.
fn host(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            let network = address.to_bits() >> NETWORK_BITS << NETWORK_BITS;
            Ipv6Addr::from_bits(network).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_so_many_places_and_gets_them_back() {
        let seats = Seats::new(2);
        let at = |text: &str| text.parse::<IpAddr>().expect("an address");
        let first = seats.take(at("10.0.0.1")).expect("a place");
        let second = seats.take(at("::ffff:10.0.0.1")).expect("a place");
        assert!(seats.take(at("10.0.0.1")).is_none());
        assert!(seats.take(at("10.0.0.2")).is_some(), "another address");
        assert_eq!(seats.refused(), 1);
        drop(first);
        let third = seats.take(at("10.0.0.1")).expect("a place again");
        drop((second, third));
        assert!(seats.taken().is_empty(), "nothing is kept");
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let seats = Seats::new(1);
        let at = |text: &str| text.parse::<IpAddr>().expect("an address");
        let _first = seats.take(at("fd00:1::1")).expect("a place");
        assert!(seats.take(at("fd00:1::ffff:2")).is_none());
        assert!(seats.take(at("fd00:1:0:1::1")).is_some());
    }
}

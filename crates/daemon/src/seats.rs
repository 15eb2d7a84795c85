//! The limits of connections of one address, or of one user of this host.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rota_core::groups::Owner;

/// Bits of an IPv6 address that one host cannot choose by itself, most often.
const NETWORK_BITS: u32 = 64;

/// The connections of each owner: by address, over all sockets that are reached by TCP, and by user.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionLimits(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    per_address: usize,
    per_user: usize,
    taken: Mutex<HashMap<Owner, usize>>,
    refused: AtomicU64,
}

/// One connection's place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    seats: ConnectionLimits,
    at: Owner,
}

impl ConnectionLimits {
    /// At most these numbers for each address, and for each user.
    pub fn new(per_address: usize, per_user: usize) -> Self {
        Self(Arc::new(Shared {
            per_address,
            per_user,
            taken: Mutex::default(),
            refused: AtomicU64::new(0),
        }))
    }

    /// A place for one more of this owner, if there is one.
    pub fn take(&self, at: Owner) -> Option<Seat> {
        let most = match at {
            Owner::User(_) => self.0.per_user,
            Owner::Address(_) => self.0.per_address,
        };
        let mut taken = self.taken();
        let count = taken.entry(at).or_default();
        if *count >= most {
            self.0.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        *count += 1;
        drop(taken);
        let seats = self.clone();
        Some(Seat { seats, at })
    }

    /// The number of connections that were refused.
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// No step can panic half-way.
    fn taken(&self) -> MutexGuard<'_, HashMap<Owner, usize>> {
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

/// The owner of connections from this address. One host can choose among many addresses of an IPv6 network, so there
/// the network counts.
pub(crate) fn owner_at(address: IpAddr) -> Owner {
    Owner::Address(match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            let network = address.to_bits() >> NETWORK_BITS << NETWORK_BITS;
            Ipv6Addr::from_bits(network).into()
        }
        address => address,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_so_many_places_and_gets_them_back() {
        let seats = ConnectionLimits::new(2, 3);
        let at = |text: &str| owner_at(text.parse().expect("an address"));
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
        let seats = ConnectionLimits::new(1, 3);
        let at = |text: &str| owner_at(text.parse().expect("an address"));
        let _first = seats.take(at("fd00:1::1")).expect("a place");
        assert!(seats.take(at("fd00:1::ffff:2")).is_none());
        assert!(seats.take(at("fd00:1:0:1::1")).is_some());
    }

    #[test]
    fn each_user_has_so_many_places_whoever_has_taken_them() {
        let seats = ConnectionLimits::new(1, 2);
        let held = [7, 7, 8].map(|uid| seats.take(Owner::User(uid)).expect("a place"));
        assert!(seats.take(Owner::User(7)).is_none());
        assert!(seats.take(Owner::User(8)).is_some());
        drop(held);
        assert!(seats.taken().is_empty(), "nothing is kept");
    }
}

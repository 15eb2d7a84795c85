//! The protocol that orders the messages, and the capacity of its links.

use rota_core::EngineName;
use rota_core::shares::Capacity;
use rota_ring::RingConfig;
use std::num::NonZeroU32;

/// Bytes of the headers of Ethernet, IPv4 and UDP before a datagram.
const HEADER_BYTES: usize = 14 + 20 + 8;

/// Engines that order differently must not meet: to each other they are other clusters. The two rings understand each
/// other.
pub(super) const fn mark(engine: EngineName) -> u32 {
    match engine {
        EngineName::AcceleratedRing | EngineName::TotemRing => 0,
        EngineName::FastCast => u32::from_be_bytes(*b"fast"),
        EngineName::Lcr => u32::from_be_bytes(*b"lcr "),
        EngineName::RingPaxos => u32::from_be_bytes(*b"ring"),
        EngineName::URingPaxos => u32::from_be_bytes(*b"urng"),
    }
}

/// The UDP payload that a link of `link_mbps` takes in, in datagrams of this size, if that is known.
pub(crate) fn capacity(link_mbps: Option<NonZeroU32>, ring: &RingConfig) -> Option<Capacity> {
    let of = |mbps: NonZeroU32| {
        let bits_per_second = u64::from(mbps.get()) * 1_000_000;
        Capacity::of_link(bits_per_second, ring.datagram_bytes, HEADER_BYTES)
    };
    link_mbps.map(of)
}

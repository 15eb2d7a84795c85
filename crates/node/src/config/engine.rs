//! The protocol that orders the messages, and the ring beside it if the protocol is none itself.

use rota_core::EngineName;
use rota_core::shares::Capacity;
use rota_ring::RingConfig;
use rota_views::WORD_BYTES;
use std::num::NonZeroU32;

use super::NodeConfig;

/// The limit, in bytes, of a view member's messages to the others that wait for the ring beside.
const VIEW_BACKLOG_BYTES: usize = 4 << 20;

/// Bytes of the headers of Ethernet, IPv4 and UDP before a datagram.
const HEADER_BYTES: u64 = 14 + 20 + 8;

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

impl NodeConfig {
    /// The configuration of the ring that only says which nodes are there, beside a data path with the settings of
    /// `ring`. It carries the messages of view members to each other when the view changes, and nothing of
    /// applications.
    pub(crate) fn ring_beside(ring: &RingConfig) -> RingConfig {
        let mut beside = ring.clone();
        beside.message_bytes = WORD_BYTES;
        beside.backlog_bytes = VIEW_BACKLOG_BYTES;
        beside.trace = false;
        beside
    }

    /// The UDP payload that the slowest link takes in, in datagrams of this size, if that is known.
    pub(crate) fn capacity(&self, ring: &RingConfig) -> Option<Capacity> {
        let payload = ring.datagram_bytes as u64;
        let of = |mbps: NonZeroU32| u64::from(mbps.get()) * 1_000_000 / (payload + HEADER_BYTES);
        self.link_mbps.map(|mbps| Capacity::new(of(mbps) * payload))
    }
}

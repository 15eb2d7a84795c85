//! Which protocol orders the messages, and the ring beside it if it is none itself.

use rota_core::shares::Capacity;
use rota_ring::RingConfig;
use rota_views::WORD_BYTES;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

use super::NodeConfig;

/// What a member of a view has to tell the others waits for the ring beside up to this, in bytes.
const VIEW_BACKLOG_BYTES: usize = 4 << 20;

/// Bytes of the headers of Ethernet, IPv4 and UDP before a datagram.
const HEADER_BYTES: u64 = 14 + 20 + 8;

/// Which protocol orders the messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineName {
    /// Part of a visit's messages leave after the token.
    #[default]
    AcceleratedRing,
    /// The original protocol.
    TotemRing,
    /// A sequencer numbers what all multicast; all acknowledge.
    #[serde(rename = "fastcast")]
    FastCast,
    /// Vector clocks, along a ring of reliable links.
    #[serde(rename = "lcr")]
    Lcr,
    /// Instances of Paxos: proposers multicast values, and the rest goes along a ring of reliable links.
    #[serde(rename = "ring-paxos")]
    RingPaxos,
    /// Instances of Paxos, in which everything goes along a ring of reliable links.
    #[serde(rename = "u-ring-paxos")]
    URingPaxos,
}

impl EngineName {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::AcceleratedRing,
        Self::TotemRing,
        Self::FastCast,
        Self::Lcr,
        Self::RingPaxos,
        Self::URingPaxos,
    ];

    /// Whether it orders in primary configurations only, beside an idle ring that says which those are.
    pub const fn has_views(self) -> bool {
        matches!(self, Self::FastCast | Self::Lcr)
    }

    /// Whether nodes have reliable links between them, by TCP.
    pub const fn has_links(self) -> bool {
        matches!(self, Self::Lcr | Self::RingPaxos | Self::URingPaxos)
    }

    /// Whether acceptors vote, which must not forget what for.
    pub const fn has_votes(self) -> bool {
        matches!(self, Self::RingPaxos | Self::URingPaxos)
    }

    /// Whether messages are delivered in one order only, for all that a majority goes on with, and get their places
    /// in it from another node.
    pub const fn is_uniform(self) -> bool {
        self.has_views() || self.has_votes()
    }

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AcceleratedRing => "accelerated-ring",
            Self::TotemRing => "totem-ring",
            Self::FastCast => "fastcast",
            Self::Lcr => "lcr",
            Self::RingPaxos => "ring-paxos",
            Self::URingPaxos => "u-ring-paxos",
        }
    }

    /// Those that order differently must not meet: to each other they are other clusters. The two rings
    /// understand each other.
    pub(super) const fn mark(self) -> u32 {
        match self {
            Self::AcceleratedRing | Self::TotemRing => 0,
            Self::FastCast => u32::from_be_bytes(*b"fast"),
            Self::Lcr => u32::from_be_bytes(*b"lcr "),
            Self::RingPaxos => u32::from_be_bytes(*b"ring"),
            Self::URingPaxos => u32::from_be_bytes(*b"urng"),
        }
    }
}

impl NodeConfig {
    /// What the ring is told that only says who is there, beside a data path with the settings of `ring`:
    /// it carries what members of a view tell each other when that changes, and nothing of applications.
    pub(crate) fn ring_beside(ring: &RingConfig) -> RingConfig {
        let mut beside = ring.clone();
        beside.message_bytes = WORD_BYTES;
        beside.backlog_bytes = VIEW_BACKLOG_BYTES;
        beside.trace = false;
        beside
    }

    /// What the slowest link takes in of UDP payload, in datagrams of this size, if that is known.
    pub(crate) fn capacity(&self, ring: &RingConfig) -> Option<Capacity> {
        let payload = ring.datagram_bytes as u64;
        let of = |mbps: NonZeroU32| u64::from(mbps.get()) * 1_000_000 / (payload + HEADER_BYTES);
        self.link_mbps.map(|mbps| Capacity::new(of(mbps) * payload))
    }
}

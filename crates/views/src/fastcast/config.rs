//! What a data path is told once.

use rota_core::contract::Class;
use rota_core::shares::Capacity;
use rota_core::wire;
use rota_ring::RingConfig;

/// Everything that FastCast is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FastConfig {
    /// Datagrams of other clusters are counted and dropped.
    pub cluster: u32,
    /// The largest datagram, in bytes of UDP payload.
    pub datagram_bytes: usize,
    /// How many of them, at the end, are for whoever owns the sockets: a checksum, or a seal.
    pub seal_bytes: usize,
    /// Packets that a member may have under way: sent, and not known to be delivered by all. Every
    /// member keeps as many of each other at most.
    pub window: u32,
    /// Where control for all goes that travels alone. [`Class::Token`] is read first; [`Class::Data`] waits
    /// behind packets, but is one multicast where there is one, and not one datagram for each member: with
    /// many members and little load that is faster.
    pub control: Class,
    /// What the link of this member takes in: senders keep to their shares of it (§3.5). `None`: all send
    /// as fast as the windows let them.
    pub capacity: Option<Capacity>,
    /// Senders go by less than the capacity while packets get lost: others use the links, too, or nobody knows what they
    /// take in ([`Capacity::UNKNOWN`]).
    pub yields: bool,
}

impl FastConfig {
    /// Packets under way where nothing else is said.
    pub const DEFAULT_WINDOW: u32 = 256;

    /// For a view beside a ring with this configuration.
    pub const fn beside(ring: &RingConfig) -> Self {
        Self {
            cluster: ring.cluster,
            datagram_bytes: ring.datagram_bytes,
            seal_bytes: ring.seal_bytes,
            window: Self::DEFAULT_WINDOW,
            control: Class::Token,
            capacity: None,
            yields: false,
        }
    }

    /// Bytes of the largest frame that a packet carries.
    pub const fn frame_bytes(&self) -> usize {
        self.datagram_bytes - wire::HEADER_BYTES - self.seal_bytes
    }
}

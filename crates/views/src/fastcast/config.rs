//! The configuration of the data path, given once.

use rota_core::contract::Class;
use rota_core::shares::Capacity;
use rota_core::wire;
use rota_ring::RingConfig;

/// Packets that all members together may have under way.
const PACKETS: usize = 2048;

/// All settings of FastCast.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FastConfig {
    /// Datagrams of other clusters are counted and dropped.
    pub cluster: u32,
    /// The largest datagram, in bytes of UDP payload.
    pub datagram_bytes: usize,
    /// The bytes at the end of a datagram that are left to the owner of the sockets: a checksum, or a seal.
    pub seal_bytes: usize,
    /// Packets that a member may have under way: sent, and not known to be delivered by all. Every
    /// member keeps as many of each other at most.
    pub window: u32,
    /// The class of control datagrams for all that travel alone. [`Class::Token`] is read first; [`Class::Data`] waits
    /// behind packets, but is one multicast where there is one, and not one datagram for each member: with many members
    /// and little load that is faster.
    pub control: Class,
    /// The capacity of this member's link: senders keep to their shares of it (§3.5). `None`: all send as fast as the
    /// windows let them.
    pub capacity: Option<Capacity>,
    /// Whether senders go by less than the capacity while packets get lost: for links that others use, too, or whose
    /// capacity is not known ([`Capacity::UNKNOWN`]).
    pub yields: bool,
}

impl FastConfig {
    /// The default of `window`, in packets.
    pub const DEFAULT_WINDOW: u32 = 256;

    /// The configuration for a view beside a ring with this one.
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

    /// The same with a window of this one's share in what all members of the ring together may have under way: few members
    /// need as many packets as many do, to fill a link.
    #[must_use]
    pub fn shared_by(mut self, members: usize) -> Self {
        let share = (PACKETS / members.max(1)) as u32;
        self.window = share.max(Self::DEFAULT_WINDOW);
        self
    }

    /// Bytes of the largest frame that a packet carries.
    pub const fn frame_bytes(&self) -> usize {
        self.datagram_bytes - wire::HEADER_BYTES - self.seal_bytes
    }
}

//! The configuration of a ring, given once before it starts.

use alloc::vec::Vec;
use core::fmt;

use super::Windows;
use crate::wire::{WRAPPER_BYTES, request_ranges_in};
use rota_core::contract::{Burst, NodeId};
use rota_core::pack::MOST_MESSAGE_BYTES;
use rota_core::timing::{Timers, Timing};
use rota_core::wire::{HEADER_BYTES, MAX_MEMBERS, MAX_SEAL_BYTES, SEAL_BYTES};

/// The protocol that orders the messages, one of two.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Protocol {
    /// `accelerated-ring`: part of a visit's messages leave after the token (report §III).
    Accelerated,
    /// `totem-ring`: the original protocol. Everything leaves before the token, requests reach up to
    /// the received token's `seq`, and the token is read only when no data waits.
    Original,
}

/// The event after a visit that raises the token's priority again (thesis §3.1.4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PriorityMethod {
    /// On any packet that the predecessor sent in the next rotation: fastest rotation.
    First,
    /// On a packet that the predecessor sent after its next token: processes what was sent before it.
    Second,
}

/// All settings of a ring. `RingConfig::new` has the defaults; `check` finds faults.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RingConfig {
    /// Datagrams of other clusters are counted and dropped.
    pub cluster: u32,
    /// The configured nodes, by ascending id: a ring that lacks some of them looks for them. Others may join.
    pub members: Vec<NodeId>,
    /// No other node is heard here, so that no ring with others forms.
    pub closed: bool,
    /// The nodes that count in primary configurations, ascending; empty if the application asks for none.
    pub electorate: Vec<NodeId>,
    /// The protocol in force once the ring is installed.
    pub protocol: Protocol,
    /// The bounds on the packets that may be sent.
    pub windows: Windows,
    /// The event that raises the token's priority.
    pub priority_method: PriorityMethod,
    /// The largest datagram, in bytes of UDP payload.
    pub datagram_bytes: usize,
    /// The bytes at the end of a datagram that are left to the owner of the sockets: a checksum, or a seal.
    pub seal_bytes: usize,
    /// The largest message, in bytes.
    pub message_bytes: usize,
    /// The bytes of submitted and unsent messages that a member keeps before it answers `Full`. Each waiting packet
    /// counts for 100 bytes more than it holds.
    pub backlog_bytes: usize,
    /// Time-outs.
    pub timers: Timers,
    /// Hand out `Output::Originated`.
    pub trace: bool,
}

/// A fault of a ring's configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RingConfigError {
    /// No members, too many, not ascending or twice the same.
    Members,
    /// Too many nodes count in primaries, or they are not ascending.
    Electorate,
    /// A window is 0 that must not be, or is larger than its bound.
    Window(&'static str),
    /// The datagram size is outside these bounds, in bytes.
    DatagramBytes {
        /// Smallest.
        min: usize,
        /// Largest.
        max: usize,
    },
    /// The room to seal datagrams is larger than this many bytes.
    SealBytes(usize),
    /// The largest message is 0, too large for the backlog, or larger than any may be.
    MessageBytes,
}

impl fmt::Display for RingConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Members => write!(
                f,
                "the members must be 1 to {} different node ids in ascending order",
                RingConfig::MAX_MEMBERS
            ),
            Self::Electorate => write!(
                f,
                "at most {} different nodes, in ascending order, count in primaries",
                RingConfig::MAX_MEMBERS
            ),
            Self::Window(what) => f.write_str(what),
            Self::DatagramBytes { min, max } => {
                write!(f, "datagram_bytes must be between {min} and {max}")
            }
            Self::SealBytes(max) => write!(f, "seal_bytes must be at most {max}"),
            Self::MessageBytes => {
                f.write_str("message_bytes must be at least 1, and at most backlog_bytes and 1 GiB")
            }
        }
    }
}

impl core::error::Error for RingConfigError {}

impl RingConfig {
    /// The most members of one ring: Spread's limit, and the number that a commit token can list.
    pub const MAX_MEMBERS: usize = MAX_MEMBERS;
    /// Smallest datagram: room for a token with a few requests.
    pub const MIN_DATAGRAM_BYTES: usize = 512;
    /// The largest datagram that fits an Ethernet frame over IPv4 without fragmentation.
    pub const DEFAULT_DATAGRAM_BYTES: usize = 1472;

    /// The defaults: measured, see `docs/notebook/accelerated-ring.md`.
    pub fn new(cluster: u32, members: Vec<NodeId>) -> Self {
        let timers = Timers::derive(Timing::Default, members.len());
        Self {
            cluster,
            members,
            closed: false,
            electorate: Vec::new(),
            protocol: Protocol::Accelerated,
            windows: Windows::default(),
            priority_method: PriorityMethod::Second,
            datagram_bytes: Self::DEFAULT_DATAGRAM_BYTES,
            seal_bytes: SEAL_BYTES,
            message_bytes: 16 << 20,
            backlog_bytes: 32 << 20,
            timers,
            trace: false,
        }
    }

    /// The same ring, ordered by the original protocol.
    pub fn original(mut self) -> Self {
        self.protocol = Protocol::Original;
        self.windows.accelerated = 0;
        self
    }

    /// Checks that a ring can run with this configuration.
    pub fn check(&self) -> Result<(), RingConfigError> {
        let ascending = self.members.windows(2).all(|pair| pair[0] < pair[1]);
        if self.members.is_empty() || self.members.len() > Self::MAX_MEMBERS || !ascending {
            return Err(RingConfigError::Members);
        }
        let ascending = self.electorate.windows(2).all(|pair| pair[0] < pair[1]);
        if self.electorate.len() > Self::MAX_MEMBERS || !ascending {
            return Err(RingConfigError::Electorate);
        }
        self.windows.check(self.protocol)?;
        let (min, max) = (Self::MIN_DATAGRAM_BYTES, Burst::MAX_BYTES);
        if !(min..=max).contains(&self.datagram_bytes) {
            return Err(RingConfigError::DatagramBytes { min, max });
        }
        if self.seal_bytes > MAX_SEAL_BYTES {
            return Err(RingConfigError::SealBytes(MAX_SEAL_BYTES));
        }
        let most = self.backlog_bytes.min(MOST_MESSAGE_BYTES);
        if !(1..=most).contains(&self.message_bytes) {
            return Err(RingConfigError::MessageBytes);
        }
        Ok(())
    }

    /// The most ranges of requests in one token of this member, which has to fit a datagram.
    pub(super) const fn request_ranges(&self) -> usize {
        request_ranges_in(self.datagram_bytes, self.seal_bytes)
    }

    /// Payload bytes that one packet carries: it has to fit a datagram also when it is wrapped in a
    /// packet of another ring (membership A8).
    pub const fn frame_bytes(&self) -> usize {
        self.datagram_bytes - HEADER_BYTES - self.seal_bytes - WRAPPER_BYTES
    }
}

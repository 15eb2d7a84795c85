//! What the engine needs to be told.

use alloc::vec::Vec;

use rota_core::contract::NodeId;
use rota_core::shares::Capacity;
use rota_core::timing::Timers;
use rota_core::wire::HEADER_BYTES;

/// Everything that is set from outside. All nodes have the same `ring` and `acceptors`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct URingConfig {
    /// All nodes, in the order of the ring.
    pub ring: Vec<NodeId>,
    /// Those of them that vote, as the cluster is founded.
    pub acceptors: Vec<NodeId>,
    /// The largest own value, in bytes: several messages, or a part of one. Values of 32 KiB whole are what the papers
    /// measure, and a message that is not cut need not be put together.
    pub frame_bytes: usize,
    /// Every message is a value of its own, or several, however small it is.
    pub value_per_message: bool,
    /// The largest message, in bytes.
    pub message_bytes: usize,
    /// What was submitted and has not left waits up to this, in bytes.
    pub backlog_bytes: usize,
    /// Own values that were not delivered here may take so much, in bytes. Every process keeps up to that much for each
    /// other one.
    pub window_bytes: usize,
    /// Where a message to the successor ends, in bytes. One value may be larger.
    pub batch_bytes: usize,
    /// Where other messages with values end, in bytes. One value may be larger.
    pub word_bytes: usize,
    /// So much may be under way at the disk. With more than that waiting a process takes no proposals, and so slows the ring.
    /// In bytes; less where the disk is slow.
    pub disk_bytes: usize,
    /// What is learnt and waits for the application may take about so much, in bytes.
    pub waiting_bytes: usize,
    /// Decided instances that an acceptor keeps for those who are behind.
    pub kept_instances: u64,
    /// What is kept for those who have accounts may take about so much, in bytes: while it takes more no messages are taken.
    pub hold_bytes: u64,
    /// Nothing that this process promises and votes for survives it: what would be written is not even asked for.
    pub forgets: bool,
    /// Nothing is delivered of what is ordered while this process is no member, as groups of clients need it. Otherwise
    /// it is delivered late: a replicated state machine misses nothing.
    pub only_as_member: bool,
    /// Whoever takes deliveries is told up to where there are none ([`Delivery::Passed`](rota_core::contract::Delivery::Passed)), as a merge
    /// of several rings needs.
    pub feeds_merge: bool,
    /// Values are multicast (Ring Paxos); otherwise they go along the ring (U-Ring Paxos). The same on all nodes.
    pub multicast: Option<Multicast>,
    /// The same on all nodes, for ever.
    pub arbiter: Arbiter,
    /// How long things take before they count as broken.
    pub patience: Timeouts,
}

/// How values travel that are multicast.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Multicast {
    /// Datagrams of other clusters are dropped.
    pub cluster: u32,
    /// The largest datagram, in bytes of UDP payload.
    pub datagram_bytes: usize,
    /// How many of them, at the end, are for whoever owns the sockets: a checksum, or a seal.
    pub seal_bytes: usize,
    /// What the slowest link takes in; all keep to their shares of it. Without it they slow down by losses only.
    pub capacity: Option<Capacity>,
}

impl Multicast {
    /// Whether its datagrams can carry values of this size.
    pub(super) fn takes(&self, frame_bytes: usize) -> bool {
        let around = HEADER_BYTES + self.seal_bytes;
        let part = self.datagram_bytes.saturating_sub(around);
        part > 0 && frame_bytes.div_ceil(part) <= usize::from(u16::MAX)
    }
}

/// Who says which configuration follows when several are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Arbiter {
    /// The acceptors of the configuration before.
    #[default]
    Embedded,
    /// A service that the driver asks ([`Output::Arbitrate`](rota_core::contract::Output::Arbitrate)). All nodes ask the
    /// same one.
    Service,
}

/// The least time that a disk gets: those that are well may take a second for what a busy one has gathered.
const LEAST_DISK: u64 = 3_000_000_000;

/// Time-outs, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeouts {
    /// Nothing heard of the predecessor for so long: it is suspected.
    pub silence: u64,
    /// The link to the predecessor is down for so long: it is suspected.
    pub link: u64,
    /// So often the successor hears something.
    pub heartbeat: u64,
    /// So often who is not in the ring asks to be taken in; also what waits for an answer that long asks
    /// again.
    pub retry: u64,
    /// A disk that answers nothing for so long is given up, until it does: nobody waits for its votes.
    pub disk: u64,
}

impl Timeouts {
    /// From the time-outs that the other engines have.
    pub const fn derive(timers: &Timers) -> Self {
        Self {
            silence: timers.token_loss,
            link: timers.token_loss / 6,
            heartbeat: timers.token_loss / 6,
            retry: timers.token_loss / 3,
            disk: if timers.token_loss > LEAST_DISK / 10 {
                10 * timers.token_loss
            } else {
                LEAST_DISK
            },
        }
    }
}

impl URingConfig {
    /// The defaults for these nodes, which all vote.
    pub fn new(ring: Vec<NodeId>, timers: &Timers) -> Self {
        Self {
            acceptors: ring.clone(),
            ring,
            frame_bytes: 33_000,
            value_per_message: false,
            message_bytes: 1 << 20,
            backlog_bytes: 4 << 20,
            window_bytes: 1 << 20,
            batch_bytes: 66_000,
            disk_bytes: 16 << 20,
            word_bytes: 128 << 10,
            waiting_bytes: 8 << 20,
            kept_instances: 15_000,
            hold_bytes: 1 << 30,
            forgets: false,
            only_as_member: false,
            feeds_merge: false,
            multicast: None,
            arbiter: Arbiter::Embedded,
            patience: Timeouts::derive(timers),
        }
    }
}

//! The settings of the engine.

use alloc::vec::Vec;

use rota_core::contract::NodeId;
use rota_core::shares::Capacity;
use rota_core::timing::Timers;
use rota_core::wire::HEADER_BYTES;

/// Everything that is set from outside. All nodes have the same `ring`, `acceptors` and `observers`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct URingConfig {
    /// All nodes, in the order of the ring.
    pub ring: Vec<NodeId>,
    /// The nodes of the ring that vote when the cluster is founded.
    pub acceptors: Vec<NodeId>,
    /// The nodes of the ring's list that are never in the ring, and only learn: none of the acceptors.
    pub observers: Vec<NodeId>,
    /// Own values.
    pub proposer: ProposerConfig,
    /// The log, and the instances that are kept.
    pub acceptor: AcceptorConfig,
    /// Deliveries.
    pub learner: LearnerConfig,
    /// The size at which a message to the successor ends, in bytes. One value may be larger.
    pub batch_bytes: usize,
    /// The size at which other messages with values end, in bytes. One value may be larger.
    pub word_bytes: usize,
    /// Values are multicast (Ring Paxos); otherwise they go along the ring (U-Ring Paxos). The same on all nodes.
    pub multicast: Option<Multicast>,
    /// The arbiter, the same on all nodes, for ever.
    pub arbiter: Arbiter,
    /// The time-outs after which things count as broken.
    pub patience: Timeouts,
}

/// The settings of a proposer: its own values, and the messages in them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProposerConfig {
    /// The largest own value, in bytes: several messages, or a part of one. Values of 32 KiB whole are what the papers
    /// measure, and a message that is not cut need not be put together.
    pub frame_bytes: usize,
    /// Every message is a value of its own, or several, however small it is.
    pub value_per_message: bool,
    /// The largest message, in bytes.
    pub message_bytes: usize,
    /// The most bytes of submitted messages that wait to leave.
    pub backlog_bytes: usize,
    /// The most bytes of own values that were not delivered here. Every process keeps up to twice as much, and one
    /// value, for each other one.
    pub window_bytes: usize,
}

/// The settings of an acceptor: its log, and the instances that it keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AcceptorConfig {
    /// Promises and votes do not survive this process: it writes no records.
    pub forgets: bool,
    /// The most bytes that may be under way at the disk; fewer if the disk is slow. A process with more than that
    /// waiting takes no proposals, and so slows the ring.
    pub disk_bytes: usize,
    /// The number of decided instances that are kept for processes that are behind.
    pub kept_instances: u64,
    /// The most bytes that are kept for partitions with accounts, about: the engine takes no messages while it keeps
    /// more.
    pub hold_bytes: u64,
    /// The most bytes of decided values that are kept in memory, about: the log has the others, and they are read back
    /// for those who ask. An acceptor that writes nothing keeps all.
    pub memory_bytes: usize,
}

/// The settings of a learner: what the application is handed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LearnerConfig {
    /// The most bytes of learnt values that wait for the application, about.
    pub waiting_bytes: usize,
    /// Values that are ordered while this process is no member are not delivered, as groups of clients need it.
    /// Otherwise they are delivered late: a replicated state machine misses nothing.
    pub only_as_member: bool,
    /// The application is told up to which instance everything was delivered
    /// ([`Delivery::Passed`](rota_core::contract::Delivery::Passed)), as a merge of several rings needs.
    pub feeds_merge: bool,
}

/// The settings of values that are multicast.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Multicast {
    /// Datagrams of other clusters are dropped.
    pub cluster: u32,
    /// The largest datagram, in bytes of UDP payload.
    pub datagram_bytes: usize,
    /// The bytes at the end of a datagram that belong to the owner of the sockets: a checksum, or a seal.
    pub seal_bytes: usize,
    /// The capacity of the slowest link; all senders keep to their shares of it. Without it they slow down by losses
    /// only.
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

/// The authority that chooses the next configuration when several are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Arbiter {
    /// The acceptors of the configuration before.
    #[default]
    Embedded,
    /// A service that the driver asks ([`Output::Arbitrate`](rota_core::contract::Output::Arbitrate)). All nodes ask the
    /// same one.
    Service,
}

/// The least time that a disk gets: a healthy disk may take a second for requests that have gathered while it was busy.
const LEAST_DISK: u64 = 3_000_000_000;

/// Time-outs, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeouts {
    /// A predecessor that is silent for this time is suspected.
    pub silence: u64,
    /// A predecessor whose link is down for this time is suspected.
    pub link: u64,
    /// The time after which the successor hears something.
    pub heartbeat: u64,
    /// The time after which a process outside the ring asks again to be taken in, and after which a question without an
    /// answer is asked again.
    pub retry: u64,
    /// A disk that answers nothing for this time is given up, until it does: nobody waits for its votes.
    pub disk: u64,
}

impl Timeouts {
    /// Derives them from the time-outs of the other engines.
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
            observers: Vec::new(),
            proposer: ProposerConfig {
                frame_bytes: 33_000,
                value_per_message: false,
                message_bytes: 1 << 20,
                backlog_bytes: 4 << 20,
                window_bytes: 1 << 20,
            },
            acceptor: AcceptorConfig {
                forgets: false,
                disk_bytes: 16 << 20,
                kept_instances: 15_000,
                hold_bytes: 1 << 30,
                memory_bytes: 64 << 20,
            },
            learner: LearnerConfig {
                waiting_bytes: 8 << 20,
                only_as_member: false,
                feeds_merge: false,
            },
            batch_bytes: 66_000,
            word_bytes: 128 << 10,
            multicast: None,
            arbiter: Arbiter::Embedded,
            patience: Timeouts::derive(timers),
        }
    }
}

//! Names and numbers shared by all engines, and the [`Engine`] trait itself.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::{Delivery, Histogram, Input, Output, PeerCounters, TimerReason};

/// A node of the cluster, as configured. Never 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(u16);

impl NodeId {
    /// A node id; `None` for 0, which is reserved for "nobody" on the wire.
    pub const fn new(id: u16) -> Option<Self> {
        if id == 0 { None } else { Some(Self(id)) }
    }

    /// The number as configured.
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Whether more than half of `nodes`, which are distinct, are among `members`.
pub fn has_majority(nodes: &[NodeId], members: &[Process]) -> bool {
    let is_here = |node: &&NodeId| members.iter().any(|member| member.node == **node);
    2 * nodes.iter().filter(is_here).count() > nodes.len()
}

/// One life of a node: a number drawn anew at every start of the process, below 2⁵³.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Incarnation(pub u64);

impl Incarnation {
    /// The largest incarnation: every JSON reader keeps numbers below 2⁵³ exactly.
    pub const MAX: u64 = (1 << 53) - 1;
}

/// A process: a node in one of its lives. A restarted node is a new process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Process {
    /// The node.
    pub node: NodeId,
    /// The life of the node.
    pub incarnation: Incarnation,
}

/// The identity of a ring: compared by full equality, never by its number alone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RingId {
    /// Grows with every ring that its members have seen.
    pub ring_seq: u64,
    /// The representative: the member with the smallest id, which created the ring.
    pub rep: NodeId,
    /// The representative's incarnation.
    pub incarnation: Incarnation,
}

impl fmt::Display for RingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.ring_seq, self.rep, self.incarnation.0)
    }
}

/// A position in the order of a ring: dense, starting at 1.
pub type Seq = u64;

/// Nanoseconds on a monotonic clock whose zero only the driver knows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time(pub u64);

impl Time {
    /// This time plus `nanos` nanoseconds.
    pub const fn after(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }

    /// Nanoseconds since `earlier`, 0 if that is later.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// The delivery guarantee that a message asks for (report §II, thesis §2.3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Service {
    /// Delivered once, on receipt, in no particular order.
    Reliable,
    /// In the order of its sender; may pass gaps left by other senders.
    Fifo,
    /// Served as [`Service::Agreed`], which is stronger and costs the same.
    Causal,
    /// In the one total order.
    Agreed,
    /// In the one total order, once every member of the configuration is known to have it.
    Safe,
}

impl Service {
    /// All of them, from the weakest to the strongest.
    pub const ALL: [Self; 5] = [
        Self::Reliable,
        Self::Fifo,
        Self::Causal,
        Self::Agreed,
        Self::Safe,
    ];

    /// The name used in traces and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reliable => "reliable",
            Self::Fifo => "fifo",
            Self::Causal => "causal",
            Self::Agreed => "agreed",
            Self::Safe => "safe",
        }
    }
}

/// The socket of a node that a datagram belongs to. Each class has a socket of its own, so that the
/// driver can read them in the order the engine asks for (report §III-E).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Class {
    /// Payload-carrying multicasts.
    Data,
    /// The token and the other control messages between nodes.
    Token,
}

impl Class {
    /// The other class.
    pub const fn other(self) -> Self {
        match self {
            Self::Data => Self::Token,
            Self::Token => Self::Data,
        }
    }
}

/// Tags the traffic of an engine that another engine owns (FastCast beside a membership ring).
/// The outermost engine uses 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Channel(pub u8);

/// One establishment of a reliable link; a message of an old session never arrives in a new one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Session(pub u64);

/// Names one request to make records durable; drawn by the engine, ascending.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PersistId(pub u64);

/// Names a durable log of the engine (ring ids, an acceptor's votes).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LogId(pub u16);

/// The reason for which a submission was not taken. Nothing of the submission was kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SubmitError {
    /// The backlog is full: wait until some of it has been sent, then submit again.
    Full,
    /// Larger than the largest message, in bytes: split it.
    TooLarge {
        /// The limit that was passed.
        limit: usize,
    },
    /// The engine does not offer this service level, or orders nothing of this node: it is not on the ring, or only
    /// observes it.
    Unsupported,
    /// The node has left, or was told to stop.
    Stopped,
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("the backlog is full; submit again when some of it was sent"),
            Self::TooLarge { limit } => write!(f, "a message may have at most {limit} bytes"),
            Self::Unsupported => f.write_str(
                "this engine does not offer that service level, or this node only observes",
            ),
            Self::Stopped => f.write_str("the node has stopped"),
        }
    }
}

impl core::error::Error for SubmitError {}

/// What an engine shows of itself: a line of text, and counters by name. For people and metrics,
/// never for decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The present activity ("forming: waiting for 3, 4", "operational").
    pub state: String,
    /// Monotone counters, by their metric names.
    pub counters: BTreeMap<&'static str, u64>,
    /// The time for which the token was away, for each rotation in which no member may have held it for want of
    /// anything to do.
    pub rotation: Histogram,
    /// The counts of the packets of each other member.
    pub peers: BTreeMap<NodeId, PeerCounters>,
    /// Packets that wait for the token.
    pub waiting: usize,
    /// Notes for an operator of matters that no counter says, a sentence each.
    pub notes: Vec<String>,
}

/// A protocol that turns submissions into one ordered stream plus configuration changes.
/// The module page has the law for callers.
pub trait Engine {
    /// Tells the engine what happened at `now`.
    fn handle(&mut self, now: Time, input: Input);

    /// Takes a message for ordering and returns its counter: the message's id is this process
    /// and that counter. The payload is copied.
    fn submit(&mut self, now: Time, service: Service, payload: &[u8]) -> Result<u64, SubmitError>;

    /// Has the engine order that all positions before `next` carry nothing, except positions that a value was proposed
    /// for (rate leveling). A repeated call changes nothing. Engines that feed no merge do not offer it.
    fn submit_skips_to(&mut self, now: Time, next: Seq) -> Result<(), SubmitError> {
        let _ = (now, next);
        Err(SubmitError::Unsupported)
    }

    /// Leaves, as the application wants it: tells the other members, so that they need not find out. After that the
    /// engine does nothing any more.
    fn leave(&mut self, now: Time) {
        let _ = now;
    }

    /// The layer above has deliveries that its application does not take (`hangs`), or takes again. Where other members
    /// would wait for this process, the engine leaves them, and comes back when the application takes deliveries again.
    fn application_hangs(&mut self, now: Time, hangs: bool) {
        let _ = (now, hangs);
    }

    /// The layer above waits for some member and does not know why: the engine finds out anew which members are there,
    /// and which of them hear each other.
    fn look_again(&mut self, now: Time) {
        let _ = now;
    }

    /// The lists of nodes that count in primaries, as the members of that ring's configuration say or have met them: a
    /// primary needs a majority of each of these lists. `None` if the engine does not know; an empty list, of which
    /// nobody has a majority, stands for lists that the engine could not be told.
    fn electorates(&self, ring: RingId) -> Option<Vec<Vec<NodeId>>> {
        let _ = ring;
        None
    }

    /// The configuration of that ring is primary, and carries on the order of the primaries before it.
    fn carries_on(&mut self, now: Time, ring: RingId) {
        let _ = (now, ring);
    }

    /// The next thing to do in the world, or `None` when everything has been handed out. Asking says
    /// that the previous output has left.
    fn poll_output(&mut self) -> Option<Output>;

    /// The next delivery, if one is due. Call it only while the application has room.
    fn poll_delivery(&mut self) -> Option<Delivery>;

    /// The class to read first now.
    fn reading(&self) -> Class;

    /// The time at which to hand in [`Input::Timer`] next, and its purpose.
    fn next_timer(&self) -> Option<(Time, TimerReason)>;

    /// Whether the engine sends over reliable links. An engine that does not costs its driver none: nothing listens,
    /// and there are no `Link…` inputs. The answer is always the same.
    fn wants_links(&self) -> bool {
        false
    }

    /// State and counters, for people.
    fn status(&self) -> Status;
}

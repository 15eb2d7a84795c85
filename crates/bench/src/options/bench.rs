//! Options of `rota bench`.

use std::time::Duration;

use rota_core::EngineName;

use super::{
    Event, LinkShares, Load, ManyRings, Mode, Place, Senders, ServiceName, StorageName, Subject,
};

/// What is sent, and by whom.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// Clean payload of a message, in bytes; at least 16.
    pub size: usize,
    /// The load of all senders together.
    pub load: Load,
    /// A load with a rate comes at random times (a Poisson process) instead of evenly.
    pub is_random: bool,
    /// The nodes that send.
    pub senders: Senders,
    /// The delivery guarantee asked for.
    pub service: ServiceName,
    /// The processor time that each submission wastes: it shows whether a comparison finds it.
    pub waste: Duration,
}

/// How long the load runs before it is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarmUp {
    /// So long.
    For(Duration),
    /// As long as a run before this one took until what it delivered had settled.
    Found,
}

/// What is measured, and for how long.
#[derive(Clone, Debug)]
pub struct Times {
    /// The length of the measured time.
    pub duration: Duration,
    /// The time for which the load runs before that.
    pub warm_up: WarmUp,
    /// Measure the first message after a silence instead, in this number of trials.
    pub first_message: Option<u32>,
    /// Report what was delivered over time, in slots of this length.
    pub series: Option<Duration>,
}

/// What disturbs the nodes.
#[derive(Clone, Debug, Default)]
pub struct Trouble {
    /// Share of received data packets that each node drops, 0 to 1.
    pub loss: f64,
    /// Drop only packets of the node that is this number of places before the dropping node (report §IV-A4).
    pub loss_distance: Option<usize>,
    /// Every datagram arrives this much later.
    pub delay: Duration,
    /// What happens while the load runs.
    pub events: Vec<Event>,
}

/// Settings of a ring that override the engine's.
#[derive(Clone, Copy, Debug, Default)]
pub struct RingLimits {
    /// New packets a node may send in one visit of the token.
    pub personal_window: Option<u32>,
    /// How many of them may leave after the token.
    pub accelerated_window: Option<u32>,
    /// Packets all nodes together may send in one rotation.
    pub global_window: Option<u32>,
    /// The method by which the priority of the token is raised again: 1 or 2 (thesis §3.1.4).
    pub priority_method: Option<u8>,
    /// The largest datagram, in bytes of UDP payload.
    pub datagram_bytes: Option<usize>,
}

/// Settings of engines in which acceptors vote.
#[derive(Clone, Debug)]
pub struct Votes {
    /// The step that votes wait for.
    pub storage: StorageName,
    /// The nodes that vote, by number; empty: as many as by default.
    pub acceptors: Vec<u16>,
    /// Every message has an instance of its own.
    pub instance_per_message: bool,
}

/// Options of `rota bench`.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    /// The place where the nodes run.
    pub place: Place,
    /// The protocol.
    pub engine: Subject,
    /// The way that the load takes.
    pub mode: Mode,
    /// What is sent, and by whom.
    pub traffic: Traffic,
    /// What is measured, and for how long.
    pub times: Times,
    /// What disturbs the nodes.
    pub trouble: Trouble,
    /// Seal datagrams, with a key made for the run.
    pub sealed: bool,
    /// Settings of a ring.
    pub ring: RingLimits,
    /// The capacity that FastCast's senders assume of links.
    pub shares: LinkShares,
    /// Settings of engines in which acceptors vote.
    pub votes: Votes,
    /// The settings of the engine `multi-ring`.
    pub many: ManyRings,
    /// A TCP stream from node 1 to node 2 uses the same links.
    pub beside_tcp: bool,
    /// The daemons of a running cluster, one client each, instead of nodes of the benchmark's own; with their addresses as
    /// clients write them.
    pub connect: Vec<String>,
    /// Everything outside the processors runs so many times slower: see `library/slow.rs`.
    pub slow: u32,
}

impl Default for BenchOptions {
    fn default() -> Self {
        Self {
            place: Place::default(),
            engine: Subject::Engine(EngineName::AcceleratedRing),
            mode: Mode::Library,
            traffic: Traffic {
                size: 1350,
                load: Load::Max,
                is_random: false,
                senders: Senders::All,
                service: ServiceName::Agreed,
                waste: Duration::ZERO,
            },
            times: Times {
                duration: Duration::from_secs(5),
                warm_up: WarmUp::For(Duration::from_secs(1)),
                first_message: None,
                series: None,
            },
            trouble: Trouble::default(),
            sealed: false,
            ring: RingLimits::default(),
            shares: LinkShares::Configured,
            votes: Votes {
                storage: StorageName::Memory,
                acceptors: Vec::new(),
                instance_per_message: false,
            },
            many: ManyRings::default(),
            beside_tcp: false,
            connect: Vec::new(),
            slow: 1,
        }
    }
}

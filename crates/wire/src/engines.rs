//! The engines, as this world needs to know them.

use rota_core::contract::{Class, Engine, Incarnation, NodeId, Process};
use rota_core::primary::Rule;
use rota_core::shares::Capacity;
use rota_core::timing::{Timers, Timing};
use rota_paxos::uring::{Multicast, URing, URingConfig};
use rota_ring::{Protocol, RingConfig, RingEngine};
use rota_views::fastcast::{FastCast, FastConfig};
use rota_views::lcr::{self, Lcr};
use rota_views::{Backlog, DataPath, ViewEngine, ring_beside};

use crate::setup::{EnginePlan, RingPlan, Setup};
use crate::wire::{ETHERNET, IP, UDP};

/// Bytes of messages that wait to be sent, at a ring.
const BACKLOG: usize = 4 << 20;
/// The same where an application submits as much as is taken.
const FULL_BACKLOG: usize = 256 << 10;

/// What an engine has counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub sent: u64,
    pub resent: u64,
    pub visits: u64,
    pub tokens_resent: u64,
}

/// An engine that this world can drive.
pub trait Simulated: Engine {
    /// Packets that wait for the token; 0 where there is none.
    fn backlog(&self) -> usize {
        0
    }

    /// Its counts, where it has these.
    fn counts(&self) -> Counts {
        Counts::default()
    }
}

impl Simulated for RingEngine {
    fn backlog(&self) -> usize {
        Self::backlog(self)
    }

    fn counts(&self) -> Counts {
        let counters = self.counters();
        Counts {
            sent: counters.packets_sent,
            resent: counters.retransmissions,
            visits: counters.token_rotations,
            tokens_resent: counters.token_retransmissions,
        }
    }
}

impl<P: DataPath> Simulated for ViewEngine<P> {}
impl Simulated for URing {}

/// Something to be done with engines of one type.
pub trait Visitor {
    type Result;

    fn visit<E: Simulated>(self, setup: &Setup, engines: Vec<E>) -> Self::Result;
}

/// The process of a node.
pub const fn process(node: usize) -> Process {
    match NodeId::new(node as u16 + 1) {
        Some(id) => Process {
            node: id,
            incarnation: Incarnation(1000 + node as u64),
        },
        None => panic!("more nodes than there are numbers"),
    }
}

/// Makes the engines of a setup.
pub fn build<V: Visitor>(setup: &Setup, visitor: V) -> V::Result {
    assert!(setup.nodes > 0, "a setup has nodes");
    let each = || 0..setup.nodes;
    match &setup.engine {
        EnginePlan::Ring(plan) => {
            let engines = each().map(|_| ring(ring_config(setup, plan)));
            visitor.visit(setup, engines.collect())
        }
        EnginePlan::FastCast {
            datagram_bytes,
            shares,
        } => {
            let engines = each().map(|_| fastcast(setup, *datagram_bytes, *shares));
            visitor.visit(setup, engines.collect())
        }
        EnginePlan::Lcr => visitor.visit(setup, each().map(|_| lcr(setup)).collect()),
        EnginePlan::Paxos {
            acceptors,
            multicast,
        } => {
            let engines = each().map(|_| paxos(setup, *acceptors, *multicast));
            visitor.visit(setup, engines.collect())
        }
    }
}

fn ring(config: RingConfig) -> RingEngine {
    match RingEngine::new(config) {
        Ok(engine) => engine,
        Err(error) => panic!("a setup has a ring that does not work: {error}"),
    }
}

fn members(setup: &Setup) -> Vec<NodeId> {
    (0..setup.nodes).map(|node| process(node).node).collect()
}

/// A ring whose windows do what the papers mean by them: the global window holds all personal ones, the safe line may
/// be four rotations behind, and the token never rests.
fn ring_config(setup: &Setup, plan: &RingPlan) -> RingConfig {
    let mut config = RingConfig::new(1, members(setup));
    if plan.protocol == Protocol::Original {
        config = config.original();
    } else {
        config.windows.accelerated = plan.accelerated_window.min(plan.personal_window);
    }
    config.windows.personal = plan.personal_window;
    config.windows.global = plan.personal_window * setup.nodes as u32;
    config.windows.outstanding = (5 * config.windows.global).max(1600);
    config.priority_method = plan.method;
    config.datagram_bytes = plan.datagram_bytes;
    config.message_bytes = setup.message_bytes.max(1 << 16);
    config.backlog_bytes = BACKLOG.max(2 * config.message_bytes);
    config.timers.token_hold = 0;
    config
}

/// The settings of a node, with the defaults of a ring.
fn node_ring(setup: &Setup, datagram_bytes: usize) -> RingConfig {
    let mut config = RingConfig::new(1, members(setup));
    config.datagram_bytes = datagram_bytes;
    config
}

fn views<P: DataPath>(
    setup: &Setup,
    path: P,
    frame_bytes: usize,
    node: &RingConfig,
) -> ViewEngine<P> {
    let message = setup.message_bytes.max(1 << 16);
    let backlog = Backlog::new(frame_bytes, message, FULL_BACKLOG.max(2 * message));
    let rule = Rule::StaticMajority {
        configured: members(setup),
    };
    ViewEngine::new(ring(ring_beside(node)), rule, path, backlog)
}

/// As a node configures it (`rota_node::NodeEngine`).
fn fastcast(setup: &Setup, datagram_bytes: usize, shares: bool) -> ViewEngine<FastCast> {
    let node = node_ring(setup, datagram_bytes);
    let mut config = FastConfig::beside(&node).shared_by(setup.nodes);
    config.capacity = shares.then(|| capacity(setup, datagram_bytes));
    if setup.nodes > 2 {
        config.control = Class::Data;
    }
    let frame_bytes = config.frame_bytes();
    views(setup, FastCast::new(config), frame_bytes, &node)
}

/// The payload of datagrams that a link takes in.
fn capacity(setup: &Setup, datagram_bytes: usize) -> Capacity {
    Capacity::of_link(setup.wire.rate, datagram_bytes, ETHERNET + IP + UDP)
}

fn lcr(setup: &Setup) -> ViewEngine<Lcr> {
    let node = node_ring(setup, RingConfig::DEFAULT_DATAGRAM_BYTES);
    let config = lcr::Config::shared_by(setup.nodes);
    let frame_bytes = config.frame_bytes;
    views(setup, Lcr::new(config), frame_bytes, &node)
}

/// A ring of U-Ring Paxos, as a node configures it.
pub fn uring_config(
    members: Vec<NodeId>,
    timing: Timing,
    message_bytes: usize,
    votes: bool,
) -> URingConfig {
    let timers = Timers::derive(timing, members.len());
    let mut config = URingConfig::new(members, &timers);
    config.acceptor.forgets = !votes;
    let proposer = &mut config.proposer;
    proposer.message_bytes = message_bytes.max(1 << 16);
    proposer.backlog_bytes = FULL_BACKLOG.max(2 * proposer.message_bytes);
    config
}

fn paxos(setup: &Setup, acceptors: usize, multicast: Option<usize>) -> URing {
    let votes = setup.disk.votes;
    let mut config = uring_config(members(setup), Timing::Default, setup.message_bytes, votes);
    config.acceptors.truncate(acceptors);
    config.multicast = multicast.map(|datagram_bytes| Multicast {
        cluster: 1,
        datagram_bytes,
        seal_bytes: rota_core::wire::SEAL_BYTES,
        capacity: Some(capacity(setup, datagram_bytes)),
    });
    URing::new(config)
}

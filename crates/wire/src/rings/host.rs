//! A machine with several rings, driven in one thread, and the merge above them.

use rota_core::contract::{Checked, Engine, Input, NodeId, Process};
use rota_multiring::{Constants, Leveled, Rank, RingOf, RingsLearner};
use rota_paxos::uring::URing;

use super::judge::Orders;
use super::setup::{OneRing, RingsSetup};
use crate::agenda::NEVER;
use crate::disk::Disk;
use crate::engines;
use crate::queue::Queue;
use crate::source::Source;

/// The engine of one of several rings.
pub type RingEngine = Checked<Leveled<URing>>;

/// A ring at a host.
#[derive(Debug)]
pub struct Lane {
    /// Its place in the setup.
    pub ring: usize,
    pub rank: Rank,
    pub engine: RingEngine,
    /// What the kernel has for the engine, by time.
    pub mail: Queue<Input>,
    /// Messages of links that were read since a timer was due.
    pub reads: u32,
    pub source: Source,
    pub disk: Disk,
    /// A configuration with all hosts of the ring was delivered.
    pub is_formed: bool,
    /// The merge has no room for its deliveries.
    pub is_blocked: bool,
    /// Its application may have something to submit.
    pub offers: bool,
    /// It has something to do then.
    pub due: u64,
}

impl Lane {
    fn new(setup: &RingsSetup, ring: usize, host: usize) -> Self {
        let of = &setup.rings[ring];
        let engine = Leveled::new(
            engine(of, setup.disk.votes),
            RingOf {
                constants: Constants::new(of.rank),
                mode: of.mode,
            },
        );
        Self {
            ring,
            rank: of.rank,
            engine: Checked::new(engine),
            mail: Queue::default(),
            reads: 0,
            source: Source::silent(setup.seed.wrapping_add((ring as u64) << 16), host),
            disk: Disk::default(),
            is_formed: false,
            is_blocked: false,
            offers: false,
            due: 0,
        }
    }

    /// Something for the engine, at a time.
    pub fn post(&mut self, at: u64, input: Input) {
        self.mail.put(at, input);
        self.due = self.due.min(at);
    }

    /// Looks when it has something to do.
    pub fn look(&mut self, now: u64) {
        let timer = self.engine.next_timer().map_or(NEVER, |(due, _)| due.0);
        let source = self.source.next(now, 0, usize::MAX);
        self.due = self.mail.next().min(timer).min(source);
    }
}

/// See the module page.
#[derive(Debug)]
pub struct Host {
    pub process: Process,
    /// The rings that it is on.
    pub lanes: Vec<Lane>,
    pub learner: RingsLearner,
    /// The order in which it delivered each ring, and all of them.
    pub orders: Orders,
    /// The time at which its thread is done with what it does.
    pub free: u64,
    /// The time for which its processor has worked.
    pub worked: u64,
}

impl Host {
    pub fn new(setup: &RingsSetup, at: usize) -> Self {
        let rings = setup.rings.iter().enumerate();
        let rings = rings.filter(|(_, ring)| ring.hosts.contains(&at));
        let lanes = rings.map(|(ring, _)| Lane::new(setup, ring, at));
        let wanted = setup.subscriptions(at);
        let wanted = wanted.map(|ring| Constants::new(setup.rings[ring].rank));
        Self {
            process: engines::process(at),
            lanes: lanes.collect(),
            learner: RingsLearner::new(wanted, None),
            orders: Orders::new(setup, at),
            free: 0,
            worked: 0,
        }
    }

    /// The place of a ring among those that it is on.
    pub fn lane(&self, ring: usize) -> Option<usize> {
        self.lanes
            .binary_search_by_key(&ring, |lane| lane.ring)
            .ok()
    }
}

/// The engine of a ring, as a node configures it (`NodeConfig::uring_config`).
fn engine(of: &OneRing, votes: bool) -> URing {
    let nodes = |hosts: &[usize]| -> Vec<NodeId> {
        let each = hosts.iter().map(|host| engines::process(*host).node);
        each.collect()
    };
    let mut config = engines::uring_config(nodes(&of.hosts), of.timing, of.message_bytes, votes);
    config.acceptors = nodes(&of.acceptors);
    config.learner.feeds_merge = true;
    URing::new(config)
}

//! The world: machines, processes and a network in virtual time, all in one thread.
//!
//! A process is driven as `rota-net` drives it, by the law of `rota_core::contract`: its outputs leave
//! one by one and each takes its time, it reads what the engine asks for, and its application takes
//! deliveries when it likes. Between any two outputs it may be killed, stand still or find its socket
//! full.

mod armed;
mod cells;
mod clients;
mod disk;
mod host;
mod links;
mod network;
mod output;
mod payload;
mod queue;
mod rest;
mod tally;
mod trouble;
mod turn;
mod votes;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use rota_check::event::{Event, EventKind};
use rota_core::contract::{Engine, Process, RingId, Time};
use rota_paxos::uring::URing;

pub use cells::{Cells, reached};
pub use tally::{Outcome, Tally};

use crate::groups::Layer;
use crate::observe::{Finding, NoProbe, Observer, Probe, TraceHash};
use crate::plan::{HostPlan, MILLIS, Matrix, Plan};
use crate::rng::Rng;
use cells::CellCounts;
use disk::Disk;
use host::{Alive, Host};
use links::Links;
use network::Network;
pub(crate) use payload::Payloads;
use payload::Pool;
use queue::{Queue, What};
use rest::Phase;
use votes::Votes;

/// Things that happen in one run, at most: beyond, something runs in circles. Sixteen nodes whose links break with each tenth message
/// do a million in a second.
const EVENTS: u64 = 400_000_000;
/// Requests of all clients in one run, at most.
const REQUESTS: u32 = 4000;

/// An engine, as the simulator needs to know it.
pub trait System {
    /// Its type.
    type Engine: Engine;

    /// An engine for the process that is starting.
    fn engine(&self, plan: &Plan, me: Process, life: u32) -> Self::Engine;

    /// The ring in which it numbers messages now, where it can be asked.
    fn ring(&self, engine: &Self::Engine) -> Option<RingId> {
        let _ = engine;
        None
    }

    /// The ring on which it is recovering now, where it can be asked.
    fn forming(&self, engine: &Self::Engine) -> Option<RingId> {
        let _ = engine;
        None
    }

    /// The configuration whose members it has told all that they lack, with their number, while they change to a view.
    /// The message has left, or leaves with the next outputs.
    fn said(&self, engine: &Self::Engine) -> Option<(RingId, usize)> {
        let _ = engine;
        None
    }

    /// The time until which it leaves some other process alone; `None` if it does not, or cannot be asked.
    fn leaves_alone_until(&self, engine: &Self::Engine) -> Option<Time> {
        let _ = engine;
        None
    }

    /// The state of its membership, where it has one and can be asked.
    fn state(&self, engine: &Self::Engine) -> Option<&'static str> {
        let _ = engine;
        None
    }

    /// Whether all of its own messages are delivered, where its own application does not tell: a process never gets the
    /// messages that are delivered while it is excluded.
    fn is_settled(&self, engine: &Self::Engine) -> Option<bool> {
        let _ = engine;
        None
    }

    /// The number of times that it had to keep messages that others may have delivered, without knowing whether anybody
    /// did.
    fn outcomes(&self, engine: &Self::Engine) -> u64 {
        let _ = engine;
        0
    }

    /// Messages that others may count as delivered here though the application has not got them.
    fn undelivered(&self, engine: &Self::Engine) -> Vec<(Process, RangeInclusive<u64>)> {
        let _ = engine;
        Vec::new()
    }

    /// Whether it has been in a view, where a view is what it would forget with its life.
    fn remembers(&self, engine: &Self::Engine) -> bool {
        let _ = engine;
        true
    }

    /// The engine, if it is one that votes.
    fn voting<'e>(&self, engine: &'e Self::Engine) -> Option<&'e URing> {
        let _ = engine;
        None
    }

    /// The groups over it, if it has any, to be driven.
    fn layer<'e>(&self, engine: &'e mut Self::Engine) -> Option<&'e mut dyn Layer> {
        let _ = engine;
        None
    }

    /// The groups over it, if it has any, to be looked at.
    fn groups<'e>(&self, engine: &'e Self::Engine) -> Option<&'e dyn Layer> {
        let _ = engine;
        None
    }
}

/// A plan, being run.
pub struct World<'a, S: System> {
    plan: &'a Plan,
    system: &'a S,
    now: u64,
    queue: Queue,
    hosts: Vec<Host<S::Engine>>,
    network: Network,
    /// The links, where engines use them.
    links: Option<Links>,
    pool: Pool,
    payloads: Payloads,
    /// The messages that clients have sent.
    posts: Payloads,
    observers: Vec<&'a mut dyn Observer>,
    probe: Box<dyn Probe<S::Engine> + 'a>,
    hash: TraceHash,
    rings: BTreeSet<RingId>,
    tally: Tally,
    cells: CellCounts,
    phase: Phase,
    /// The time for which some process still left another alone when the world healed.
    left_alone: u64,
    /// The number of members that had been given up as deaf by then.
    deaf: u64,
    finding: Option<Finding>,
    /// Faults that wait for a ring to be installed.
    armed: Vec<u32>,
    /// Snipes that have begun, each with the links that it has cut.
    sniped: Vec<(u32, Matrix)>,
    /// The knowledge of votes, where engines vote.
    votes: Votes,
    rng: Rng,
}

impl<'a, S: System> World<'a, S> {
    /// The world of a plan, before anything has happened.
    pub fn new(plan: &'a Plan, system: &'a S) -> Self {
        let hosts: Vec<_> = (0..)
            .zip(&plan.hosts)
            .map(|(at, host)| new_host(plan, at, host))
            .collect();
        let largest = plan.hosts.iter().map(|host| {
            let source = &host.source;
            source.small_bytes.max(source.large_bytes)
        });
        let mut world = Self {
            plan,
            system,
            now: 0,
            queue: Queue::default(),
            network: Network::new(plan.net.clone(), hosts.len(), plan.seed),
            links: plan
                .links
                .map(|links| Links::new(links, hosts.len(), plan.seed)),
            pool: Pool::new(plan.seed, largest.max().unwrap_or(0)),
            payloads: Payloads::default(),
            posts: Payloads::default(),
            hosts,
            observers: Vec::new(),
            probe: Box::new(NoProbe),
            hash: TraceHash::default(),
            rings: BTreeSet::new(),
            tally: Tally::default(),
            cells: CellCounts::default(),
            left_alone: 0,
            deaf: 0,
            phase: Phase::Faulty,
            finding: None,
            armed: Vec::new(),
            sniped: Vec::new(),
            votes: Votes::new(plan.seed),
            rng: Rng::split(plan.seed, 4),
        };
        world.expect();
        world
    }

    /// Adds an observer.
    #[must_use]
    pub fn watched_by(mut self, observer: &'a mut dyn Observer) -> Self {
        self.observers.push(observer);
        self
    }

    /// Adds a probe that looks into the engines.
    #[must_use]
    pub fn probed_by(mut self, probe: impl Probe<S::Engine> + 'a) -> Self {
        self.probe = Box::new(probe);
        self
    }

    /// Runs to the end, or to the first finding.
    pub fn run(mut self) -> Outcome {
        let plan = self.plan;
        for (host, at) in (0..).zip(&plan.hosts) {
            self.queue.push(at.start, What::Start(host));
            self.queue.push(at.start, What::Submit(host));
        }
        for (index, fault) in (0..).zip(&plan.faults) {
            self.queue.push(fault.at, What::Begin(index));
        }
        self.queue.push(plan.horizon, What::Heal);
        if let Some(links) = &mut self.links {
            links.begin(&mut self.queue);
        }
        // A long run has ten events for each millisecond.
        let most = EVENTS.max(plan.horizon / MILLIS * 10);
        while self.finding.is_none() && self.phase != Phase::Over {
            let Some((time, what)) = self.queue.pop() else {
                break;
            };
            self.now = time;
            self.tally.events += 1;
            if self.tally.events > most {
                self.found("progress", "the run does not come to an end");
            }
            self.happen(what);
        }
        self.outcome()
    }

    fn happen(&mut self, what: What) {
        match what {
            What::Wake(host) => self.step(host.into()),
            What::Arrive(slot) => self.arrive(slot),
            What::Unreachable { host, peer } => self.unreachable(host.into(), peer.into()),
            What::Written { host, life } => self.written(host.into(), life),
            What::Reopen { host, life } => self.open_again(host.into(), life),
            What::Serve(question) => self.serve(question),
            What::Link { way, step } => self.link(way, step),
            What::Start(host) => self.start(host.into()),
            What::Submit(host) => self.want_to_submit(host.into()),
            What::Begin(fault) => self.begin(fault),
            What::Beat(fault) => self.beat(fault),
            What::End(fault) => self.end(fault),
            What::Heal => self.heal(),
            What::Look => self.look(),
        }
    }

    /// The time on a host's clock.
    fn local(&self, at: usize) -> Time {
        Time(self.plan.hosts[at].clock.at(self.now))
    }

    /// Sets the time of the next turn of a host's loop; an earlier wake-up no longer counts.
    fn wake(&mut self, at: usize, time: u64) {
        self.queue.wake(at as u16, time);
    }

    /// Wakes a host for something new, if it is not in the middle of something.
    fn wake_now(&mut self, at: usize) {
        let host = &self.hosts[at];
        let idle = host.life.as_ref().is_some_and(|life| !life.busy);
        if idle && host.paused_until <= self.now && self.queue.wakes_at(at as u16) > self.now {
            self.wake(at, self.now);
        }
    }

    /// Tells all observers.
    fn emit(&mut self, process: Process, kind: EventKind) {
        let time = Time(self.now);
        let event = Event {
            time,
            process,
            kind,
        };
        self.hash.event(&event);
        for observer in &mut self.observers {
            if let Err(finding) = observer.observe(&event) {
                self.finding.get_or_insert(finding);
            }
        }
    }

    fn found(&mut self, property: &str, detail: impl Into<String>) {
        self.finding
            .get_or_insert_with(|| Finding::new(property, detail));
    }

    fn outcome(mut self) -> Outcome {
        for at in 0..self.hosts.len() {
            self.count_life(at);
        }
        self.tally.add_network(&self.network.tally);
        if let Some(links) = &self.links {
            self.tally.add_links(&links.tally);
        }
        self.tally.cells = self.cells.named();
        let mut coverage = std::mem::take(&mut self.tally.coverage);
        for observer in &self.observers {
            observer.coverage(&mut coverage);
        }
        self.tally.coverage = coverage;
        self.tally.configurations = self.rings.len() as u64;
        Outcome {
            seed: self.plan.seed,
            virtual_nanos: self.now,
            trace_hash: self.hash.get(),
            tally: self.tally,
            finding: self.finding,
        }
    }
}

fn new_host<E>(plan: &Plan, at: usize, host: &HostPlan) -> Host<E> {
    Host {
        node: plan.ring.members[at],
        disk: Disk::default(),
        life: None,
        lives: 0,
        paused_until: 0,
        stalled_until: 0,
        gone: false,
        retired: false,
        emptied: false,
        reopens: false,
        budget: plan.groups.map_or(host.source.budget, |_| {
            host.source.budget.min(REQUESTS / plan.nodes() as u32)
        }),
        rng: Rng::split(plan.seed, 100 + at as u64),
    }
}

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
mod gate;
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
mod watch;

use std::ops::RangeInclusive;

use rota_check::event::{Event, EventKind};
use rota_core::contract::{Engine, Process, RingId, Time};
use rota_paxos::uring::URing;

pub use cells::{Cells, reached};
pub use tally::{Outcome, Tally};

use crate::groups::Layer;
use crate::observe::{Observer, Probe};
use crate::plan::{HostPlan, MILLIS, Plan};
use crate::rng::Rng;
use armed::Ambush;
use disk::Disk;
use host::Host;
use links::Links;
use network::Network;
pub(crate) use payload::Payloads;
use payload::Pool;
use queue::{Queue, What};
use rest::Phase;
use tally::Counts;
use votes::Votes;
use watch::Watch;

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
    payloads: Payloads,
    /// The messages that clients have sent.
    posts: Payloads,
    watch: Watch<'a, S::Engine>,
    tally: Counts,
    phase: Phase,
    /// The faults that wait for their moment.
    ambush: Ambush,
    /// The knowledge of votes, where engines vote.
    votes: Votes,
    rng: Rng,
}

impl<'a, S: System> World<'a, S> {
    /// The world of a plan, before anything has happened.
    pub fn new(plan: &'a Plan, system: &'a S) -> Self {
        let largest = plan.hosts.iter().map(|host| {
            let source = &host.source;
            source.small_bytes.max(source.large_bytes)
        });
        let pool = Pool::new(plan.seed, largest.max().unwrap_or(0));
        let hosts: Vec<_> = (0..)
            .zip(&plan.hosts)
            .map(|(at, host)| new_host(plan, at, host, pool.clone()))
            .collect();
        Self {
            plan,
            system,
            now: 0,
            queue: Queue::default(),
            network: Network::new(plan.net.clone(), hosts.len(), plan.seed),
            links: plan
                .links
                .map(|links| Links::new(links, hosts.len(), plan.seed)),
            payloads: Payloads::default(),
            posts: Payloads::default(),
            hosts,
            watch: Watch::new(),
            tally: Counts::of(plan),
            phase: Phase::Faulty,
            ambush: Ambush::default(),
            votes: Votes::new(plan.seed),
            rng: Rng::split(plan.seed, 4),
        }
    }

    /// Adds an observer.
    #[must_use]
    pub fn watched_by(mut self, observer: &'a mut dyn Observer) -> Self {
        self.watch.observe_by(observer);
        self
    }

    /// Adds a probe that looks into the engines.
    #[must_use]
    pub fn probed_by(mut self, probe: impl Probe<S::Engine> + 'a) -> Self {
        self.watch.probe_by(probe);
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
        while !self.watch.has_found() && self.phase != Phase::Over {
            let Some((time, what)) = self.queue.pop() else {
                break;
            };
            self.now = time;
            if self.tally.on_event() > most {
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
        self.watch.on_event(&Event {
            time,
            process,
            kind,
        });
    }

    fn found(&mut self, property: &str, detail: impl Into<String>) {
        self.watch.found(property, detail);
    }

    /// Adds up the counts of the process on a host.
    fn count_life(&mut self, at: usize) {
        let Some(life) = &self.hosts[at].life else {
            return;
        };
        let status = life.engine.status();
        let counted = self.tally.add_engine(&status.counters, status.notes);
        if let Err(finding) = counted {
            self.found(&finding.property, finding.detail);
        }
    }

    fn outcome(mut self) -> Outcome {
        for at in 0..self.hosts.len() {
            self.count_life(at);
        }
        self.tally.add_network(&self.network.tally);
        if let Some(links) = &self.links {
            self.tally.add_links(&links.tally);
        }
        let mut tally = self.tally.end();
        self.watch.coverage(&mut tally.coverage);
        let (trace_hash, finding) = self.watch.end();
        Outcome {
            seed: self.plan.seed,
            virtual_nanos: self.now,
            trace_hash,
            tally,
            finding,
        }
    }
}

fn new_host<E>(plan: &Plan, at: usize, host: &HostPlan, pool: Pool) -> Host<E> {
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
        pool,
        rng: Rng::split(plan.seed, 100 + at as u64),
    }
}

//! Memory stays flat over ten thousand reconfigurations: all that three processes and the network
//! between them keep allocated, as the allocator counts it.

use std::alloc::System;
use std::collections::VecDeque;

use bytes::Bytes;
use rota_core::contract::{
    Channel, Class, ConfigurationKind, Delivery, Engine, Incarnation, Input, LogId, LogRecord,
    NodeId, Output, Process, Service, StartState, Target, Time,
};
use rota_ring::RingConfig;
use rota_ring::RingEngine;
use rota_sim::rng::Rng;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes that are allocated.
fn live() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

const NODES: usize = 3;
const DELAY: u64 = 20_000;

struct Flight {
    at: u64,
    from: usize,
    to: usize,
    class: Class,
    bytes: Bytes,
    segment: usize,
}

/// Three processes, and links that are there or not.
struct World {
    now: u64,
    config: RingConfig,
    engines: Vec<RingEngine>,
    disks: Vec<Vec<(LogId, u64, Bytes)>>,
    lives: u64,
    /// The side of the network that each is on.
    sides: [usize; NODES],
    flights: VecDeque<Flight>,
    /// Regular configurations delivered.
    configurations: u64,
}

impl World {
    fn new() -> Self {
        let members: Vec<NodeId> = (1..=NODES as u16).filter_map(NodeId::new).collect();
        let config = RingConfig::new(1, members);
        let engine = || RingEngine::new(config.clone()).expect("a configuration that works");
        let mut world = Self {
            now: 1,
            engines: (0..NODES).map(|_| engine()).collect(),
            config,
            disks: vec![Vec::new(); NODES],
            lives: 0,
            sides: [0; NODES],
            flights: VecDeque::new(),
            configurations: 0,
        };
        for at in 0..NODES {
            world.restart(at);
        }
        world
    }

    /// A process starts in place of the one before.
    fn restart(&mut self, at: usize) {
        self.lives += 1;
        self.flights.retain(|flight| flight.to != at);
        let me = Process {
            node: self.config.members[at],
            incarnation: Incarnation(self.lives),
        };
        self.engines[at] = RingEngine::new(self.config.clone()).expect("it worked before");
        let records = self.disks[at].clone();
        let start = StartState {
            me,
            seed: self.lives,
            records,
            lost_some: false,
        };
        self.engines[at].handle(Time(self.now), Input::Start(start));
        self.drain(at);
    }

    fn drain(&mut self, at: usize) {
        let now = Time(self.now);
        loop {
            if let Some(output) = self.engines[at].poll_output() {
                self.carry_out(at, output);
            } else if let Some(delivery) = self.engines[at].poll_delivery() {
                if let Delivery::Configuration(conf) = delivery
                    && let ConfigurationKind::Regular(_) = conf.kind
                {
                    self.configurations += 1;
                    let payload = [at as u8; 100];
                    for service in [Service::Agreed, Service::Safe] {
                        // When there is no room it is not sent.
                        let _ = self.engines[at].submit(now, service, &payload);
                    }
                }
            } else {
                return;
            }
        }
    }

    fn carry_out(&mut self, at: usize, output: Output) {
        match output {
            Output::Send {
                class, to, burst, ..
            } => {
                let segment = burst.segment;
                let bytes = Bytes::from(burst.bytes);
                for other in (0..NODES).filter(|&other| other != at) {
                    let meant = match to {
                        Target::Others => true,
                        Target::Node(node) => self.config.members[other] == node,
                    };
                    if meant && self.sides[at] == self.sides[other] {
                        self.flights.push_back(Flight {
                            at: self.now + DELAY,
                            from: at,
                            to: other,
                            class,
                            bytes: bytes.clone(),
                            segment,
                        });
                    }
                }
            }
            Output::Persist { id, records } => {
                for record in records {
                    if let LogRecord::Put {
                        log,
                        position,
                        bytes,
                    } = record
                    {
                        self.disks[at].retain(|&(of, place, _)| (of, place) != (log, position));
                        self.disks[at].push((log, position, bytes.into_bytes()));
                    }
                }
                self.engines[at].handle(Time(self.now), Input::Persisted { id });
            }
            _ => {}
        }
    }

    fn step(&mut self) {
        let timer = |at: usize| Some((self.engines[at].next_timer()?.0.0.max(self.now), at));
        let timer = (0..NODES).filter_map(timer).min();
        let arrival = self.flights.front().map(|flight| flight.at);
        match (timer, arrival) {
            (Some((due, at)), arrival) if arrival.is_none_or(|arrival| due < arrival) => {
                self.now = due;
                self.engines[at].handle(Time(self.now), Input::Timer);
                self.drain(at);
            }
            _ => {
                let Some(flight) = self.flights.pop_front() else {
                    return;
                };
                self.now = flight.at;
                if self.sides[flight.from] != self.sides[flight.to] {
                    return;
                }
                let input = Input::Datagrams {
                    class: flight.class,
                    channel: Channel::default(),
                    bytes: flight.bytes,
                    segment: flight.segment,
                };
                self.engines[flight.to].handle(Time(self.now), input);
                self.drain(flight.to);
            }
        }
    }

    /// Runs until all who can reach each other share a ring, and a little longer.
    fn settle(&mut self) {
        for _ in 0..200_000 {
            if self.is_settled() {
                let until = self.now + 10_000_000;
                while self.now < until {
                    self.step();
                }
                if self.is_settled() {
                    return;
                }
            }
            self.step();
        }
        panic!("no agreement");
    }

    fn is_settled(&self) -> bool {
        (0..NODES).all(|at| {
            let Some(ring) = self.engines[at].ordering() else {
                return false;
            };
            let same = |other: &usize| self.sides[*other] == self.sides[at];
            let members = (0..NODES).filter(same).map(|at| self.config.members[at]);
            self.engines[at].phase_name() == "operational"
                && ring.members().iter().map(|member| member.node).eq(members)
        })
    }
}

#[test]
fn memory_stays_flat_over_ten_thousand_reconfigurations() {
    let mut rng = Rng::new(1);
    let before = live();
    let mut world = World::new();
    let mut early = 0;
    let mut changes = 0;
    world.settle();
    while changes < 10_000 {
        if rng.percent(30) {
            let at = rng.index(NODES);
            world.restart(at);
        } else {
            // One of three ways to part three, or none.
            let apart = rng.index(NODES + 1);
            world.sides = std::array::from_fn(|at| usize::from(at == apart));
        }
        world.settle();
        changes += 1;
        if changes == 1000 || changes == 10_000 {
            // The same shape each time: all together, and at rest.
            world.sides = [0; NODES];
            world.settle();
            world.settle();
            let live = live() - before;
            println!(
                "after {changes} changes, {} configurations delivered: {live} bytes",
                world.configurations
            );
            if changes == 1000 {
                early = live;
            } else {
                assert!(world.configurations >= 10_000);
                assert!(
                    live < early + early / 10,
                    "{early} bytes after 1000 changes, {live} after 10000"
                );
            }
        }
    }
}

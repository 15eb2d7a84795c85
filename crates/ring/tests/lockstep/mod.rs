//! A ring in memory, driven in rounds: nothing is lost, nothing overtakes.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use rota_core::contract::{
    Channel, Checked, Class, Delivery, Engine, Incarnation, Input, NodeId, Output, Process,
    StartState, Target, Time,
};
use rota_ring::RingConfig;
use rota_ring::RingEngine;

/// Nodes on a network without loss.
pub struct Ring {
    pub engines: Vec<Checked<RingEngine>>,
    pub queues: Vec<VecDeque<(Class, Bytes)>>,
    /// Nothing reaches this node.
    pub deaf: Option<usize>,
    /// From whom nothing reaches whom.
    pub cut: BTreeSet<(usize, usize)>,
    /// Killed, and not restarted yet.
    pub dead: BTreeSet<usize>,
    /// The hosts of the dead live, and refuse what is sent to them alone.
    pub hosts_live: bool,
    config: RingConfig,
    pub now: Time,
}

impl Ring {
    pub fn new(nodes: u16, personal: u32, global: u32) -> Self {
        let members: Vec<_> = (1..=nodes).filter_map(NodeId::new).collect();
        let mut config = RingConfig::new(1, members.clone());
        config.windows.personal = personal;
        config.windows.accelerated = personal;
        config.windows.global = global;
        let engine = |&node: &NodeId| start(&config, node, 1, Time(1));
        let engines = members.iter().map(engine).collect();
        let queues = members.iter().map(|_| VecDeque::new()).collect();
        Self {
            engines,
            queues,
            deaf: None,
            cut: BTreeSet::new(),
            dead: BTreeSet::new(),
            hosts_live: false,
            config,
            now: Time(1),
        }
    }

    /// The node at this place dies, with all that was on its way to it, and starts anew.
    pub fn restart(&mut self, at: usize, incarnation: u64) {
        self.queues[at].clear();
        self.dead.remove(&at);
        let node = self.config.members[at];
        self.engines[at] = start(&self.config, node, incarnation, self.now);
    }

    /// Cuts the network into the nodes of `group` and the others.
    pub fn part(&mut self, group: &[usize]) {
        let nodes = 0..self.engines.len();
        let crosses = |&(from, to): &(usize, usize)| group.contains(&from) != group.contains(&to);
        let pairs = nodes
            .clone()
            .flat_map(|from| nodes.clone().map(move |to| (from, to)));
        self.cut = pairs.filter(crosses).collect();
    }

    /// Every node does what is due and takes what has come; answers with what each delivered.
    pub fn round(&mut self, nanos: u64) -> Vec<Vec<Delivery>> {
        self.now = self.now.after(nanos);
        (0..self.engines.len()).map(|at| self.node(at)).collect()
    }

    fn node(&mut self, at: usize) -> Vec<Delivery> {
        if self.dead.contains(&at) {
            self.queues[at].clear();
            return Vec::new();
        }
        self.carry_out(at);
        let engine = &mut self.engines[at];
        if engine.next_timer().is_some_and(|(due, _)| due <= self.now) {
            engine.handle(self.now, Input::Timer);
        }
        self.carry_out(at);
        while let Some((class, bytes)) = self.queues[at].pop_front() {
            let (channel, segment) = (Channel(0), bytes.len());
            let input = Input::Datagrams {
                class,
                channel,
                bytes,
                segment,
            };
            self.engines[at].handle(self.now, input);
            self.carry_out(at);
            self.engines[at].reading();
        }
        std::iter::from_fn(|| self.engines[at].poll_delivery()).collect()
    }

    fn carry_out(&mut self, at: usize) {
        loop {
            let refused = self.send_all(at);
            if refused.is_empty() {
                return;
            }
            for peer in refused {
                self.engines[at].handle(self.now, Input::Unreachable { peer });
            }
        }
    }

    /// Answers with those who were sent something and refuse it.
    fn send_all(&mut self, at: usize) -> BTreeSet<NodeId> {
        let mut refused = BTreeSet::new();
        while let Some(output) = self.engines[at].poll_output() {
            if let Output::Persist { id, .. } = output {
                self.engines[at].handle(self.now, Input::Persisted { id });
                continue;
            }
            let Output::Send {
                class, to, burst, ..
            } = output
            else {
                continue;
            };
            for receiver in 0..self.engines.len() {
                let node = NodeId::new(receiver as u16 + 1).expect("not 0");
                if self.hosts_live && self.dead.contains(&receiver) && to == Target::Node(node) {
                    refused.insert(node);
                }
                let reached = receiver != at
                    && self.deaf != Some(receiver)
                    && !self.cut.contains(&(at, receiver));
                if reached && (to == Target::Others || to == Target::Node(node)) {
                    let copies = burst
                        .datagrams()
                        .map(|d| (class, Bytes::copy_from_slice(d)));
                    self.queues[receiver].extend(copies);
                }
            }
        }
        refused
    }
}

fn start(config: &RingConfig, node: NodeId, incarnation: u64, now: Time) -> Checked<RingEngine> {
    let mut engine = Checked::new(RingEngine::new(config.clone()).expect("a valid ring"));
    let incarnation = Incarnation(incarnation);
    let start = StartState {
        me: Process { node, incarnation },
        seed: 0,
        records: Vec::new(),
        lost_some: false,
    };
    engine.handle(now, Input::Start(start));
    engine
}

//! One state: all nodes, all messages, and the decisions, whoever knows them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

use rota_paxos::{AcceptorId, Config, Coordinator, Instance, Promise, Round, Value, Vote};

use super::super::search::Same;
use super::node::{Disk, Node, acceptor_id};
use super::{Budget, Rules};
use crate::observe::Finding;

/// The messages of a round: each may arrive at any time, any number of times, or never.
#[derive(Clone, Debug)]
pub(super) struct Log {
    pub config: Arc<Config>,
    /// The first instance of the round, when it has begun.
    pub start: Instance,
    pub kept: Instance,
    pub proposals: Vec<Vote>,
    /// By place in the configuration: the end of the votes that the acceptor has told of.
    pub told: Vec<Instance>,
    /// By instance: the acceptors with durable votes, as bits by store.
    pub cast: Vec<u16>,
    /// The hash of all this; 0 while it is being changed.
    pub hash: u64,
}

/// Nodes and logs that are the same in many states, by hash.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub nodes: HashMap<u64, Rc<Node>, BuildHasherDefault<Same>>,
    pub logs: HashMap<u64, Rc<Log>, BuildHasherDefault<Same>>,
}

/// A message that may come later than messages sent after it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Flight {
    Promise(Promise),
    /// An answer, to a node in one of its lives.
    Answer(usize, u64, Vec<Vote>),
}

/// The value that an instance is decided as, and the lowest round in which a majority has voted for that value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Decided {
    pub value: Value,
    pub since: Round,
}

/// The whole state. Nodes and logs that two states share are kept once.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub rules: Rc<Rules>,
    pub shared: Rc<RefCell<Shared>>,
    pub nodes: Vec<Rc<Node>>,
    /// By number, from 1.
    pub logs: Vec<Rc<Log>>,
    pub flights: Rc<Vec<Flight>>,
    /// By instance.
    pub decided: Rc<Vec<Option<Decided>>>,
    /// The newest configuration that was said to be complete.
    pub claimed: Round,
    /// The newest checkpoint of the application.
    pub checkpoint: Instance,
    /// The number of disks that there ever were.
    pub stores: usize,
    /// The contents of the lost disks.
    pub lost: Rc<Vec<(AcceptorId, Disk)>>,
    /// The events that may still happen.
    pub left: Budget,
    pub finding: Option<Finding>,
    /// The notes of what happens, if they are asked for.
    pub trail: Option<Vec<String>>,
}

impl State {
    /// The first configuration, of which nobody was asked for a promise.
    pub fn new(rules: Rc<Rules>, left: Budget) -> Self {
        let all = rules.acceptors + rules.spares;
        let mut nodes: Vec<Rc<Node>> = (0..all).map(|at| Rc::new(Node::new(at))).collect();
        let first = Arc::new(Config {
            founded: 1,
            number: 1,
            coordinator: nodes[0].process(),
            ring: Vec::new(),
            acceptors: (0..rules.acceptors).map(|at| acceptor_id(at, at)).collect(),
            prior: Vec::new(),
        });
        let node = Rc::make_mut(&mut nodes[0]);
        node.coordinator = Some(Coordinator::new(first.clone(), 1));
        node.seal();
        Self {
            rules,
            shared: Rc::default(),
            nodes,
            logs: vec![Rc::new(Log::new(first))],
            flights: Rc::default(),
            decided: Rc::default(),
            claimed: 0,
            checkpoint: 1,
            stores: all,
            lost: Rc::default(),
            left,
            finding: None,
            trail: None,
        }
    }

    /// Two states with one hash have the same future.
    pub fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.left, self.claimed, self.checkpoint, self.stores).hash(&mut hasher);
        for node in &self.nodes {
            node.hash.hash(&mut hasher);
        }
        for log in &self.logs {
            log.hash.hash(&mut hasher);
        }
        (&self.flights, &self.lost).hash(&mut hasher);
        hasher.finish()
    }

    pub fn log(&self, round: Round) -> &Log {
        &self.logs[round as usize - 1]
    }

    pub fn log_mut(&mut self, round: Round) -> &mut Log {
        let log = Rc::make_mut(&mut self.logs[round as usize - 1]);
        log.hash = 0;
        log
    }

    pub fn newest(&self) -> &Arc<Config> {
        let last = self.logs.len() - 1;
        &self.logs[last].config
    }

    /// The node, to be changed.
    pub fn node(&mut self, at: usize) -> &mut Node {
        let node = Rc::make_mut(&mut self.nodes[at]);
        node.touched = true;
        node
    }

    /// The place of the node with an acceptor, unless its disk is lost.
    pub fn place(&self, who: AcceptorId) -> Option<usize> {
        self.nodes.iter().position(|node| node.id == who)
    }

    pub fn decided(&self, instance: Instance) -> Option<&Decided> {
        self.decided.get(instance as usize)?.as_ref()
    }

    pub fn found(&mut self, property: &str, detail: String) {
        if self.rules.checks.has(property) {
            self.finding
                .get_or_insert_with(|| Finding::new(property, detail));
        }
    }
}

impl Log {
    pub fn new(config: Arc<Config>) -> Self {
        Self {
            told: vec![0; config.acceptors.len()],
            config,
            start: 0,
            kept: 1,
            proposals: Vec::new(),
            cast: Vec::new(),
            hash: 0,
        }
    }

    /// Brings the hash up to date.
    pub fn seal(&mut self) {
        let mut hasher = DefaultHasher::new();
        (&self.config, self.start, self.kept).hash(&mut hasher);
        (&self.proposals, &self.told, &self.cast).hash(&mut hasher);
        self.hash = hasher.finish().max(1);
    }

    /// The proposal for an instance.
    pub fn at(&self, instance: Instance) -> Option<&Vote> {
        let mut proposals = self.proposals.iter();
        proposals.find(|vote| (vote.first..vote.end()).contains(&instance))
    }

    /// Whether a majority of the acceptors has durable votes for an instance.
    pub fn is_decided(&self, instance: Instance) -> bool {
        let cast = self.cast.get(instance as usize).copied().unwrap_or(0);
        let voters = self.config.acceptors.iter();
        voters.filter(|who| cast & bit(who) != 0).count() >= self.config.majority()
    }
}

/// The bit of a store.
pub(super) const fn bit(who: &AcceptorId) -> u16 {
    1 << who.store
}

/// Whether two values say the same of an instance.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    matches!((one, other), (Value::Skip(_), Value::Skip(_))) || one == other
}

/// A value, for people.
pub(super) fn show(value: &Value) -> String {
    match value {
        Value::Skip(_) => "nothing".to_owned(),
        Value::Members(number, _) => format!("members of {number}"),
        Value::Packet { id, .. } => format!("packet {}", id.counter),
    }
}

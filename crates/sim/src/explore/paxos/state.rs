//! One state: all nodes, all messages, and the ledger of what was said and decided.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

use rota_paxos::{AcceptorId, Config, Coordinator, Instance, Promise, Round, Vote};

use super::super::search::Same;
use super::ledger::{Ledger, Logs};
use super::node::{Disk, Node, acceptor_id};
use super::{Budget, Rules};

/// Nodes and logs that are the same in many states, by hash.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub nodes: HashMap<u64, Rc<Node>, BuildHasherDefault<Same>>,
    pub logs: Logs,
}

/// A message that may come later than messages sent after it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Flight {
    Promise(Promise),
    /// An answer, to a node in one of its lives.
    Answer(usize, u64, Vec<Vote>),
}

/// The whole state. Nodes and logs that two states share are kept once.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub rules: Rc<Rules>,
    pub shared: Rc<RefCell<Shared>>,
    pub nodes: Vec<Rc<Node>>,
    pub ledger: Ledger,
    pub flights: Rc<Vec<Flight>>,
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
            ledger: Ledger::new(rules.checks, first),
            rules,
            shared: Rc::default(),
            nodes,
            flights: Rc::default(),
            claimed: 0,
            checkpoint: 1,
            stores: all,
            lost: Rc::default(),
            left,
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
        self.ledger.hash(&mut hasher);
        (&self.flights, &self.lost).hash(&mut hasher);
        hasher.finish()
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
}

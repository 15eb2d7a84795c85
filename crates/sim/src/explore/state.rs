//! One state of all processes and the network, and the steps from it to others.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use bytes::Bytes;
use rota_check::event::EventKind;
use rota_check::online::Online;
use rota_core::contract::{
    Channel, Class, Engine, Input, NodeId, Output, Process, RingId, Service, Target, position,
};
use rota_ring::RingConfig;
use rota_ring::wire::{self, Packet, Token};

use super::node::Node;
use crate::observe::Finding;

/// Turns of one step, at most: timers that are due at once go on for ever.
const TURNS: u32 = 1000;

/// A datagram on its way.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub from: usize,
    pub to: usize,
    pub class: Class,
    pub bytes: Bytes,
    hash: u64,
    /// It is a packet of messages.
    pub data: bool,
    /// The token, if it is one.
    pub token: Option<Rc<Token>>,
}

impl Flight {
    const fn link(&self) -> (usize, usize, bool) {
        (self.from, self.to, matches!(self.class, Class::Token))
    }
}

/// Faults that may still happen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Left {
    pub losses: u32,
    pub crashes: u32,
    pub early: u32,
}

/// Something that may happen next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Move {
    Deliver(usize),
    Lose(usize),
    Written(usize),
    Timer(usize),
    Crash(usize),
    Restart(usize),
}

/// The rules of a search, the same in all of its states.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub config: RingConfig,
    /// Datagrams of one link may overtake each other.
    pub reorder: bool,
}

/// All processes and the network. Parts that two states share are kept once.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub nodes: Vec<Rc<Node>>,
    /// Datagrams on their way, in the order in which they were sent.
    pub flights: Vec<Flight>,
    pub left: Left,
    pub online: Rc<Online>,
    /// The regular configurations delivered so far.
    pub rings: Rc<BTreeMap<RingId, Vec<Process>>>,
    /// Applications submit when they get a configuration of more than one.
    pub submits: bool,
    pub finding: Option<Finding>,
}

impl State {
    pub fn new(nodes: usize, left: Left) -> Self {
        let nodes = (1..=nodes as u16).filter_map(NodeId::new);
        Self {
            nodes: nodes.map(|node| Rc::new(Node::new(node))).collect(),
            flights: Vec::new(),
            left,
            online: Rc::default(),
            rings: Rc::default(),
            submits: false,
            finding: None,
        }
    }

    /// Two states with one hash have the same future.
    pub fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.left.hash(&mut hasher);
        for node in &self.nodes {
            node.hash.hash(&mut hasher);
        }
        let of = |flight: &Flight| (flight.link(), flight.hash);
        let mut flights: Vec<_> = self.flights.iter().map(of).collect();
        // Only the order on one link matters.
        flights.sort_by_key(|(link, _)| *link);
        flights.hash(&mut hasher);
        hasher.finish()
    }

    /// Datagrams that may arrive next, and one of those that are equal.
    fn deliverable(&self, reorder: bool) -> Vec<usize> {
        let first = |&at: &usize| {
            let flight = &self.flights[at];
            let before = &self.flights[..at];
            let up = self.nodes[flight.to].engine.is_some();
            let same = |other: &Flight| {
                other.link() == flight.link() && (!reorder || other.hash == flight.hash)
            };
            up && !before.iter().any(same)
        };
        (0..self.flights.len()).filter(first).collect()
    }

    /// All that may happen next.
    pub fn moves(&self, rules: &Rules) -> Vec<Move> {
        let arriving = self.deliverable(rules.reorder);
        let mut moves: Vec<Move> = arriving.iter().map(|&at| Move::Deliver(at)).collect();
        let places = 0..self.nodes.len();
        let written = |&at: &usize| !self.nodes[at].pending.is_empty();
        moves.extend(places.clone().filter(written).map(Move::Written));
        let calm = moves.is_empty();
        for at in places {
            match &self.nodes[at].engine {
                None => moves.push(Move::Restart(at)),
                Some(_) if calm || self.left.early > 0 => {
                    if self.nodes[at].next_timer().is_some() {
                        moves.push(Move::Timer(at));
                    }
                }
                Some(_) => {}
            }
        }
        if self.left.losses > 0 {
            moves.extend(arriving.iter().map(|&at| Move::Lose(at)));
        }
        if self.left.crashes > 0 {
            let up = |&at: &usize| self.nodes[at].engine.is_some();
            moves.extend((0..self.nodes.len()).filter(up).map(Move::Crash));
        }
        moves
    }

    /// Makes a step.
    pub fn step(&mut self, rules: &Rules, step: Move) {
        match step {
            Move::Deliver(at) => {
                let flight = self.flights.remove(at);
                self.deliver(flight);
            }
            Move::Lose(at) => {
                self.left.losses -= 1;
                self.flights.remove(at);
            }
            Move::Written(at) => self.written(at),
            Move::Timer(at) => {
                let busy = !self.deliverable(rules.reorder).is_empty();
                let writing = self.nodes.iter().any(|node| !node.pending.is_empty());
                self.left.early -= u32::from(busy || writing);
                let wait = self.nodes[at].next_timer().unwrap_or(0);
                Rc::make_mut(&mut self.nodes[at]).clock += wait;
                self.fire(at);
            }
            Move::Crash(at) => {
                self.left.crashes -= 1;
                self.crash(at);
            }
            Move::Restart(at) => self.start(rules, at),
        }
        self.check_rings();
        self.check_tokens();
    }

    pub fn start(&mut self, rules: &Rules, at: usize) {
        Rc::make_mut(&mut self.nodes[at]).start(&rules.config);
        self.emit(at, EventKind::Start);
        self.settle(at);
    }

    /// A process dies, and what was on its way to it is nobody's.
    fn crash(&mut self, at: usize) {
        self.emit(at, EventKind::Crash);
        self.flights.retain(|flight| flight.to != at);
        let node = Rc::make_mut(&mut self.nodes[at]);
        node.crash();
        node.seal();
    }

    fn deliver(&mut self, flight: Flight) {
        let input = Input::Datagrams {
            class: flight.class,
            channel: Channel::default(),
            segment: flight.bytes.len(),
            bytes: flight.bytes,
        };
        self.tell(flight.to, input);
    }

    fn written(&mut self, at: usize) {
        let Some((id, free)) = Rc::make_mut(&mut self.nodes[at]).write() else {
            return;
        };
        for output in free {
            self.carry_out(at, output);
        }
        self.tell(at, Input::Persisted { id });
    }

    /// A process is told that the time of its next timer has come.
    pub fn fire(&mut self, at: usize) {
        self.tell(at, Input::Timer);
    }

    pub fn is_writing(&self, at: usize) -> bool {
        !self.nodes[at].pending.is_empty()
    }

    fn tell(&mut self, at: usize, input: Input) {
        let node = Rc::make_mut(&mut self.nodes[at]);
        let now = node.now();
        if let Some(engine) = &mut node.engine {
            engine.handle(now, input);
        }
        self.settle(at);
    }

    /// An application submits a message.
    pub fn submit(&mut self, at: usize, service: Service) {
        let node = Rc::make_mut(&mut self.nodes[at]);
        let (now, counter) = (node.now(), node.sent.len() as u8);
        let Some(engine) = &mut node.engine else {
            return;
        };
        let payload = [b'a' + at as u8, b'0' + counter];
        if engine.submit(now, service, &payload).is_ok() {
            node.sent.push((service, hash_of(&payload)));
        }
        self.settle(at);
    }

    /// Carries out what a process wants done, until there is nothing left to do at once.
    fn settle(&mut self, at: usize) {
        for _ in 0..TURNS {
            let node = Rc::make_mut(&mut self.nodes[at]);
            let now = node.now();
            let Some(engine) = &mut node.engine else {
                return;
            };
            if let Some(output) = engine.poll_output() {
                self.carry_out(at, output);
            } else if let Some(delivery) = engine.poll_delivery() {
                self.delivered(at, delivery);
            } else if engine.next_timer().is_some_and(|(due, _)| due <= now) {
                engine.handle(now, Input::Timer);
            } else {
                return node.seal();
            }
        }
        self.found("progress", format!("node {} runs in circles", at + 1));
    }

    fn carry_out(&mut self, at: usize, output: Output) {
        match output {
            Output::Persist { id, records } => {
                let node = Rc::make_mut(&mut self.nodes[at]);
                node.pending.push((id, records));
            }
            Output::Originated {
                counter,
                seq,
                index,
            } => self.originated(at, counter, position(seq, index)),
            Output::Send { after, .. } if self.nodes[at].has_to_wait(after) => {
                let node = Rc::make_mut(&mut self.nodes[at]);
                node.waiting.extend(after.map(|after| (after, output)));
            }
            Output::Send {
                class, to, burst, ..
            } => {
                let bytes = Bytes::from(burst.bytes);
                let mut start = 0;
                while start < bytes.len() {
                    let end = (start + burst.segment).min(bytes.len());
                    self.send(at, class, to, &bytes.slice(start..end));
                    start = end;
                }
            }
            // The ring uses neither links nor logs that it reads.
            _ => {}
        }
    }

    fn send(&mut self, from: usize, class: Class, target: Target, bytes: &Bytes) {
        let (data, token) = match wire::decode(bytes.clone()) {
            Ok(Packet::Data(_)) => (true, None),
            Ok(Packet::Token(token)) => (false, Some(Rc::new(token))),
            _ => (false, None),
        };
        for to in (0..self.nodes.len()).filter(|&to| to != from) {
            let meant = match target {
                Target::Others => true,
                Target::Node(node) => self.nodes[to].node == node,
            };
            if meant {
                self.flights.push(Flight {
                    from,
                    to,
                    class,
                    bytes: bytes.clone(),
                    hash: hash_of(bytes),
                    data,
                    token: token.clone(),
                });
            }
        }
    }

    pub fn found(&mut self, property: &str, detail: String) {
        self.finding
            .get_or_insert_with(|| Finding::new(property, detail));
    }
}

pub(super) fn hash_of(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

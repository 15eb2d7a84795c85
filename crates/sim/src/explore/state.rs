//! One state of all processes and the network, and the steps from it to others.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use bytes::Bytes;
use rota_check::event::{Conf, Event, EventKind, Placed};
use rota_check::online::Online;
use rota_core::contract::{
    Channel, Class, ConfigurationKind, Delivery, Engine, Input, NodeId, Output, Process, RingId,
    Service, Target, position,
};
use rota_core::ring::RingConfig;
use rota_core::wire::{self, Packet, Token};

use super::node::{MESSAGES, Node};
use crate::observe::Finding;

/// Turns of one step, at most: timers that are due at once go on for ever.
const TURNS: u32 = 1000;

/// A datagram on its way.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub from: usize,
    pub to: usize,
    pub class: Class,
    bytes: Bytes,
    hash: u64,
    /// It is a packet of messages.
    pub data: bool,
    /// What it is, if it is a token.
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

/// What is the same in all states.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub config: RingConfig,
    /// Datagrams of one link may overtake each other.
    pub reorder: bool,
}

/// All processes and the network. What two states share is kept once.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub nodes: Vec<Rc<Node>>,
    /// In the order in which they were sent.
    pub flights: Vec<Flight>,
    pub left: Left,
    online: Rc<Online>,
    /// The regular configurations delivered so far.
    rings: Rc<BTreeMap<RingId, Vec<Process>>>,
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

    fn originated(&mut self, at: usize, counter: u64, position: u64) {
        let node = &self.nodes[at];
        let message = rota_core::contract::MessageId {
            process: node.process(),
            counter,
        };
        let sent = node.sent.get((counter as usize).wrapping_sub(1)).copied();
        // The engine numbers a message while it is being submitted.
        let (service, hash) = sent.unwrap_or_else(|| self.newest(at, counter));
        let Some(conf) = node.conf else {
            return self.found("E4", format!("{message} originated in no configuration"));
        };
        let placed = Placed {
            message,
            conf,
            position,
            service,
            hash,
        };
        Rc::make_mut(&mut self.nodes[at]).remember((1, counter, position));
        self.emit(at, EventKind::Originated(placed));
    }

    fn newest(&self, at: usize, counter: u64) -> (Service, u64) {
        let payload = [b'a' + at as u8, b'0' + counter as u8 - 1];
        (Service::Agreed, hash_of(&payload))
    }

    fn delivered(&mut self, at: usize, delivery: Delivery) {
        let node = Rc::make_mut(&mut self.nodes[at]);
        match delivery {
            Delivery::Configuration(conf) => {
                node.conf = Some(conf.kind);
                node.remember((2, &conf));
                let more = conf.members.len() > 1 && node.sent.len() < MESSAGES;
                let submits = self.submits && more;
                let (id, members) = (conf.kind, conf.members);
                self.emit(at, EventKind::Configuration(Conf { id, members }));
                if let ConfigurationKind::Regular(_) = id
                    && submits
                {
                    self.submit(at, Service::Agreed);
                    self.submit(at, Service::Safe);
                }
            }
            Delivery::Message(message) => {
                node.returned += usize::from(message.id.process == node.process());
                let position = message.position();
                node.remember((3, message.id, position, hash_of(&message.payload)));
                let Some(conf) = node.conf else {
                    return self.found("E4", format!("{} before any configuration", message.id));
                };
                let placed = Placed {
                    message: message.id,
                    conf,
                    position,
                    service: message.service,
                    hash: hash_of(&message.payload),
                };
                self.emit(at, EventKind::Delivered(placed));
            }
            Delivery::Skips { .. } | Delivery::Primary(_) => {}
        }
    }

    fn emit(&mut self, at: usize, kind: EventKind) {
        let node = &self.nodes[at];
        let event = Event {
            time: node.now(),
            process: node.process(),
            kind,
        };
        if let Err(violation) = Rc::make_mut(&mut self.online).observe(&event) {
            self.found(violation.property, violation.detail);
        }
        if let EventKind::Configuration(conf) = event.kind
            && let ConfigurationKind::Regular(ring) = conf.id
        {
            let rings = Rc::make_mut(&mut self.rings);
            let known = rings.entry(ring).or_insert_with(|| conf.members.clone());
            if *known != conf.members {
                self.found("C1", format!("two configurations are both {ring}"));
            }
        }
    }

    pub fn found(&mut self, property: &str, detail: String) {
        self.finding
            .get_or_insert_with(|| Finding::new(property, detail));
    }

    /// Processes on one installed ring agree on its members, also before their applications know.
    fn check_rings(&mut self) {
        let mut seen: Vec<(RingId, &[Process])> = Vec::new();
        let mut wrong = None;
        for engine in self.nodes.iter().filter_map(|node| node.engine.as_ref()) {
            let Some(ordering) = engine.ordering() else {
                continue;
            };
            let (ring, members) = (ordering.ring(), ordering.members());
            let other = seen.iter().find(|(other, _)| *other == ring);
            if other.is_some_and(|(_, other)| *other != members) {
                wrong = Some(ring);
            }
            seen.push((ring, members));
        }
        if let Some(ring) = wrong {
            self.found("C1", format!("two installed rings are both {ring}"));
        }
    }

    /// Of all tokens of a ring only one can still be taken, and whoever keeps one is its last holder.
    fn check_tokens(&mut self) {
        let mut live: Vec<(RingId, u64)> = Vec::new();
        let engine = |at: usize| self.nodes[at].engine.as_ref();
        for flight in &self.flights {
            if let Some(token) = &flight.token
                && engine(flight.to).is_some_and(|engine| engine.takes_token(token))
            {
                live.push((token.ring, token.token_seq));
            }
        }
        live.extend((0..self.nodes.len()).filter_map(|at| engine(at)?.holds_token()));
        live.sort_unstable();
        live.dedup();
        let two = live.windows(2).find(|pair| pair[0].0 == pair[1].0);
        if let Some(&[(ring, one), (_, other)]) = two {
            self.found(
                "token",
                format!("tokens {one} and {other} of {ring} would both be taken"),
            );
        }
    }

    /// What a step is, for people.
    pub fn describe(&self, step: Move) -> String {
        let flight = |at: usize| {
            let Flight {
                from, to, bytes, ..
            } = &self.flights[at];
            let what = wire::decode(bytes.clone());
            let what = what.map_or_else(|_| "?".to_owned(), |packet| format!("{packet:?}"));
            format!("{} > {}: {what}", from + 1, to + 1)
        };
        match step {
            Move::Deliver(at) => format!("arrives {}", flight(at)),
            Move::Lose(at) => format!("is lost {}", flight(at)),
            Move::Written(at) => format!("node {} has written", at + 1),
            Move::Timer(at) => format!("node {}: timer ({})", at + 1, self.phase(at)),
            Move::Crash(at) => format!("node {} dies", at + 1),
            Move::Restart(at) => format!("node {} starts again", at + 1),
        }
    }

    pub fn phase(&self, at: usize) -> &'static str {
        let engine = self.nodes[at].engine.as_ref();
        engine.map_or("down", |engine| engine.phase_name())
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for node in &self.nodes {
            let engine = node.engine.as_ref();
            let state = engine.map_or_else(|| "down".to_owned(), |engine| engine.status().state);
            let (returned, sent) = (node.returned, node.sent.len());
            write!(
                f,
                "node {}: {state}, {returned} of {sent} back; ",
                node.node
            )?;
        }
        write!(f, "{} on their way", self.flights.len())
    }
}

fn hash_of(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

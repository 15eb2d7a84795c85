//! A ring of three that can be lied to.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rota_core::contract::{
    Burst, Channel, Checked, Class, Delivery, Engine, Incarnation, Input, MessageId, NodeId,
    Output, Process, RingId, Seq, Service, StartState, Target, Time,
};
use rota_core::wire::{Frame, push_whole, start_frame};
use rota_ring::RingEngine;
use rota_ring::wire::{Data, Packet, Token, decode};
use rota_ring::{Counters, RingConfig};

pub const CLUSTER: u32 = 7;
pub const NODES: u16 = 3;
/// What one hostile datagram may cost, with room for a busy machine.
const PATIENCE: Duration = Duration::from_millis(500);
/// Steps until a ring of all has to be there again: some consensus times, and back-offs.
const FORMING_STEPS: usize = 60_000;

/// Changes a packet on its way from one node to another, by their places; `None` loses it.
pub type Tamper = Box<dyn FnMut(usize, usize, Packet) -> Option<Packet>>;

pub struct Ring {
    pub engines: Vec<Checked<RingEngine>>,
    queues: Vec<VecDeque<(Class, Bytes)>>,
    delivered: Vec<Vec<(MessageId, Vec<u8>)>>,
    /// Datagrams as they were sent.
    pub seen: Vec<(Class, Bytes)>,
    pub tamper: Option<Tamper>,
    /// Neither hear nor are heard.
    pub silent: BTreeSet<usize>,
    pub now: Time,
}

pub fn node(id: u16) -> NodeId {
    NodeId::new(id).expect("not 0")
}

pub fn process(id: u16, incarnation: u64) -> Process {
    let incarnation = Incarnation(incarnation);
    Process {
        node: node(id),
        incarnation,
    }
}

impl Ring {
    /// Started, but not formed.
    pub fn started() -> Self {
        let members: Vec<_> = (1..=NODES).map(node).collect();
        let config = RingConfig::new(CLUSTER, members.clone());
        let engine = |&id: &NodeId| {
            let mut engine = Checked::new(RingEngine::new(config.clone()).expect("a valid ring"));
            engine.handle(
                Time(1),
                Input::Start(StartState {
                    me: process(id.get(), 10),
                    seed: 0,
                    records: Vec::new(),
                    lost_some: false,
                }),
            );
            engine
        };
        let engines = members.iter().map(engine).collect();
        let queues = members.iter().map(|_| VecDeque::new()).collect();
        let delivered = members.iter().map(|_| Vec::new()).collect();
        let (seen, now) = (Vec::new(), Time(1));
        let mut ring = Self {
            engines,
            queues,
            delivered,
            seen,
            tamper: None,
            silent: BTreeSet::new(),
            now,
        };
        for at in 0..ring.engines.len() {
            ring.carry_out(at);
        }
        ring
    }

    /// Formed, and some messages old.
    pub fn operational() -> Self {
        let mut ring = Self::started();
        ring.works();
        ring
    }

    /// Nodes 1 and 2 have lost 3 and wait for it to agree.
    pub fn gathering() -> Self {
        let mut ring = Self::operational();
        ring.silent.insert(2);
        let gathers = |ring: &Self, at: usize| ring.phase(at) == "gathering";
        for _ in 0..2000 {
            if gathers(&ring, 0) && gathers(&ring, 1) {
                return ring;
            }
            ring.step();
        }
        panic!("a lost node is not noticed");
    }

    pub fn phase(&self, at: usize) -> &'static str {
        self.engines[at].get().phase_name()
    }

    pub fn step(&mut self) {
        self.now = self.now.after(500_000);
        for at in 0..self.engines.len() {
            if self.engines[at]
                .next_timer()
                .is_some_and(|(due, _)| due <= self.now)
            {
                self.engines[at].handle(self.now, Input::Timer);
            }
            self.carry_out(at);
            while let Some((class, bytes)) = self.queues[at].pop_front() {
                self.receive(at, class, bytes);
                self.carry_out(at);
            }
            while let Some(delivery) = self.engines[at].poll_delivery() {
                if let Delivery::Message(message) = delivery {
                    self.delivered[at].push((message.id, message.payload.to_vec()));
                }
            }
        }
    }

    pub fn receive(&mut self, at: usize, class: Class, bytes: Bytes) {
        let (channel, segment) = (Channel(0), bytes.len());
        let input = Input::Datagrams {
            class,
            channel,
            bytes,
            segment,
        };
        self.engines[at].handle(self.now, input);
        self.engines[at].reading();
    }

    /// Carries out a node's outputs; answers with the bytes it sent.
    pub fn carry_out(&mut self, at: usize) -> usize {
        let mut sent = 0;
        while let Some(output) = self.engines[at].poll_output() {
            match output {
                Output::Persist { id, .. } => {
                    self.engines[at].handle(self.now, Input::Persisted { id });
                }
                Output::Send {
                    class, to, burst, ..
                } => {
                    assert!(burst.bytes.len() <= Burst::MAX_BYTES);
                    sent += burst.bytes.len();
                    for datagram in burst.datagrams() {
                        self.route(at, class, to, datagram);
                    }
                }
                _ => {}
            }
        }
        sent
    }

    fn route(&mut self, from: usize, class: Class, to: Target, datagram: &[u8]) {
        let bytes = Bytes::copy_from_slice(datagram);
        // Whatever a node was told, the others can read what it says.
        let packet = decode(bytes.clone()).expect("engines send valid packets");
        self.seen.push((class, bytes.clone()));
        for receiver in (0..self.engines.len()).filter(|&receiver| receiver != from) {
            let meant = to == Target::Others || to == Target::Node(node(receiver as u16 + 1));
            if !meant || self.silent.contains(&from) || self.silent.contains(&receiver) {
                continue;
            }
            match &mut self.tamper {
                None => self.queues[receiver].push_back((class, bytes.clone())),
                Some(tamper) => {
                    if let Some(packet) = tamper(from, receiver, packet.clone()) {
                        let bytes = Bytes::from(packet.encode());
                        self.queues[receiver].push_back((class, bytes));
                    }
                }
            }
        }
    }

    /// Runs until all are on one ring, and in service.
    pub fn come_together(&mut self) {
        for _ in 0..FORMING_STEPS {
            let rings: BTreeSet<_> = (0..self.engines.len()).map(|at| self.ring_of(at)).collect();
            let members = self.engines[0]
                .get()
                .ordering()
                .map_or(0, |ring| ring.members().len());
            let together = rings.len() == 1 && members == self.engines.len();
            if together && (0..self.engines.len()).all(|at| self.phase(at) == "operational") {
                return;
            }
            self.step();
        }
        let states: Vec<_> = self.engines.iter().map(|e| e.status().state).collect();
        panic!("no ring of all: {states:?}");
    }

    fn ring_of(&self, at: usize) -> Option<RingId> {
        self.engines[at].get().ordering().map(|ring| ring.ring())
    }

    /// All come together, everybody submits, and everybody delivers all of it in one order.
    pub fn works(&mut self) {
        self.come_together();
        let before: Vec<_> = self.delivered.iter().map(Vec::len).collect();
        for at in 0..self.engines.len() {
            for service in [Service::Agreed, Service::Safe] {
                let payload = [at as u8; 20];
                self.engines[at]
                    .submit(self.now, service, &payload)
                    .expect("there is room");
                self.carry_out(at);
            }
        }
        let wanted = 2 * self.engines.len();
        for _ in 0..2000 {
            self.step();
            let counts = self.delivered.iter().zip(&before);
            if counts
                .clone()
                .all(|(now, before)| now.len() == before + wanted)
            {
                let new = |at: usize| &self.delivered[at][before[at]..];
                assert!((0..self.engines.len()).all(|at| new(at) == new(0)));
                return;
            }
        }
        let counts: Vec<_> = self.delivered.iter().map(Vec::len).collect();
        panic!("the ring stands still: {before:?} before, {counts:?} now, {wanted} wanted each");
    }

    /// Hands a hostile datagram to every node, on both sockets. Answers with the bytes that they
    /// sent on account of it.
    pub fn attack(&mut self, bytes: &[u8]) -> usize {
        let mut sent = 0;
        for at in 0..self.engines.len() {
            for class in [Class::Data, Class::Token] {
                let began = Instant::now();
                self.receive(at, class, Bytes::copy_from_slice(bytes));
                sent += self.carry_out(at);
                assert!(
                    began.elapsed() < PATIENCE,
                    "one datagram took {:?}",
                    began.elapsed()
                );
            }
        }
        sent
    }

    pub fn sum(&self, counter: impl Fn(&Counters) -> u64) -> u64 {
        self.engines
            .iter()
            .map(|engine| counter(engine.get().counters()))
            .sum()
    }

    pub fn id(&self) -> RingId {
        self.ring_of(0).expect("the ring is installed")
    }

    /// The last token seen, as something to forge others from.
    pub fn last_token(&self) -> Token {
        let token = self
            .seen
            .iter()
            .rev()
            .find_map(|(_, bytes)| match decode(bytes.clone()) {
                Ok(Packet::Token(token)) => Some(token),
                _ => None,
            });
        token.expect("a token was sent")
    }

    /// Attacks with packets that must be dropped, and checks that they are: counted by `counter`,
    /// unanswered, and without harm.
    pub fn shrugs_off(&mut self, packets: &[Packet], counter: impl Fn(&Counters) -> u64) {
        let (id, gathers) = (self.id(), self.sum(|c| c.gathers));
        for packet in packets {
            let before = self.sum(&counter);
            let sent = self.attack(&packet.encode());
            assert_eq!(sent, 0, "answered {packet:?}");
            assert_eq!(
                self.sum(&counter) - before,
                2 * u64::from(NODES),
                "{packet:?}"
            );
        }
        self.works();
        assert_eq!(
            (self.id(), self.sum(|c| c.gathers)),
            (id, gathers),
            "the ring was left"
        );
    }
}

pub fn frame_with(payload: &[u8]) -> Frame {
    let mut bytes = Vec::new();
    start_frame(&mut bytes, 1);
    push_whole(&mut bytes, payload);
    Frame::parse(Bytes::from(bytes)).expect("a frame by the rules")
}

pub fn forged_data(ring: RingId, sender: u16, seq: Seq) -> Data {
    let (round, service) = (1, Service::Agreed);
    Data {
        cluster: CLUSTER,
        ring,
        seq,
        sender: node(sender),
        round,
        service,
        encapsulated: false,
        frame: frame_with(b"forged"),
    }
}

pub fn next_random(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

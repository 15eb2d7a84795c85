//! Nodes, queues between them, and a scheduler.

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use rota_core::contract::{
    Burst, Channel, Checked, Class, Configuration, ConfigurationKind, Delivery, Engine,
    Incarnation, Input, NodeId, Output, PersistId, Process, StartState, SubmitError, Target, Time,
};
use rota_ring::RingEngine;

use super::oracle::Oracle;
use super::plan::{Faults, Plan, Rng};

const MICROS: u64 = 1000;
/// Turns with faults, at most.
const FAULTY_TURNS: usize = 30_000;
/// Turns of the whole ring after the faults have stopped, at most.
const FAIR_ROUNDS: usize = 100_000;
/// Turns of the whole ring until all are on it, at most.
const FORMING_ROUNDS: usize = 10_000;

struct Node {
    engine: Checked<RingEngine>,
    id: NodeId,
    data: VecDeque<Bytes>,
    token: VecDeque<Bytes>,
    /// The engine may still have outputs.
    undrained: bool,
    /// The output that its socket does not take yet.
    stuck: Option<Output>,
    to_submit: u64,
    /// Requests that its disk has carried out.
    durable: BTreeSet<PersistId>,
}

/// A datagram on its way.
struct Late {
    at: Time,
    to: usize,
    class: Class,
    bytes: Bytes,
}

pub struct World {
    plan: Plan,
    rng: Rng,
    now: Time,
    faults: Faults,
    nodes: Vec<Node>,
    late: Vec<Late>,
    oracle: Oracle,
    trace: u64,
}

/// What a run comes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    pub trace: u64,
    pub retransmissions: u64,
    pub requested: u64,
    /// A fault has broken the ring, and the run ended there: what is delivered across rings is not
    /// this test's business.
    pub broken: bool,
}

impl Node {
    fn new(plan: &Plan, id: NodeId) -> Self {
        let mut engine = Checked::new(RingEngine::new(plan.config.clone()).expect("it fits"));
        let incarnation = Incarnation(1000 + u64::from(id.get()));
        let me = Process {
            node: id,
            incarnation,
        };
        let start = StartState {
            me,
            seed: plan.seed,
            records: Vec::new(),
            lost_some: false,
        };
        engine.handle(Time(1), Input::Start(start));
        let (data, token) = (VecDeque::new(), VecDeque::new());
        Self {
            stuck: engine.poll_output(),
            engine,
            id,
            data,
            token,
            undrained: true,
            to_submit: plan.messages,
            durable: BTreeSet::new(),
        }
    }

    const fn queue(&mut self, class: Class) -> &mut VecDeque<Bytes> {
        match class {
            Class::Data => &mut self.data,
            Class::Token => &mut self.token,
        }
    }

    fn handle(&mut self, now: Time, input: Input) {
        self.engine.handle(now, input);
        self.look();
    }

    /// Asks for the next output, unless one is stuck: there may be new ones.
    fn look(&mut self) {
        self.stuck = self.stuck.take().or_else(|| self.engine.poll_output());
        self.undrained = true;
    }

    /// What the driver may read now: the class that the engine asks for, else the other one; no
    /// token while outputs are on their way.
    fn readable(&self) -> Option<Class> {
        let first = self.engine.reading();
        [first, first.other()]
            .into_iter()
            .find(|class| match class {
                Class::Data => !self.data.is_empty(),
                Class::Token => !self.token.is_empty() && !self.undrained,
            })
    }

    fn timer_is_due(&self, now: Time) -> bool {
        self.engine.next_timer().is_some_and(|(at, _)| at <= now)
    }
}

impl World {
    pub fn new(plan: Plan) -> Self {
        let nodes: Vec<_> = plan
            .config
            .members
            .iter()
            .map(|&id| Node::new(&plan, id))
            .collect();
        let oracle = Oracle::new(plan.config.members.clone(), plan.config.trace);
        let (rng, faults) = (Rng::new(plan.seed), plan.faults);
        let (now, late, trace) = (Time(1), Vec::new(), 0xcbf2_9ce4_8422_2325);
        Self {
            plan,
            rng,
            now,
            faults,
            nodes,
            late,
            oracle,
            trace,
        }
    }

    /// Fair turns without faults, until all are on one ring and every application knows.
    pub fn form(&mut self) {
        let faults = std::mem::take(&mut self.faults);
        let mut last = vec![None; self.nodes.len()];
        for _ in 0..FORMING_ROUNDS {
            self.pass_time();
            for (at, last) in last.iter_mut().enumerate() {
                self.network_turn(at);
                self.take_configurations(at, last);
            }
            let all = |configuration: &Option<Configuration>| {
                configuration.as_ref().is_some_and(|configuration| {
                    matches!(configuration.kind, ConfigurationKind::Regular(_))
                        && configuration.members.len() == self.nodes.len()
                })
            };
            if last.iter().all(all) {
                for (at, configuration) in last.into_iter().flatten().enumerate() {
                    self.oracle.configured(at, configuration);
                }
                self.faults = faults;
                return;
            }
        }
        panic!("no ring of all: {last:?}; {:?}", self.plan);
    }

    fn take_configurations(&mut self, at: usize, last: &mut Option<Configuration>) {
        while let Some(delivery) = self.nodes[at].engine.poll_delivery() {
            match delivery {
                Delivery::Configuration(configuration) => *last = Some(configuration),
                other => panic!("nobody has sent {other:?}"),
            }
        }
        self.nodes[at].look();
    }

    /// Whether the ring has lost its token: without a fault that keeps tokens away it must not.
    fn is_broken(&self) -> bool {
        let lost = |node: &Node| node.engine.get().counters().token_losses;
        let broken = self.nodes.iter().any(|node| lost(node) > 0);
        let Faults {
            token_loss, delay, ..
        } = self.plan.faults;
        assert!(
            !broken || token_loss + delay > 0,
            "the token was lost and no fault explains it: {:?}",
            self.plan
        );
        let operational = |node: &Node| node.engine.get().phase_name() == "operational";
        assert!(
            broken || self.nodes.iter().all(operational),
            "a ring was left without a lost token"
        );
        broken
    }

    /// Random turns of random nodes, until all is submitted or the time is up.
    pub fn run_with_faults(&mut self) {
        for _ in 0..FAULTY_TURNS {
            if self.oracle.is_complete() && self.nodes.iter().all(|node| node.to_submit == 0) {
                break;
            }
            self.pass_time();
            let at = self.rng.below(self.nodes.len() as u64) as usize;
            self.turn(at);
            if self.is_broken() {
                break;
            }
        }
        self.faults = Faults::default();
    }

    /// Fair turns without faults or submissions, until everything is everywhere and the ring rests.
    pub fn run_to_the_end(&mut self) {
        let mut holds = None;
        for _ in 0..FAIR_ROUNDS {
            self.pass_time();
            for at in 0..self.nodes.len() {
                self.fair_turn(at);
            }
            if self.is_broken() {
                return;
            }
            let held = self.nodes[0].engine.get().counters().token_holds;
            if self.oracle.is_complete() && held > *holds.get_or_insert(held) {
                self.check_counters();
                return;
            }
        }
        panic!(
            "not delivered (node, how many): {:?}; {:?}",
            self.oracle.missing(),
            self.plan
        );
    }

    pub fn outcome(&self) -> Outcome {
        let sum = |get: fn(&RingEngine) -> u64| {
            self.nodes
                .iter()
                .map(|node| get(node.engine.get()))
                .sum::<u64>()
        };
        Outcome {
            trace: self.trace,
            retransmissions: sum(|engine| engine.counters().retransmissions),
            requested: sum(|engine| engine.counters().packets_requested),
            broken: self.is_broken(),
        }
    }

    /// A little later; if nobody has anything to do, as late as the next event.
    fn pass_time(&mut self) {
        self.now = self.now.after(self.rng.below(20 * MICROS));
        let busy = |node: &Node| node.undrained || node.readable().is_some();
        if !self.nodes.iter().any(busy) && self.rng.per_mille(300) {
            let timers = self
                .nodes
                .iter()
                .filter_map(|node| node.engine.next_timer());
            let late = self.late.iter().map(|late| late.at);
            if let Some(next) = timers.map(|(at, _)| at).chain(late).min() {
                self.now = self.now.max(next);
            }
        }
        let now = self.now;
        while let Some(due) = self.late.iter().position(|late| late.at <= now) {
            let Late {
                to, class, bytes, ..
            } = self.late.remove(due);
            self.nodes[to].queue(class).push_back(bytes);
        }
    }

    fn turn(&mut self, at: usize) {
        match self.rng.below(8) {
            0..=2 if self.rng.per_mille(self.plan.sending) => self.send_one(at),
            3..=4 => self.read(at),
            5 => self.fire_timer(at),
            6 if self.rng.per_mille(self.plan.appetite) => self.deliver(at, 5),
            7 => self.submit(at),
            _ => {}
        }
    }

    fn fair_turn(&mut self, at: usize) {
        self.network_turn(at);
        self.deliver(at, usize::MAX);
    }

    fn network_turn(&mut self, at: usize) {
        while self.nodes[at].undrained {
            self.send_one(at);
        }
        self.fire_timer(at);
        self.read(at);
    }

    fn fire_timer(&mut self, at: usize) {
        let now = self.now;
        if self.nodes[at].timer_is_due(now) {
            self.nodes[at].handle(now, Input::Timer);
        }
    }

    /// Reads a burst: neighbours in the queue that receive offload could have put together.
    fn read(&mut self, at: usize) {
        let most = self.rng.pick(&[1, 2, 8]);
        let now = self.now;
        let node = &mut self.nodes[at];
        let Some(class) = node.readable() else { return };
        let queue = node.queue(class);
        let first = queue.pop_front().expect("it is readable");
        let segment = first.len();
        let mut bytes = first.to_vec();
        let mut count = 1;
        while count < most
            && bytes.len() == count * segment
            && queue.front().is_some_and(|next| next.len() <= segment)
            && let Some(next) = queue.pop_front()
        {
            bytes.extend_from_slice(&next);
            count += 1;
        }
        let (channel, bytes) = (Channel(0), Bytes::from(bytes));
        node.handle(
            now,
            Input::Datagrams {
                class,
                channel,
                bytes,
                segment,
            },
        );
    }

    fn submit(&mut self, at: usize) {
        if self.nodes[at].to_submit == 0 {
            return;
        }
        let size = match self.rng.below(20) {
            0..15 => self.rng.below(100),
            15..19 => self.rng.below(3000),
            _ => self.rng.below(20_000),
        };
        let service = self.rng.pick(&self.plan.services);
        let mut content = Rng::new(self.rng.next());
        let payload: Vec<u8> = (0..size).map(|_| content.next() as u8).collect();
        let node = &mut self.nodes[at];
        match node.engine.submit(self.now, service, &payload) {
            Ok(counter) => self.oracle.submitted(node.id, counter, service, &payload),
            Err(error) => {
                assert_eq!(error, SubmitError::Full);
                return;
            }
        }
        node.look();
        node.to_submit -= 1;
    }

    fn deliver(&mut self, at: usize, most: usize) {
        for _ in 0..most {
            let Some(delivery) = self.nodes[at].engine.poll_delivery() else {
                return;
            };
            self.note(&[at as u8]);
            match delivery {
                Delivery::Configuration(configuration) => self.oracle.configured(at, configuration),
                Delivery::Message(message) => {
                    self.note(&message.position().to_le_bytes());
                    self.note(&message.payload);
                    let aru = |node: &Node| node.engine.get().ordering().map_or(0, |o| o.aru());
                    let lowest = self.nodes.iter().map(aru).min().unwrap_or(0);
                    self.oracle.delivered(at, &message, lowest);
                }
                Delivery::Passed { .. }
                | Delivery::Notice { .. }
                | Delivery::Primary(_)
                | Delivery::Excluded(_)
                | Delivery::Missed { .. } => {
                    panic!("not a ring's own")
                }
            }
        }
    }

    /// Carries out the next output.
    fn send_one(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let output = node.stuck.take().or_else(|| node.engine.poll_output());
        match output {
            None => node.undrained = false,
            Some(Output::Persist { id, .. }) => {
                node.durable.insert(id);
                node.handle(self.now, Input::Persisted { id });
            }
            Some(Output::Send {
                class,
                channel,
                to,
                burst,
                after,
            }) => {
                assert_eq!(channel, Channel(0));
                assert!(after.is_none_or(|id| node.durable.contains(&id)));
                self.check_burst(&burst);
                for datagram in burst.datagrams() {
                    self.note(datagram);
                    self.route(at, class, to, datagram);
                }
            }
            Some(Output::Originated {
                counter,
                seq,
                index,
            }) => {
                self.oracle.originated(node.id, counter, (seq, index));
            }
            Some(other) => panic!("a ring does not ask for {other:?}"),
        }
    }

    fn check_burst(&self, burst: &Burst) {
        assert!(!burst.bytes.is_empty() && burst.bytes.len() <= Burst::MAX_BYTES);
        assert!(burst.datagrams().count() <= Burst::MAX_SEGMENTS);
        // What forms a ring names its members, and is as large as they are many.
        let forming = matches!(burst.bytes[1] & 0x0f, 3 | 4);
        assert!(forming || burst.segment <= self.plan.config.datagram_bytes);
    }

    fn route(&mut self, from: usize, class: Class, to: Target, datagram: &[u8]) {
        for receiver in 0..self.nodes.len() {
            let wanted = match to {
                Target::Others => receiver != from,
                Target::Node(node) => self.nodes[receiver].id == node,
            };
            if wanted {
                self.carry(receiver, class, Bytes::copy_from_slice(datagram));
            }
        }
    }

    /// One datagram to one receiver, over a network that may lose, repeat, delay and swap.
    fn carry(&mut self, to: usize, class: Class, bytes: Bytes) {
        let Faults {
            data_loss,
            data_swap,
            token_loss,
            duplicate,
            delay,
        } = self.faults;
        let (loss, swap) = match class {
            Class::Data => (data_loss, data_swap),
            Class::Token => (token_loss, 0),
        };
        if self.rng.per_mille(loss) {
            return;
        }
        let late = class == Class::Token && self.rng.per_mille(delay);
        if late || self.rng.per_mille(duplicate) {
            let at = self.now.after(self.rng.below(30_000 * MICROS));
            self.late.push(Late {
                at,
                to,
                class,
                bytes: bytes.clone(),
            });
        }
        if !late {
            let queue = self.nodes[to].queue(class);
            queue.push_back(bytes);
            let last = queue.len() - 1;
            if last > 0 && self.rng.per_mille(swap) {
                self.nodes[to].queue(class).swap(last, last - 1);
            }
        }
    }

    /// Nothing here forges packets, so nobody may see one that contradicts what it knows.
    fn check_counters(&self) {
        for node in &self.nodes {
            let counters = node.engine.get().counters();
            let strange = [
                counters.token_invalid,
                counters.packets_beyond_window,
                counters.datagrams_malformed,
                counters.datagrams_foreign_cluster,
                counters.messages_broken,
            ];
            assert_eq!(strange, [0; 5], "node {}: {counters:?}", node.id);
            assert_eq!(node.engine.get().backlog(), 0);
        }
    }

    /// FNV-1a over everything sent and delivered.
    fn note(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.trace = (self.trace ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

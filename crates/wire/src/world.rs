//! The loop of the world: frames at the switch and turns of machines, in the order of their times.

use rota_core::contract::{Input, StartState, Time};

use crate::agenda::{Agenda, NEVER};
use crate::engines::{Counts, Simulated, process};
use crate::links::{self, Links};
use crate::meter::{Measured, Over, Run, Traffic};
use crate::node::{Arrival, Node};
use crate::setup::{EnginePlan, Setup};
use crate::source::Shared;
use crate::tape::{Passage, Tape};
use crate::wire::{Forwarded, Frame, Load, To, Wire};

/// Nanoseconds in a millisecond.
const MILLIS: u64 = 1_000_000;
/// The nodes have to be together by then.
const FORMED_BY: u64 = 60_000 * MILLIS;
/// The time from the moment at which all nodes are together to the load.
const REST: u64 = MILLIS;
/// The time for which messages may still be delivered when the load has ended.
const DRAIN: u64 = 2_000 * MILLIS;

/// The parts of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The nodes come together.
    Forming,
    /// The load has begun, and nothing is measured yet.
    WarmUp,
    Measured,
    /// The load has ended.
    Drain,
    Over,
}

/// What is counted beside the engines.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Packets dropped on purpose.
    pub lost: u64,
    /// Datagrams that a socket had no room for.
    pub overflown: u64,
    pub delivered: u64,
    pub submitted: u64,
    events: u64,
    dropped: u64,
    engines: Counts,
}

/// See the module page.
pub struct World<'a, E> {
    pub setup: &'a Setup,
    pub now: u64,
    /// The network cards, then the nodes.
    pub agenda: Agenda,
    pub wire: Wire,
    pub links: Option<Links>,
    pub nodes: Vec<Node<E>>,
    pub measured: Measured,
    pub tally: Tally,
    /// The bytes of a message.
    pub payload: Vec<u8>,
    /// The backlog up to which a full load fills an engine.
    pub window: usize,
    formed: usize,
    stage: Stage,
    stage_ends: u64,
    before: Tally,
    tape: Option<Tape>,
}

impl<'a, E: Simulated> World<'a, E> {
    pub fn new(setup: &'a Setup, engines: Vec<E>, is_taped: bool) -> Self {
        let nodes = setup.nodes;
        let wants_links = engines.iter().any(|engine| engine.wants_links());
        let made = engines.into_iter().enumerate();
        let made = made.map(|(at, engine)| Node::new(engine, process(at), (nodes, setup.seed)));
        let window = match &setup.engine {
            EnginePlan::Ring(ring) => 2 * ring.personal_window as usize,
            _ => usize::MAX,
        };
        Self {
            setup,
            now: 0,
            agenda: Agenda::new(2 * nodes),
            wire: Wire::new(&setup.wire, nodes),
            links: wants_links.then(|| Links::new(setup.links, nodes)),
            nodes: made.collect(),
            measured: Measured::new(nodes, setup.costs.client),
            tally: Tally::default(),
            payload: vec![0x5a; setup.message_bytes.max(8)],
            window,
            formed: 0,
            stage: Stage::Forming,
            stage_ends: FORMED_BY,
            before: Tally::default(),
            tape: is_taped.then(Tape::default),
        }
    }

    pub fn run(mut self) -> (Run, Tape) {
        self.start();
        while self.stage != Stage::Over {
            let (thing, time) = self.agenda.first();
            if time >= self.stage_ends {
                self.now = self.stage_ends;
                self.end_stage();
                continue;
            }
            self.now = time;
            self.tally.events += 1;
            match thing.checked_sub(self.setup.nodes) {
                None => self.cross(thing),
                Some(node) => self.step(node),
            }
            if self.stage == Stage::Drain && self.is_drained() {
                self.stage = Stage::Over;
            }
        }
        self.result()
    }

    fn start(&mut self) {
        for at in 0..self.nodes.len() {
            let node = &mut self.nodes[at];
            let state = StartState {
                me: node.process,
                seed: self.setup.seed,
                records: Vec::new(),
                lost_some: false,
            };
            node.mail.put(0, Input::Start(state));
            self.wake(at, 0);
        }
        if self.links.is_some() {
            self.connect_all();
        }
    }

    /// All links come up, a moment after the start.
    fn connect_all(&mut self) {
        let bytes = self.links.as_ref().map_or(0, Links::queue_bytes);
        for at in 0..self.nodes.len() {
            for other in (0..self.nodes.len()).filter(|other| *other != at) {
                for input in links::up(other, bytes) {
                    self.nodes[at].mail.put(MILLIS, input);
                }
            }
        }
    }

    /// A node has something to do at a time, or when it is done with what it does.
    pub fn wake(&mut self, at: usize, time: u64) {
        let slot = self.setup.nodes + at;
        let time = time.max(self.nodes[at].free);
        if time < self.agenda.time(slot) {
            self.agenda.set(slot, time);
        }
    }

    /// The switch has the next frame of a card.
    fn cross(&mut self, card: usize) {
        if let Some(frame) = self.wire.take(card) {
            match frame.to {
                To::One(to) => self.forward(&frame, (card, to)),
                To::Others => {
                    for to in (0..self.setup.nodes).filter(|to| *to != card) {
                        self.forward(&frame, (card, to));
                    }
                }
            }
        }
        self.agenda.set(card, self.wire.next(card));
    }

    fn forward(&mut self, frame: &Frame, way: (usize, usize)) {
        let Some(forwarded) = self.wire.forward(frame, way) else {
            return;
        };
        self.note(frame, way, forwarded);
        let Some(load) = frame.load.as_ref().filter(|_| forwarded.is_whole) else {
            return;
        };
        let (from, to) = way;
        let arrival = Arrival {
            from,
            load: load.clone(),
        };
        // Ways of different length may bring it before what is there.
        self.nodes[to].arrivals.put(forwarded.arrives, arrival);
        self.wake(to, forwarded.arrives);
    }

    /// Writes a frame down that is on the way in the measured time.
    fn note(&mut self, frame: &Frame, (from, to): (usize, usize), forwarded: Forwarded) {
        let since = self.measured.from;
        let Some(tape) = self.tape.as_mut().filter(|_| frame.leaves >= since) else {
            return;
        };
        let Some(Load::Datagram(_, bytes)) = &frame.load else {
            return;
        };
        let number = bytes.get(24..32).and_then(|bytes| bytes.try_into().ok());
        tape.note(Passage {
            from,
            to,
            is_token: crate::step::is_token(bytes),
            number: number.map_or(0, u64::from_le_bytes),
            leaves: frame.leaves - since,
            crosses: frame.crosses - since,
            forwarded: forwarded.from - since,
            arrives: forwarded.arrives - since,
        });
    }

    /// A node has delivered a configuration with all nodes.
    pub fn on_formed(&mut self, at: usize) {
        if std::mem::replace(&mut self.nodes[at].is_formed, true) {
            self.nodes[at].meter.reconfigurations += 1;
            return;
        }
        self.formed += 1;
        if self.formed == self.nodes.len() {
            self.stage_ends = self.now + REST;
        }
    }

    fn end_stage(&mut self) {
        let (from, span) = (self.now, self.setup.span);
        (self.stage, self.stage_ends) = match self.stage {
            Stage::Forming => {
                let nodes = self.nodes.len();
                assert!(self.formed == nodes, "the nodes did not come together");
                self.measured.from = from + span.warm_up;
                self.measured.until = self.measured.from + span.measured;
                self.begin_load();
                (Stage::WarmUp, self.measured.from)
            }
            Stage::WarmUp => {
                self.before = self.counted();
                (Stage::Measured, self.measured.until)
            }
            Stage::Measured => {
                let after = self.counted();
                self.before = difference(&after, &self.before);
                self.nodes.iter_mut().for_each(|node| node.source.end());
                (Stage::Drain, from + DRAIN)
            }
            Stage::Drain | Stage::Over => (Stage::Over, NEVER),
        };
    }

    fn begin_load(&mut self) {
        for at in (0..self.nodes.len()).filter(|at| self.setup.sends(*at)) {
            let shared = Shared::of(self.setup);
            self.nodes[at].source.begin(&shared, self.now);
            self.wake(at, self.now);
        }
    }

    fn counted(&self) -> Tally {
        let mut tally = self.tally;
        tally.dropped = self.wire.dropped;
        for counts in self.nodes.iter().map(|node| node.engine.counts()) {
            let all = &mut tally.engines;
            all.sent += counts.sent;
            all.resent += counts.resent;
            all.visits += counts.visits;
            all.tokens_resent += counts.tokens_resent;
        }
        tally
    }

    fn is_drained(&self) -> bool {
        self.tally.delivered == self.tally.submitted * self.nodes.len() as u64
    }

    fn result(self) -> (Run, Tape) {
        let of = &self.before;
        let traffic = Traffic {
            sent: of.engines.sent,
            resent: of.engines.resent,
            lost: of.lost,
            dropped: of.dropped,
            overflown: of.overflown,
            visits: of.engines.visits,
            tokens_resent: of.engines.tokens_resent,
            longest_queue: self.wire.longest_queue(),
        };
        let over = Over {
            meters: self.nodes.iter().map(|node| &node.meter).collect(),
            measured: &self.measured,
            traffic,
            submitted: self.tally.submitted,
            events: self.tally.events,
            now: self.now,
        };
        (over.run(), self.tape.unwrap_or_default())
    }

    /// The time now, for an engine.
    pub const fn time(clock: u64) -> Time {
        Time(clock)
    }
}

const fn difference(after: &Tally, before: &Tally) -> Tally {
    Tally {
        lost: after.lost - before.lost,
        overflown: after.overflown - before.overflown,
        delivered: after.delivered - before.delivered,
        submitted: after.submitted - before.submitted,
        events: after.events - before.events,
        dropped: after.dropped - before.dropped,
        engines: Counts {
            sent: after.engines.sent - before.engines.sent,
            resent: after.engines.resent - before.engines.resent,
            visits: after.engines.visits - before.engines.visits,
            tokens_resent: after.engines.tokens_resent - before.engines.tokens_resent,
        },
    }
}

#[cfg(test)]
pub mod tests {
    use rota_core::contract::Service;
    use rota_ring::{PriorityMethod, Protocol};

    use crate::setup::*;

    /// A small setup, for tests of parts.
    pub fn setup(nodes: usize, senders: usize) -> Setup {
        Setup {
            nodes,
            wire: WirePlan {
                rate: 1_000_000_000,
                path: 20_000,
                switch: 5_000,
                cut_through: false,
                port_bytes: 1 << 20,
                pool_bytes: None,
                card_bytes: 1 << 20,
                mtu: 1500,
                socket_bytes: 4 << 20,
                far: Vec::new(),
            },
            costs: Costs {
                interface: Interface::Single,
                send: 2_000,
                receive: 2_000,
                call: 1_000,
                send_byte: 0,
                receive_byte: 0,
                token: 4_000,
                submit: 0,
                deliver: 0,
                deliver_byte: 0,
                wake: 0,
                client: 0,
            },
            engine: EnginePlan::Ring(RingPlan {
                protocol: Protocol::Accelerated,
                personal_window: 20,
                accelerated_window: 15,
                method: PriorityMethod::First,
                datagram_bytes: 1472,
            }),
            load: Load::Rate(100_000_000),
            senders,
            message_bytes: 1350,
            service: Service::Agreed,
            loss: None,
            links: LinkPlan::default(),
            disk: DiskPlan::MEMORY,
            span: Span {
                warm_up: 10_000_000,
                measured: 50_000_000,
            },
            seed: 1,
        }
    }
}

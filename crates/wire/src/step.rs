//! One turn of a machine: it reads one thing, and does all that follows from it. Each part takes its time.

use bytes::Bytes;
use rota_core::contract::{Channel, Class, Input, NodeId, SubmitError, TimerReason};
use rota_core::wire::Kind;

use crate::agenda::NEVER;
use crate::engines::Simulated;
use crate::links;
use crate::setup::{Generated, Interface};
use crate::wire::Load;
use crate::world::World;

/// Datagrams that are read before a timer that is due.
const READS_BEFORE_TIMER: u32 = 8;
/// The time of a timer.
const TIMER: u64 = 100;
/// Datagrams that are read in one call at most.
const BURST: usize = 64;

/// Whether a datagram is the token of a ring.
pub fn is_token(datagram: &[u8]) -> bool {
    datagram
        .get(1)
        .is_some_and(|kind| kind & 0x0f == Kind::Token as u8)
}

/// A timer by which a token is missed: a token that waits to be read is not missed.
const fn is_of_token(reason: TimerReason) -> bool {
    matches!(
        reason,
        TimerReason::TokenRetransmit | TimerReason::TokenLoss
    )
}

impl<E: Simulated> World<'_, E> {
    /// A node's turn.
    pub fn step(&mut self, at: usize) {
        let mut clock = self.begin_turn(at);
        if let Some(input) = self.next_input(at, &mut clock) {
            self.release(at, &input, &mut clock);
            self.nodes[at].engine.handle(Self::time(clock), input);
            self.drain(at, &mut clock);
        }
        if self.offer(at, &mut clock) {
            self.drain(at, &mut clock);
        }
        self.end_turn(at, clock);
    }

    /// The node wakes up if it slept, and its sockets have what has come.
    fn begin_turn(&mut self, at: usize) -> u64 {
        let room = self.setup.wire.socket_bytes;
        let node = &mut self.nodes[at];
        let wake = if self.now > node.free {
            self.setup.costs.wake
        } else {
            0
        };
        let clock = self.now.max(node.free) + wake;
        node.source.is_full = false;
        while let Some((time, arrival)) = node.arrivals.take(clock) {
            match arrival.load {
                Load::Datagram(class, bytes) => {
                    let fits = node.socket(class).push(arrival.from, bytes, room);
                    self.tally.overflown += u64::from(!fits);
                }
                Load::Message(_, bytes) => node.mail.put(time, links::message(arrival.from, bytes)),
            }
        }
        clock
    }

    /// The next thing that the engine is told. `None` also if it is dropped on purpose.
    fn next_input(&mut self, at: usize, clock: &mut u64) -> Option<Input> {
        let node = &mut self.nodes[at];
        let timer = node.engine.next_timer();
        let is_missed = |reason| !(is_of_token(reason) && node.has_token());
        let is_due = timer.is_some_and(|(due, reason)| due.0 <= *clock && is_missed(reason));
        if !(is_due && node.reads >= READS_BEFORE_TIMER) {
            if let Some((_, input)) = node.mail.take(*clock) {
                return Some(self.open(at, clock, input));
            }
            let first = node.engine.reading();
            for class in [first, first.other()] {
                if let Some((from, datagram)) = self.nodes[at].socket(class).pop() {
                    self.nodes[at].reads += 1;
                    return self.read(at, clock, (class, from, datagram));
                }
            }
        }
        if !is_due {
            return None;
        }
        self.nodes[at].reads = 0;
        *clock += TIMER;
        Some(Input::Timer)
    }

    /// The engine has what the kernel has for it. A message of a link is read: its sender has more room.
    fn open(&mut self, at: usize, clock: &mut u64, mut input: Input) -> Input {
        let Some(links) = &mut self.links else {
            return input;
        };
        let opened = links.open(at, &mut input);
        *clock += opened.cost;
        if let Some((from, room)) = opened.told {
            let told = *clock + self.wire.back(at, from);
            self.nodes[from].mail.put(told, room);
            self.wake(from, told);
        }
        input
    }

    /// Reads a datagram, or with bursts all that wait behind it and are alike.
    fn read(
        &mut self,
        at: usize,
        clock: &mut u64,
        (class, from, datagram): (Class, usize, Bytes),
    ) -> Option<Input> {
        let costs = &self.setup.costs;
        if is_token(&datagram) {
            *clock += costs.token / 2;
            if self.nodes[at].source.generated() == Some(Generated::AtReceipt) {
                self.fill(at, *clock, *clock);
            }
        } else {
            *clock += costs.receive + datagram.len() as u64 * costs.receive_byte / 1000;
        }
        let is_lost = class == Class::Data && self.is_lost(at, from);
        let segment = datagram.len();
        let mut bytes = if is_lost { Bytes::new() } else { datagram };
        if costs.interface == Interface::Bursts && class == Class::Data {
            bytes = self.read_alike(at, clock, (from, segment, bytes));
        }
        (!bytes.is_empty()).then_some(Input::Datagrams {
            class,
            channel: Channel(0),
            bytes,
            segment,
        })
    }

    /// The datagrams behind one, in the same call.
    fn read_alike(
        &mut self,
        at: usize,
        clock: &mut u64,
        (from, segment, first): (usize, usize, Bytes),
    ) -> Bytes {
        let costs = self.setup.costs;
        let mut all = first.to_vec();
        let mut last = segment;
        for _ in 1..BURST {
            if last < segment || all.len() + segment > rota_core::contract::Burst::MAX_BYTES {
                break;
            }
            let Some(datagram) = self.nodes[at].socket(Class::Data).pop_alike(from, segment) else {
                break;
            };
            last = datagram.len();
            *clock += costs.receive - costs.call + last as u64 * costs.receive_byte / 1000;
            if !self.is_lost(at, from) {
                all.extend_from_slice(&datagram);
            }
        }
        all.into()
    }

    /// Whether a packet is to be lost here.
    fn is_lost(&mut self, at: usize, from: usize) -> bool {
        let Some(loss) = self.setup.loss else {
            return false;
        };
        let nodes = self.setup.nodes;
        let is_of = |distance: usize| (from + distance) % nodes == at;
        let is_lost = loss.distance.is_none_or(is_of)
            && self.nodes[at].random.below(1_000_000) < u64::from(loss.ppm);
        self.tally.lost += u64::from(is_lost);
        is_lost
    }

    /// Fills the engine to a full window, with messages that were made at a time.
    pub fn fill(&mut self, at: usize, clock: u64, made: u64) {
        while self.nodes[at].engine.backlog() < self.window / 2 {
            if !self.submit(at, clock, made) {
                break;
            }
        }
    }

    /// Submits what the application has by now. Returns whether it did.
    fn offer(&mut self, at: usize, clock: &mut u64) -> bool {
        let (client, cost) = (self.setup.costs.client, self.setup.costs.submit);
        let mut has = false;
        for _ in 0..self.nodes[at].source.in_a_row() {
            let node = &self.nodes[at];
            if node.source.next(*clock, node.engine.backlog(), self.window) > *clock {
                break;
            }
            let made = node.source.made(*clock, client);
            has |= self.submit(at, *clock, made);
            *clock += cost;
        }
        has
    }

    fn submit(&mut self, at: usize, clock: u64, made: u64) -> bool {
        self.payload[..8].copy_from_slice(&made.to_le_bytes());
        let node = &mut self.nodes[at];
        let service = self.setup.service;
        match node
            .engine
            .submit(Self::time(clock), service, &self.payload)
        {
            Ok(_) => {
                node.source.took();
                self.tally.submitted += 1;
                true
            }
            Err(SubmitError::Full) => {
                node.source.is_full = true;
                false
            }
            Err(error) => panic!("a setup has messages that its engine does not take: {error}"),
        }
    }

    fn end_turn(&mut self, at: usize, clock: u64) {
        let window = self.window;
        let node = &mut self.nodes[at];
        node.free = clock;
        let timer = node.engine.next_timer().map_or(NEVER, |(due, _)| due.0);
        let source = node.source.next(clock, node.engine.backlog(), window);
        let next = node.next_arrival(clock).min(timer).min(source);
        self.agenda.set(self.setup.nodes + at, next.max(clock));
    }
}

/// The number of a node, from 0.
pub const fn index(node: NodeId) -> usize {
    node.get() as usize - 1
}

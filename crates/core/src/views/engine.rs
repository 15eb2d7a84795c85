//! The engine around a data path: one view after the other.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use super::backlog::Backlog;
use super::exchange::Exchange;
use super::memory::Memory;
use super::outcome::Outcome;
use super::path::{DataPath, View};
use super::quorum::remembers_enough;
use crate::contract::{
    Configuration, ConfigurationKind, Delivery, Engine, Message, NodeId, Process, RingId,
    StartState, Time,
};
use crate::membership::{RING_SEQ_LOG, RingEngine};
use crate::primary::{Primary, Rule};

/// Nanoseconds after which a configuration counts as not primary, where members have to vote first.
const VOTE_AT_MOST: u64 = 200_000_000;

/// Uniform total order over primary configurations: a data path `P`, beside an idle ring `E` that says
/// who is there. See the module page of [`super`].
#[derive(Debug)]
pub struct ViewEngine<P, E = RingEngine> {
    pub(super) ring: Primary<E>,
    pub(super) path: P,
    pub(super) backlog: Backlog,
    pub(super) me: Option<Process>,
    pub(super) now: Time,
    pub(super) phase: Phase,
    pub(super) memory: Memory,
    /// What the application is to get before anything that the data path has.
    pub(super) deliveries: VecDeque<Delivery>,
    pub(super) counters: Counters,
    /// When datagrams of [`Class::Token`] were read last, or there were none.
    pub(super) tokens_read: Time,
    pub(super) rule: RuleOf,
}

/// What has to be known of the rule by which configurations are primary.
#[derive(Clone, Debug)]
pub(super) struct RuleOf {
    /// The nodes that a majority is counted among, if it is.
    pub configured: Option<Vec<NodeId>>,
    /// How long it takes to say that a configuration is primary, in nanoseconds.
    pub patience: u64,
}

/// What a process does with regard to views.
#[derive(Debug)]
pub(super) enum Phase {
    /// No configuration yet, or between two of them.
    Between,
    /// In a configuration that is not a view yet, and may never be one.
    Changing(Box<Exchange>),
    /// In a view.
    Operating(View),
    /// It has left.
    Left,
}

/// What the engine counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub exchanges: u64,
    pub installed: u64,
    pub tentative: u64,
    pub forced: u64,
    pub excluded: u64,
    pub forgotten: u64,
    /// Messages of the exchange whose sender breaks the rules.
    pub malformed: u64,
    /// Exchanges that ended without all packets that they had to bring.
    pub incomplete: u64,
}

impl<P: DataPath, E: Engine> ViewEngine<P, E> {
    /// A data path beside a ring, neither of which must have been started. Messages of this process
    /// wait in `backlog`; all nodes have the same `rule`. The ring's largest message has to have room for
    /// what a process holds: the names of the packets of one window.
    pub fn new(ring: E, rule: Rule, path: P, backlog: Backlog) -> Self {
        let rule_of = match &rule {
            Rule::StaticMajority { configured } => RuleOf {
                configured: Some(configured.clone()),
                patience: 0,
            },
            Rule::DynamicLinear { .. } => RuleOf {
                configured: None,
                patience: VOTE_AT_MOST,
            },
        };
        Self {
            ring: Primary::new(ring, rule),
            memory: Memory::new(backlog.message_bytes()),
            path,
            backlog,
            me: None,
            now: Time(0),
            phase: Phase::Between,
            deliveries: VecDeque::new(),
            counters: Counters::default(),
            tokens_read: Time(0),
            rule: rule_of,
        }
    }

    /// The data path.
    pub const fn path(&self) -> &P {
        &self.path
    }

    /// The data path, for what the contract does not cover.
    pub const fn path_mut(&mut self) -> &mut P {
        &mut self.path
    }

    /// The ring beside it, and what says which configurations are primary.
    pub const fn ring(&self) -> &Primary<E> {
        &self.ring
    }

    /// The view that this process is in.
    pub const fn view(&self) -> Option<&View> {
        match &self.phase {
            Phase::Operating(view) => Some(view),
            _ => None,
        }
    }

    /// The position that the next packet of messages will have.
    pub const fn next_position(&self) -> u64 {
        self.memory.account.position
    }

    /// Messages that others may count as delivered here though the application has not got them: it has not
    /// taken them yet, or it is not known whether they have to be delivered. Should this process die now, or
    /// be excluded, perhaps nobody ever delivers them. For models and simulations.
    pub fn undelivered(&self) -> impl Iterator<Item = (Process, RangeInclusive<u64>)> {
        let staged = self
            .deliveries
            .iter()
            .filter_map(|delivery| match delivery {
                Delivery::Message(Message { id, .. }) => {
                    Some((id.process, id.counter..=id.counter))
                }
                _ => None,
            });
        let known = &self.memory.account.watermarks;
        let tentative = self.memory.tentative.iter();
        let tentative = tentative.flat_map(|next| next.stretch.account.watermarks.iter());
        staged.chain(tentative.map(|(process, counter)| (process, known.of(process) + 1..=counter)))
    }

    /// See [`Primary::caught_up`].
    pub fn caught_up(&mut self, now: Time) {
        self.ring.caught_up(now);
    }

    pub(super) fn on_start(&mut self, start: &StartState) {
        self.me = Some(start.me);
        self.memory.forgot = start.records.iter().any(|(log, ..)| *log == RING_SEQ_LOG);
        self.path.start(start.me, start.seed);
    }

    /// Takes what the ring delivers, and does what follows from it.
    pub(super) fn pump(&mut self) {
        if matches!(self.phase, Phase::Left) {
            return;
        }
        loop {
            while let Some(delivery) = self.ring.poll_delivery() {
                self.on_ring(delivery);
            }
            self.advance();
            if !self.submit_words() {
                break;
            }
        }
        self.tell_excluded();
    }

    fn on_ring(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::Configuration(Configuration { kind, members }) => match kind {
                ConfigurationKind::Regular(ring) => self.on_regular(ring, members),
                ConfigurationKind::Transitional { .. } => self.on_transitional(),
            },
            Delivery::Primary(ring) => self.on_primary(ring),
            Delivery::Message(message) => self.on_message(&message),
            Delivery::Skips { .. } | Delivery::Excluded(_) => {}
        }
    }

    fn on_regular(&mut self, ring: RingId, members: Vec<Process>) {
        self.freeze();
        if let Some(me) = self.me {
            let exchange = Exchange::new(ring, members, me, self.now);
            self.phase = Phase::Changing(Box::new(exchange));
        }
    }

    fn on_transitional(&mut self) {
        self.freeze();
        if let Phase::Changing(exchange) = &mut self.phase {
            exchange.regular = false;
        }
    }

    /// The configuration of a view ends.
    fn freeze(&mut self) {
        if !matches!(self.phase, Phase::Operating(_)) {
            return;
        }
        self.phase = Phase::Between;
        let frozen = self.path.freeze(self.now);
        if let Some(ended) = &mut self.memory.installed {
            ended.frozen = frozen;
        }
    }

    fn on_primary(&mut self, ring: RingId) {
        if let Phase::Changing(exchange) = &mut self.phase
            && exchange.ring == ring
        {
            exchange.primary = true;
        }
    }

    fn on_message(&mut self, message: &Message) {
        let Phase::Changing(exchange) = &mut self.phase else {
            return;
        };
        let sound = exchange.on_message(message.id.process, &message.payload);
        self.counters.malformed += u64::from(!sound);
        self.advance();
    }

    /// Takes every step of the exchange that can be taken.
    fn advance(&mut self) {
        self.tell();
        self.send_all();
        self.end();
    }

    /// Tells what this process knows. Its application has first to take what came of earlier changes: what a
    /// process keeps for it is bounded so.
    fn tell(&mut self) {
        let Phase::Changing(exchange) = &mut self.phase else {
            return;
        };
        let due = exchange.step == Step::Silent && exchange.primary && exchange.regular;
        if due && self.deliveries.is_empty() {
            let note = Bytes::from(self.path.note());
            self.counters.exchanges += 1;
            exchange.tell(self.memory.recover(note));
        }
    }

    /// Whether what this process knows is told as soon as the application has taken everything.
    pub(super) fn is_telling_due(&self) -> bool {
        let Phase::Changing(exchange) = &self.phase else {
            return false;
        };
        exchange.step == Step::Silent && exchange.primary && self.deliveries.is_empty()
    }

    /// When all have told, sends what others lack.
    fn send_all(&mut self) {
        let Phase::Changing(exchange) = &mut self.phase else {
            return;
        };
        if exchange.step != Step::Told || !exchange.regular {
            return;
        }
        let Some(told) = exchange.all_told() else {
            return;
        };
        let configured = self.rule.configured.as_deref();
        let enough =
            configured.is_none_or(|nodes| remembers_enough(nodes, &exchange.members, &told));
        if !enough {
            self.counters.forgotten += 1;
            exchange.step = Step::Forgotten;
            return;
        }
        let outcome = Outcome::of(&exchange.members, &told);
        self.memory.forget_refuted(&outcome);
        if self.memory.tentative.len() < MOST_TENTATIVE {
            let last = outcome.last.as_ref().map(|(ring, _)| *ring);
            exchange.send_all(outcome, |id| self.memory.packet(last?, id));
        }
    }

    /// When all have sent what others lack, the view begins; or may have begun elsewhere.
    fn end(&mut self) {
        let Phase::Changing(exchange) = &mut self.phase else {
            return;
        };
        let Some((outcome, payloads)) = exchange.all_ended() else {
            return;
        };
        let this = (exchange.ring, exchange.members.as_slice());
        let Some(next) = self.memory.next::<P>(this, outcome, payloads) else {
            self.counters.incomplete += 1;
            exchange.step = Step::Done;
            return;
        };
        let notes = exchange.notes();
        exchange.step = Step::Done;
        if exchange.regular || mutants::on(Mutant::V10) {
            self.install(next, &notes);
        } else if !mutants::on(Mutant::V02) {
            self.counters.tentative += 1;
            self.memory.tentative.push(next);
        }
    }

    fn install(&mut self, next: super::memory::Next, notes: &[Bytes]) {
        let Some(me) = self.me else { return };
        let Ok(at) = next
            .members
            .binary_search_by_key(&me.node, |member| member.node)
        else {
            return;
        };
        let view = View {
            ring: next.ring,
            members: next.members.clone(),
            me: at,
        };
        self.counters.installed += 1;
        self.counters.forced += next.stretch.forced;
        self.deliveries.extend(self.memory.install(next));
        self.backlog.rewind(self.memory.account.watermarks.of(me));
        self.path.install(self.now, &view, notes);
        self.phase = Phase::Operating(view);
    }

    /// Submits what the exchange has to say; whether there was anything. What finds no room is tried again
    /// with the next input: room comes of tokens.
    fn submit_words(&mut self) -> bool {
        let mut any = false;
        let Phase::Changing(exchange) = &mut self.phase else {
            return false;
        };
        while let Some(bytes) = exchange.unsent() {
            if self.ring.submit(self.now, Service::Safe, bytes).is_err() {
                break;
            }
            exchange.sent();
            any = true;
        }
        any
    }

    /// When the application has to be told that it is in no view, if nothing comes before.
    pub(super) fn excluded_at(&self) -> Option<Time> {
        let Phase::Changing(exchange) = &self.phase else {
            return None;
        };
        if exchange.told_excluded || !exchange.regular {
            return None;
        }
        match exchange.step {
            Step::Forgotten => Some(self.now),
            _ if exchange.primary => None,
            _ => Some(exchange.since.after(self.rule.patience)),
        }
    }

    fn tell_excluded(&mut self) {
        if self.excluded_at().is_none_or(|at| at > self.now) {
            return;
        }
        let Phase::Changing(exchange) = &mut self.phase else {
            return;
        };
        exchange.told_excluded = true;
        self.counters.excluded += 1;
        // Of several in a row only the last says anything.
        let is_excluded = |delivery: &mut Delivery| matches!(delivery, Delivery::Excluded(_));
        self.deliveries.pop_back_if(is_excluded);
        self.deliveries.push_back(Delivery::Excluded(exchange.ring));
    }

    /// The next packet's messages.
    pub(super) fn take_packet(&mut self) -> bool {
        let Phase::Operating(view) = &self.phase else {
            return false;
        };
        let Some(packet) = self.path.poll_packet() else {
            return false;
        };
        let Some(sender) = view.members.get(usize::from(packet.id.sender)) else {
            return true;
        };
        let own = packet.load == Load::Own;
        self.memory
            .account
            .deliver(*sender, packet, &mut self.deliveries);
        if self.me == Some(*sender) && !own {
            self.backlog.packet_delivered();
            let delivered = self.memory.account.watermarks.of(*sender);
            self.backlog.delivered(delivered);
        }
        true
    }
}

//! The engine around a data path: one view after the other.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use super::backlog::Backlog;
use super::exchange::Exchange;
use super::memory::ViewHistory;
use super::path::{DataPath, Load, PacketId, View};
use super::standstill::{Appetite, Standstill};
use rota_core::contract::{
    Configuration, ConfigurationKind, Delivery, Engine, Message, NodeId, Process, RingId,
    StartState, Time,
};
use rota_core::primary::{Primary, Rule};
use rota_ring::{RING_SEQ_LOG, RingEngine};

/// Nanoseconds after which a configuration counts as not primary, where members have to vote first.
const VOTE_AT_MOST: u64 = 200_000_000;

/// Uniform total order over primary configurations: a data path `P`, beside an idle ring `E` that finds the members.
/// See the module page of [`super`].
#[derive(Debug)]
pub struct ViewEngine<P, E = RingEngine> {
    pub(super) ring: Primary<E>,
    pub(super) path: P,
    pub(super) backlog: Backlog,
    pub(super) me: Option<Process>,
    pub(super) now: Time,
    pub(super) phase: Phase,
    pub(super) memory: ViewHistory,
    /// The deliveries that the application gets before those of the data path.
    pub(super) deliveries: VecDeque<Delivery>,
    /// The packet that the data path delivered last, and its view; `None` if the present deliveries come of a change of
    /// views.
    pub(super) delivering: Option<(RingId, PacketId)>,
    pub(super) counters: Counters,
    /// The time at which datagrams of [`Class::Token`] were read last, or there were none.
    pub(super) tokens_read: Time,
    pub(super) appetite: Appetite,
    pub(super) standstill: Standstill,
    pub(super) rule: RuleOf,
}

/// The facts of the rule by which configurations are primary.
#[derive(Clone, Debug)]
pub(super) struct RuleOf {
    /// The nodes among which a majority is counted, under the static majority.
    pub configured: Option<Vec<NodeId>>,
    /// The time until a configuration without a word on it counts as not primary, in nanoseconds.
    pub patience: u64,
}

/// The state of a process with regard to views.
#[derive(Debug)]
pub(super) enum Phase {
    /// No configuration yet, or between two of them.
    Between,
    /// In a configuration that is not a view yet, and may never be one.
    Changing(Box<Exchange>),
    /// In a view.
    Operating(View),
    /// The process has left.
    Left,
}

/// The counters of the engine.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub exchanges: u64,
    pub installed: u64,
    pub tentative: u64,
    pub forced: u64,
    pub excluded: u64,
    pub forgotten: u64,
    /// Times in which nothing moved in a view for long.
    pub stuck: u64,
    /// Messages of the exchange whose sender breaks the rules.
    pub malformed: u64,
    /// Exchanges that ended without all packets that they had to bring.
    pub incomplete: u64,
}

impl<P: DataPath, E: Engine> ViewEngine<P, E> {
    /// A data path beside a ring, neither of which must have been started. Messages of this process
    /// wait in `backlog`; all nodes have the same `rule`. The ring has to take messages of
    /// [`WORD_BYTES`](super::WORD_BYTES).
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
            ring: Primary::new(ring, rule).carried_on_by_hand(),
            memory: ViewHistory::new(),
            path,
            backlog,
            me: None,
            now: Time(0),
            phase: Phase::Between,
            deliveries: VecDeque::new(),
            delivering: None,
            counters: Counters::default(),
            tokens_read: Time(0),
            appetite: Appetite::default(),
            standstill: Standstill::default(),
            rule: rule_of,
        }
    }

    /// The data path.
    pub const fn path(&self) -> &P {
        &self.path
    }

    /// The data path, for calls that the contract does not cover.
    pub const fn path_mut(&mut self) -> &mut P {
        &mut self.path
    }

    /// The ring beside the data path, in the layer that says which configurations are primary.
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

    /// The configuration in which an exchange is going on, if there is one.
    pub const fn changing(&self) -> Option<RingId> {
        match &self.phase {
            Phase::Changing(exchange) if exchange.primary && exchange.regular => {
                Some(exchange.ring)
            }
            _ => None,
        }
    }

    /// The configuration whose members this process has told all that they lack, with their number, until the view
    /// begins or the configuration ends. All words have left, or leave with the next outputs. For simulations.
    pub fn said(&self) -> Option<(RingId, usize)> {
        match &self.phase {
            Phase::Changing(exchange) if exchange.has_said() && self.ring.status().waiting == 0 => {
                Some((exchange.ring, exchange.members.len()))
            }
            _ => None,
        }
    }

    /// Whether this process has been in a view.
    pub const fn remembers(&self) -> bool {
        self.memory.installed.is_some()
    }

    /// The packet that brought the message delivered last, and its view; `None` if the message came of a change of
    /// views. For simulations.
    pub const fn delivering(&self) -> Option<(RingId, PacketId)> {
        self.delivering
    }

    /// The last view that this process was in, and its members. For simulations.
    pub fn last_view(&self) -> Option<(RingId, &[Process])> {
        let last = self.memory.installed.as_ref()?;
        Some((last.ring, &last.members))
    }

    /// Whether this process holds, or has held, a packet of a view it is a member of; `None` if it is in a later
    /// one, and has forgotten. For simulations.
    pub fn holds(&self, view: RingId, id: PacketId) -> Option<bool> {
        let Some(last) = self
            .memory
            .installed
            .as_ref()
            .filter(|last| last.ring >= view)
        else {
            return Some(false);
        };
        if last.ring > view {
            return None;
        }
        if matches!(self.phase, Phase::Operating(_)) {
            return self.path.holds(view, id);
        }
        let delivered = last.frozen.delivered.get(usize::from(id.sender));
        let is_here = delivered.is_some_and(|delivered| id.number <= *delivered)
            || last.frozen.held.iter().any(|held| held.packet.id == id);
        Some(is_here)
    }

    /// Whether all of its own messages are delivered, as far as it knows: perhaps while it was excluded.
    pub fn is_settled(&self) -> bool {
        self.backlog.is_delivered() && self.deliveries.is_empty()
    }

    /// The position that the next packet of messages will have.
    pub const fn next_position(&self) -> u64 {
        self.memory.account.position
    }

    /// Messages that others may count as delivered here though the application has not got them: it has not taken them
    /// yet, or it is not known whether they have to be delivered. If this process dies now, or is excluded, perhaps no
    /// process ever delivers them. For models and simulations.
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

    /// The number of times that this process had to keep the outcome of an exchange without knowing whether any member
    /// installed the view. For simulations.
    pub const fn outcomes_kept(&self) -> u64 {
        self.counters.tentative
    }

    /// See [`Primary::caught_up`].
    pub fn caught_up(&mut self, now: Time) {
        self.ring.caught_up(now);
    }

    pub(super) fn on_start(&mut self, start: &StartState) {
        self.me = Some(start.me);
        self.memory.lived_before = start.records.iter().any(|(log, ..)| *log == RING_SEQ_LOG);
        self.path.start(start.me, start.seed);
    }

    /// Takes the deliveries of the ring, and all steps that follow from them.
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
            Delivery::Passed { .. }
            | Delivery::Notice { .. }
            | Delivery::Excluded(_)
            | Delivery::Missed { .. } => {}
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

    /// Freezes the data path, as the configuration of a view ends.
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

    /// Delivers the messages of the next packet; returns whether there was a packet.
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
        self.delivering = Some((view.ring, packet.id));
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

impl<P, E> ViewEngine<P, E> {
    /// Its invariants.
    pub(super) fn check(&self) {
        self.backlog.check();
        self.memory.check();
        if let Phase::Changing(exchange) = &self.phase {
            exchange.check(self.me);
        }
        self.appetite.check();
        if let Phase::Operating(view) = &self.phase {
            assert!(view.me < view.members.len(), "this process is in its view");
            assert_eq!(Some(view.members[view.me]), self.me, "at its place");
            assert!(view.members.is_sorted(), "members are sorted");
            let last = self.memory.installed.as_ref();
            assert!(
                last.is_some_and(|last| last.ring == view.ring && last.members == view.members),
                "the last view that is remembered is this one"
            );
            assert!(
                self.memory.tentative.is_empty(),
                "no view before this one is in doubt"
            );
        }
        assert!(
            self.me.is_some() || matches!(self.phase, Phase::Between | Phase::Left),
            "it was started"
        );
    }
}

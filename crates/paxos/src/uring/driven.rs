//! The engine as its driver sees it.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

use super::acceptor_list::Unfit;
use super::accounts::{Command, Table};
use super::counters::URingCounters;
use super::engine::{Life, URing};
use super::lead::RoundCoordinator;
use super::membership::around;
use super::snapshot::Snapshot;
use super::status;
use super::stream::Stream;
use super::voter::Reopened;
use super::word::Word;
use crate::{Config, Instance, Round};
use rota_core::contract::{
    Class, Delivery, Engine, Input, LogId, NodeId, Output, Seq, Service, Status, SubmitError, Time,
    TimerReason,
};
use rota_core::invariants;
use rota_core::mutants::{self, Mutant};

impl URing {
    /// The number of the newest configuration; 0 if there is none.
    pub fn number(&self) -> Round {
        self.membership.number()
    }

    /// The newest configuration that this process knows.
    pub fn config(&self) -> Option<&Arc<Config>> {
        self.membership.config()
    }

    /// The first instance without a proposal of this process, which coordinates; `None` if it may propose nothing.
    pub fn proposed(&self) -> Option<Instance> {
        self.leading.as_ref().and_then(RoundCoordinator::proposed)
    }

    /// The first instance that it has not learnt. For simulations.
    pub fn learnt(&self) -> Instance {
        self.learning.next()
    }

    /// Whether it is in the ring, and knows where the round starts.
    pub fn is_operational(&self) -> bool {
        let begun = self.learning.learner.round();
        self.stream.is_some() && begun == self.number() && self.number() > 0
    }

    /// Whether all that was decided before the newest configuration is known to be with a majority of its acceptors. For
    /// simulations.
    pub fn is_complete(&self) -> bool {
        self.membership.complete() == self.number()
    }

    /// The bytes of values, others' and its own, that are here on their way to the coordinator. For tests.
    pub fn carried_bytes(&self) -> usize {
        self.stream.as_ref().map_or(0, Stream::carried_bytes)
    }

    /// Whether all of its own messages are delivered.
    pub fn is_settled(&self) -> bool {
        self.own.is_settled() && self.learning.is_settled()
    }

    /// Whether it observes: it learns, and is in no ring.
    pub fn observes(&self) -> bool {
        self.cx.observes()
    }

    /// The time until which this process, outside the ring, does not ask to be taken in, since it was left out again
    /// and again; `None` if it is in the ring, or asks.
    pub fn stays_out_until(&self) -> Option<Time> {
        let is_out = self.config().is_some() && self.stream.is_none();
        let until = self.membership.outside.joins_at();
        (is_out && until > self.cx.now).then_some(until)
    }

    /// The application has a state with everything before this snapshot, of a ring of this foundation: deliveries begin
    /// behind it. To be called before the start.
    pub fn resume(&mut self, founded: u64, base: Snapshot) {
        self.membership.foundation.resume(founded);
        self.learning.bases.begin_with(base);
    }

    /// The application wants the snapshot of a place to which it will come. Returns whether it will get it.
    pub fn want_snapshot(&mut self, next: Instance) -> bool {
        self.learning.want_snapshot(next)
    }

    /// The first instance of which the application was told nothing.
    pub const fn told(&self) -> Instance {
        self.learning.delivered.next
    }

    /// A snapshot that was wanted, when everything before it is on its way to the application.
    pub fn take_base(&mut self) -> Option<Snapshot> {
        self.learning.bases.take()
    }

    /// Has a command on the accounts ordered, with the time by which pins end: nanoseconds of a clock that is alike at
    /// all nodes. Returns whether it was taken; otherwise too many wait already, or the process has left.
    pub fn order_account(&mut self, now: Time, (command, time): (&Command, u64)) -> bool {
        let is_sound = Command::decode(command.encode(time).into()).is_some();
        debug_assert!(is_sound, "others would refuse it: {command:?}");
        let may = self.life != Life::Left && is_sound && !self.cx.observes();
        let is_taken = may && self.own.submit_account(command, time);
        if is_taken {
            self.cx.now = now;
            self.outbox.submitted = true;
        }
        is_taken
    }

    /// The instances that all acceptors keep for anybody, as this node has it: for a hold.
    pub const fn kept_instances(&self) -> u64 {
        self.cx.settings.acceptor.kept_instances
    }

    /// The accounts, as far as they are learnt.
    pub const fn accounts(&self) -> &Table {
        &self.learning.learnt().accounts
    }

    /// The list of acceptors with these nodes, for [`Self::order_account`], following the list with this number.
    /// `forced`: though no majority of them is there now.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn next_list(&self, nodes: &[NodeId], after: u64, forced: bool) -> Result<Command, Unfit> {
        let (settings, me) = (&self.cx.settings, self.cx.me.node);
        let may = (&settings.ring[..], &settings.observers[..]);
        let is_there = |node: NodeId| forced || node == me || self.links.at(node).is_some();
        let newest = self.accounts().acceptor_list();
        newest.next((nodes, after), may, is_there)
    }

    /// The nodes of the acceptors of the newest configuration.
    pub fn acceptors(&self) -> Vec<NodeId> {
        let config = self.membership.config();
        let acceptors = config.into_iter().flat_map(|config| &config.acceptors);
        acceptors.map(|who| who.node).collect()
    }

    /// The other nodes of which this process hears: those to which it has a link, and those that have a place in the
    /// ring, where it has one itself.
    pub fn heard(&self) -> BTreeSet<NodeId> {
        let linked = self.links.iter().map(|peer| peer.process.node);
        let config = self.membership.config().filter(|_| self.stream.is_some());
        let placed = config.into_iter().flat_map(|config| &config.ring);
        let all = linked.chain(placed.map(|process| process.node));
        all.filter(|node| *node != self.cx.me.node).collect()
    }

    /// Everything before this instance is decided, as far as this process knows.
    pub fn decided(&self) -> Instance {
        self.learning.learner.decided()
    }

    /// The first instance that is not forgotten here. For simulations.
    pub fn kept(&self) -> Instance {
        self.voter.kept()
    }

    /// Whether the ring was founded anew after the application's state, which then says nothing about this ring.
    pub fn is_refounded(&self) -> bool {
        self.membership.is_refounded(&self.cx)
    }

    /// A merge here waits until everything before an instance is known. To be called once: the coordinator is told
    /// until it is so.
    pub fn need(&mut self, now: Time, next: Instance) {
        if self.needs.need(now, next) {
            self.cx.now = now;
            self.outbox.submitted = true;
        }
    }

    /// The instance before which everything is waited for: here, until it is known, or elsewhere, as this process was
    /// told since the last call. A process that still waits says so again, so a need that cannot be granted hides no
    /// other.
    pub fn take_needed(&mut self) -> Option<Instance> {
        self.needs.take(self.learning.next())
    }
}

/// The log of the acceptor.
impl URing {
    /// Gives up the log, as the fate of its records is unknown: everybody is told, and the log is to be opened again.
    pub(super) fn give_up_log(&mut self) {
        if !self.voter.give_up(&self.cx) {
            return;
        }
        self.counters.uring_logs_given_up += 1;
        self.look_at_log();
        self.membership.foundation.stop();
        self.outbox.out.push_back(Output::Reopen);
        let here = Word::Hello(self.here());
        self.links.say_to_all(&here);
        self.look_again();
    }

    pub(super) fn on_reopened(&mut self, records: Vec<(LogId, u64, Bytes)>, lost_some: bool) {
        let (lacks, kept) = (Reopened::of(&self.membership), self.voter.kept());
        self.voter
            .on_reopened(&self.cx, (records, lost_some), &lacks);
        self.counters.uring_instances_lost += self.voter.kept() - kept;
        self.look_at_log();
    }

    /// The log has the whole state of this acceptor.
    pub(super) fn on_named(&mut self) {
        // The acceptor has not voted for proposals of this round that came meanwhile.
        let early = self.stream.is_some() && self.learning.learner.round() == self.number();
        if self.voter.on_named(early) {
            let here = Word::Hello(self.here());
            self.links.say_to_all(&here);
            self.try_to_found();
            if !mutants::on(Mutant::U100) {
                self.on_voting(self.cx.me.node);
            }
        }
    }
}

impl Engine for URing {
    fn handle(&mut self, now: Time, input: Input) {
        self.cx.now = now;
        if self.life == Life::Left {
            if let Input::Writable {
                peer,
                session,
                bytes,
            } = input
            {
                self.links.on_writable(peer, session, bytes);
            }
            return;
        }
        self.sending.heard();
        if matches!(input, Input::Timer) {
            self.sending.all_heard();
        }
        self.on_input(input);
        self.settle();
        if invariants::are_checked() {
            self.check();
        }
    }

    fn submit(&mut self, now: Time, service: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        self.cx.now = now;
        if self.life == Life::Left {
            return Err(SubmitError::Stopped);
        }
        if self.cx.observes() && !mutants::on(Mutant::U137) {
            return Err(SubmitError::Unsupported);
        }
        self.outbox.submitted = true;
        if self.learning.needed_bytes() >= self.cx.settings.acceptor.hold_bytes {
            return Err(SubmitError::Full);
        }
        self.own.submit(service, payload)
    }

    /// Only the coordinator of a round that has begun orders them, and at most 2³⁰ at once: others answer `Unsupported`.
    fn submit_skips_to(&mut self, now: Time, next: Seq) -> Result<(), SubmitError> {
        self.cx.now = now;
        self.outbox.submitted = true;
        match self.skip_to(next) {
            true => Ok(()),
            false => Err(SubmitError::Unsupported),
        }
    }

    fn leave(&mut self, now: Time) {
        self.cx.now = now;
        self.links.say_to_all(&Word::Leaving);
        self.life = Life::Left;
    }

    fn poll_output(&mut self) -> Option<Output> {
        if core::mem::take(&mut self.outbox.submitted) && self.life != Life::Left {
            self.settle();
        }
        self.next_output()
    }

    fn poll_delivery(&mut self) -> Option<Delivery> {
        if self.is_refounded() {
            return None;
        }
        let had_room = self.learning.hand_out.has_room();
        let delivery = self.learning.next_delivery(&self.cx);
        if !had_room && self.learning.hand_out.has_room() {
            self.outbox.poke = true;
        }
        delivery
    }

    fn reading(&self) -> Class {
        Class::Token
    }

    fn next_timer(&self) -> Option<(Time, TimerReason)> {
        if self.life != Life::Started {
            return None;
        }
        let now = self.cx.now;
        let ring = self.stream.as_ref();
        let (next, leads) = (self.learning.next(), self.leading.is_some());
        let heartbeat = self.cx.settings.patience.heartbeat;
        let times = [
            (
                self.outbox.poke.then_some(now),
                "u-ring: the application has room",
            ),
            (
                self.sending.has_more(ring).then_some(now),
                "ring paxos: more values to send",
            ),
            (
                self.catch_up.next_time(&self.cx),
                "u-ring: ask for what is missing",
            ),
            (
                self.membership.next_time(&around!(self)),
                "u-ring: who is there",
            ),
            (
                ring.and_then(|ring| ring.next_time(heartbeat)),
                "u-ring: the neighbours",
            ),
            (
                ring.and_then(Stream::overdue_at),
                "ring paxos: values that did not come",
            ),
            (
                self.voter.hangs_at(&self.cx),
                "u-ring: a disk that does not answer",
            ),
            (
                self.catch_up.watch.next_time(&self.cx),
                "u-ring: ask another acceptor for what is decided",
            ),
            (
                self.needs.next_time(next, leads),
                "u-ring: say what is needed",
            ),
            (
                self.outbox.reading.next_time(&self.cx),
                "u-ring: ask for what the log does not have",
            ),
        ];
        let times = times.into_iter();
        let (at, what) = times.filter_map(|(at, what)| Some((at?, what))).min()?;
        Some((at, TimerReason::Other(what)))
    }

    fn wants_links(&self) -> bool {
        true
    }

    fn status(&self) -> Status {
        let mut status = Status {
            state: status::state(self),
            waiting: self.own.waiting(),
            ..Status::default()
        };
        let counters = URingCounters {
            uring_messages_malformed: self.learning.hand_out.malformed,
            uring_instances_learnt: self.learning.next() - 1,
            uring_instances_forgotten: self.voter.kept() - 1,
            uring_words_dropped: self.links.dropped(),
            ..self.counters.clone()
        };
        counters.add_to(&mut status.counters);
        let configuration = ("uring_configuration", self.number());
        let needed = ("uring_needed_bytes", self.learning.needed_bytes());
        let bytes = self.voter.memory_bytes() + self.outbox.reading.bytes();
        let bytes = ("uring_memory_bytes", bytes as u64);
        let archived = ("uring_votes_in_log", self.voter.archived_votes() as u64);
        status
            .counters
            .extend([configuration, needed, bytes, archived]);
        status.notes.extend(status::needed(self));
        let rate = self.stream.as_ref().and_then(Stream::rate);
        let kbps = rate.map(|bits_per_second| bits_per_second / 1_000);
        status
            .counters
            .extend(kbps.map(|kbps| ("uring_rate_kbps", kbps)));
        status
    }
}

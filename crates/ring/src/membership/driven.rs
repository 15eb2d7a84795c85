//! The engine as its driver sees it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::hash::Hasher;

use super::engine::RingEngine;
use super::phase::{Phase, Step};
use crate::wire::Token;
use crate::{Counters, Ordering, RingConfig, RingConfigError};
use rota_core::contract::{
    Class, Delivery, Engine, Input, NodeId, Output, RingId, Seq, Service, Status, SubmitError,
    Time, TimerReason,
};
use rota_core::fingerprint::Fingerprint;
use rota_core::invariants;
use rota_core::mutants::{self, Mutant};

impl RingEngine {
    /// These nodes, ascending, are configured from now on: a ring that lacks some of them looks for them, and where no
    /// other may join, no ring forms with others. The installed ring stays as it is, also with a node that is not
    /// configured any more.
    ///
    /// # Errors
    /// [`RingConfigError::Members`]; then nothing has changed.
    pub fn set_members(&mut self, members: Vec<NodeId>) -> Result<(), RingConfigError> {
        let config = RingConfig {
            members,
            ..self.local.config.clone()
        };
        config.check()?;
        self.local.config = config;
        Ok(())
    }

    /// Its configuration.
    pub const fn config(&self) -> &RingConfig {
        &self.local.config
    }

    /// The ordering of the ring installed last.
    pub const fn ordering(&self) -> Option<&Ordering> {
        self.local.installed.ring()
    }

    /// The counters of the engine.
    pub const fn counters(&self) -> &Counters {
        &self.local.counters
    }

    /// Packets waiting for a token.
    pub fn backlog(&self) -> usize {
        self.local.outbox.len()
    }

    /// The state of A3: `starting`, `operational`, `gathering`, `committing`, `recovering` or `left`.
    pub const fn phase_name(&self) -> &'static str {
        self.phase.name()
    }

    /// The time until which this process leaves some other alone with which no ring held, or is silent itself; in the
    /// past if neither is so any more.
    pub fn leaves_alone_until(&self) -> Option<Time> {
        let local = &self.local;
        let mute = local.silence.mute_until(local.now);
        local.others.avoided_until().max(mute)
    }

    /// The ring to be on which this process recovers the packets of its old one.
    pub fn recovering(&self) -> Option<RingId> {
        self.next_ring().map(Ordering::ring)
    }

    fn next_ring(&self) -> Option<&Ordering> {
        match &self.phase {
            Phase::Recovery(recovery) => Some(recovery.ring()),
            _ => None,
        }
    }

    /// Whether this process has, or had, a packet of a ring; `None` if it knows that ring no more.
    pub fn has_received(&self, ring: RingId, seq: Seq) -> Option<bool> {
        let of_ring =
            |ordering: &Ordering| (ordering.ring() == ring).then(|| ordering.has_received(seq));
        let local = &self.local;
        let next = self.next_ring().and_then(of_ring);
        next.or_else(|| local.installed.ring().and_then(of_ring))
            .or_else(|| local.stages.rings().find_map(of_ring))
    }

    /// The `token_seq` and the ring of the token that this process keeps while its ring is idle.
    pub fn holds_token(&self) -> Option<(RingId, u64)> {
        let ring = self.local.installed.ring();
        let ring = ring.filter(|_| self.phase.is_operational())?;
        Some((ring.ring(), ring.holds()?))
    }

    /// Whether this process would take a token now.
    pub fn takes_token(&self, token: &Token) -> bool {
        if !matches!(self.phase, Phase::Operational | Phase::Recovery(_)) {
            return false;
        }
        let ring = self.phase.ring_in_use(&self.local);
        ring.is_some_and(|ring| ring.ring() == token.ring && ring.takes(token))
    }

    /// Feeds `hasher` with all that decides what this engine will do from now on: see the page of
    /// `fingerprint` for what is left out, and when that is fair. Its outputs and deliveries have to
    /// have been taken.
    pub fn fingerprint(&self, hasher: &mut impl Hasher) {
        let local = &self.local;
        let longest = 11 * local.config.timers.token_loss;
        let print = &mut Fingerprint::new(hasher, local.now, longest);
        self.phase.fingerprint(print, local);
        print.add((local.stages.len(), local.outputs.len(), self.release));
        print.add((local.me, &local.outbox, &local.sets));
        local.installed.fingerprint(print);
        local.durable.fingerprint(print);
        local.silence.fingerprint(print);
        local.others.fingerprint(print);
        local.merge.fingerprint(print, local.looks_for_absent());
    }

    /// Asserts the invariants of the engine and of its machines.
    fn check(&self) {
        let local = &self.local;
        self.phase.check(local);
        local.sets.check(local.me);
        local.installed.check(local.me, local.durable.agreed());
        local.joins.check();
        local.durable.check();
        local.silence.check(local.now);
        local.others.check(local.now);
        local.stages.check();
    }

    fn state(&self) -> String {
        let names = |nodes: &mut dyn Iterator<Item = NodeId>| {
            let names: Vec<String> = nodes.map(|node| node.to_string()).collect();
            names.join(", ")
        };
        match &self.phase {
            Phase::Operational => {
                let members = self.local.installed.members().iter();
                let members = names(&mut members.map(|member| member.node));
                format!("operational: {members}")
            }
            Phase::Gather(gather) => {
                let silent = gather.silent(&self.local.sets);
                match names(&mut silent.iter().map(|process| process.node)) {
                    // All agree: the token that is to form the ring is not there yet, or those who agree are one too few.
                    silent if silent.is_empty() => {
                        String::from("gathering: all have answered, and the ring does not form yet")
                    }
                    silent => format!("gathering: waiting for {silent}"),
                }
            }
            phase => String::from(phase.name()),
        }
    }

    /// Sentences for people: the settings in which others on the ring differ, the nodes that are left alone, and the
    /// reason why this process stays away from the others.
    fn notes(&self) -> Vec<String> {
        let local = &self.local;
        let ring = local.installed.ring();
        let mut notes = ring.map_or_else(Vec::new, |ring| ring.differences(&local.config));
        notes.extend(local.durable.electorates().differences());
        for (node, is_unsteady) in local.others.avoided(local.now) {
            let why = match is_unsteady {
                true => "it fell silent again and again, and the ring broke each time",
                false => "it is heard, and no ring with it holds",
            };
            notes.push(format!("node {node} is left alone for a while: {why}"));
        }
        if local.silence.hangs() {
            notes.push(String::from(
                "its application takes nothing, and all waited for it: it is on no ring until it does",
            ));
        }
        notes
    }
}

impl Engine for RingEngine {
    fn handle(&mut self, now: Time, input: Input) {
        self.local.now = now;
        match input {
            _ if matches!(self.phase, Phase::Left) => {}
            Input::Start(start) => self.local.start(&start),
            Input::Datagrams { bytes, segment, .. } => {
                if self.has_overslept() {
                    self.on_timer();
                }
                let segment = segment.max(1);
                let mut at = 0;
                while at < bytes.len() {
                    let end = (at + segment).min(bytes.len());
                    self.on_datagram(bytes.slice(at..end));
                    at = end;
                }
            }
            Input::Timer => self.on_timer(),
            Input::Unreachable { peer } => {
                let step = self.on_unreachable(peer);
                self.take(step);
            }
            Input::Persisted { id } => self.on_persisted(id),
            Input::PersistFailed { id, .. } => {
                let step = self.on_persist_failed(id);
                self.take(step);
            }
            // The ring uses no links and reads nothing back.
            Input::LinkUp { .. }
            | Input::LinkDown { .. }
            | Input::LinkMessage { .. }
            | Input::Writable { .. }
            | Input::Fetched { .. }
            | Input::Reopened { .. }
            | Input::Arbitrated { .. } => {}
        }
        if invariants::are_checked() {
            self.check();
        }
    }

    fn submit(&mut self, now: Time, service: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        self.local.now = now;
        if matches!(self.phase, Phase::Left) {
            return Err(SubmitError::Stopped);
        }
        let counter = self.local.outbox.push(service, payload)?;
        if self.has_overslept() {
            self.on_timer();
        }
        self.release_messages();
        Ok(counter)
    }

    fn leave(&mut self, now: Time) {
        self.local.now = now;
        self.leave_for_good();
    }

    fn electorates(&self, ring: RingId) -> Option<Vec<Vec<NodeId>>> {
        self.local.durable.electorates().on(ring)
    }

    fn carries_on(&mut self, now: Time, ring: RingId) {
        let local = &mut self.local;
        local.now = now;
        local.durable.on_carried_on(now, ring, &mut local.outputs);
    }

    fn look_again(&mut self, now: Time) {
        self.local.now = now;
        if !mutants::on(Mutant::V15) {
            self.local.others.hear_each();
        }
        if self.phase.is_operational() {
            self.local.leave_ring();
            self.take(Step::Gather);
        }
    }

    fn application_hangs(&mut self, now: Time, hangs: bool) {
        self.local.now = now;
        match hangs {
            true => {
                let step = self.leave_as_hung(true);
                self.take(step);
            }
            false => self.on_taken(true),
        }
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.local.outputs.poll()
    }

    fn poll_delivery(&mut self) -> Option<Delivery> {
        if !self.local.stages.is_empty() {
            let delivery = self.local.poll_stages();
            // The application may now have seen the configuration in which its messages will be sent.
            self.release = true;
            let caught_up = self.local.silence.on_stages(self.local.stages.len());
            if caught_up && self.phase.is_gather() {
                self.take(Step::Gather);
            }
            if delivery.is_some() {
                self.on_taken(false);
                return delivery;
            }
        }
        if self.local.config.trace && self.local.outputs.have_originated() {
            // A trace has to say that a message got its place before it says that it was delivered.
            return None;
        }
        let message = self
            .on_installed(|ring, ctx| ring.poll_message(ctx))
            .flatten();
        self.release |= self.local.installed.is_alone();
        if message.is_some() {
            self.on_taken(false);
        }
        message.map(Delivery::Message)
    }

    fn reading(&self) -> Class {
        match &self.phase {
            Phase::Operational | Phase::Recovery(_) => {
                let ring = self.phase.ring_in_use(&self.local);
                ring.map_or(Class::Token, Ordering::reading)
            }
            _ => Class::Token,
        }
    }

    fn next_timer(&self) -> Option<(Time, TimerReason)> {
        if self.release && self.may_release() {
            return Some((self.local.now, TimerReason::Other("release")));
        }
        self.phase.next_timer(&self.local)
    }

    fn status(&self) -> Status {
        Status {
            state: self.state(),
            counters: self.counters().by_name(),
            rotation: self.counters().rotation,
            peers: self.counters().peers.clone(),
            waiting: self.backlog(),
            notes: self.notes(),
        }
    }
}

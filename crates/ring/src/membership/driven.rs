//! The engine as its driver sees it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::engine::RingEngine;
use super::phase::Phase;
use crate::{Context, Ordering};
use rota_core::contract::{
    Class, Delivery, Engine, Input, NodeId, Output, RingId, Service, Status, SubmitError, Time,
    TimerReason,
};
use rota_core::invariants;
use rota_core::mutants::{self, Mutant};

const fn is_originated(output: &Output) -> bool {
    matches!(output, Output::Originated { .. })
}

impl RingEngine {
    fn state(&self) -> String {
        let names = |nodes: &mut dyn Iterator<Item = NodeId>| {
            let names: Vec<String> = nodes.map(|node| node.to_string()).collect();
            names.join(", ")
        };
        match &self.phase {
            Phase::Operational => {
                let members = self.installed.as_ref().map_or(&[][..], Ordering::members);
                let members = names(&mut members.iter().map(|member| member.node));
                format!("operational: {members}")
            }
            Phase::Gather(gather) => {
                let wanted = self.sets.members();
                let mut silent = wanted
                    .iter()
                    .filter(|process| !gather.consensus.contains(process))
                    .map(|process| process.node);
                match names(&mut silent) {
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
        let ring = self.installed.as_ref();
        let mut notes = ring.map_or_else(Vec::new, |ring| ring.differences(&self.config));
        notes.extend(self.electorates.differences());
        for (node, is_unsteady) in self.back_off.avoided(self.now) {
            let why = match is_unsteady {
                true => "it fell silent again and again, and the ring broke each time",
                false => "it is heard, and no ring with it holds",
            };
            notes.push(format!("node {node} is left alone for a while: {why}"));
        }
        if self.hangs.is_some() {
            notes.push(String::from(
                "its application takes nothing, and all waited for it: it is on no ring until it does",
            ));
        }
        notes
    }
}

impl Engine for RingEngine {
    fn handle(&mut self, now: Time, input: Input) {
        self.now = now;
        match input {
            _ if matches!(self.phase, Phase::Left) => {}
            Input::Start(start) => self.start(&start),
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
            Input::Unreachable { peer } => self.on_unreachable(peer),
            Input::Persisted { id } => self.on_persisted(id),
            Input::PersistFailed { id, .. } => self.on_persist_failed(id),
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
        self.now = now;
        if matches!(self.phase, Phase::Left) {
            return Err(SubmitError::Stopped);
        }
        let counter = self.outbox.push(service, payload)?;
        if self.has_overslept() {
            self.on_timer();
        }
        self.release_messages();
        Ok(counter)
    }

    fn leave(&mut self, now: Time) {
        self.now = now;
        self.leave_for_good();
    }

    fn electorates(&self, ring: RingId) -> Option<Vec<Vec<NodeId>>> {
        self.electorates.on(ring)
    }

    fn carries_on(&mut self, now: Time, ring: RingId) {
        self.now = now;
        self.electorates.on_carried_on(ring);
        self.save_electorates();
    }

    fn look_again(&mut self, now: Time) {
        self.now = now;
        self.hears_each = !mutants::on(Mutant::V15);
        if matches!(self.phase, Phase::Operational) {
            self.leave_ring();
            self.gather();
        }
    }

    fn application_hangs(&mut self, now: Time, hangs: bool) {
        self.now = now;
        match hangs {
            true => self.leave_as_hung(true),
            false => self.on_taken(true),
        }
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn poll_delivery(&mut self) -> Option<Delivery> {
        if !self.stages.is_empty() {
            let mut context = Context {
                now: self.now,
                outbox: &mut self.outbox,
                hold_messages: true,
                outputs: &mut self.outputs,
                counters: &mut self.counters,
            };
            let delivery = self.stages.poll(&mut context);
            // The application may now have seen the configuration in which its messages will be sent.
            self.release = true;
            self.mind_stages();
            if delivery.is_some() {
                self.on_taken(false);
                return delivery;
            }
        }
        if self.config.trace && self.outputs.iter().any(is_originated) {
            // A trace has to say that a message got its place before it says that it was delivered.
            return None;
        }
        let message = self
            .on_installed(|ring, ctx| ring.poll_message(ctx))
            .flatten();
        self.release |= self.is_alone();
        if message.is_some() {
            self.on_taken(false);
        }
        message.map(Delivery::Message)
    }

    fn reading(&self) -> Class {
        match &self.phase {
            Phase::Operational => self
                .installed
                .as_ref()
                .map_or(Class::Token, Ordering::reading),
            Phase::Recovery(recovery) => recovery.next.reading(),
            _ => Class::Token,
        }
    }

    fn next_timer(&self) -> Option<(Time, TimerReason)> {
        if self.release && self.may_release() {
            return Some((self.now, TimerReason::Other("release")));
        }
        match &self.phase {
            Phase::Idle => Some((self.disk_pause_until, TimerReason::Commit)),
            Phase::Operational => {
                let ring = self.installed.as_ref().and_then(Ordering::next_timer);
                let merge = self
                    .looks_for_absent()
                    .then_some((self.presence_at, TimerReason::Merge));
                [ring, merge].into_iter().flatten().min()
            }
            Phase::Gather(gather) => Some(gather.next_timer()),
            Phase::Commit(committing) => Some(committing.next_timer()),
            Phase::Recovery(recovery) => recovery.next_timer(),
            Phase::Left => None,
        }
    }

    fn status(&self) -> Status {
        Status {
            state: self.state(),
            counters: self.counters.by_name(),
            rotation: self.counters.rotation,
            peers: self.counters.peers.clone(),
            waiting: self.backlog(),
            notes: self.notes(),
        }
    }
}

//! What a process says while it gathers, and of whom.

use alloc::collections::BTreeSet;

use super::engine::RingEngine;
use super::phase::Phase;
use crate::send_to;
use crate::wire::{Join, Packet};
use rota_core::contract::{Burst, Channel, Class, Output, Process, Target};
use rota_core::mutants::{self, Mutant};

/// Answers to one process between two joins to all: two processes that answer each other must come to
/// an end.
const ANSWERS: u32 = 3;

/// Answers to all processes together in that time: who makes up processes gets no more out of it.
const ALL_ANSWERS: u32 = 64;

/// Joins to all at once when the sets change, before the next waits for its time: many that start
/// together bring news many times (A10, join storms).
const JOINS: u32 = 8;

impl RingEngine {
    /// Says what has changed, unless that was so many times since it last was time.
    pub(super) fn send_join_at_once(&mut self) {
        if matches!(&self.phase, Phase::Gather(gather) if gather.said < JOINS) {
            self.send_join();
        }
    }

    pub(super) fn send_join(&mut self) {
        let timers = self.config.timers;
        let wait = timers.join + self.random.below(timers.join / 2 + 1);
        let now = self.now;
        if let Phase::Gather(gather) = &mut self.phase {
            gather.join_at = now.after(wait);
            gather.answered.clear();
            gather.said += 1;
        }
        if self.is_silent() {
            return;
        }
        self.counters.joins_sent += 1;
        let join = self.join(false);
        self.say_to_others(&Packet::Join(join));
    }

    /// Tells one process, which may not know it, what this one believes: a few times between two joins
    /// to all.
    pub(super) fn answer(&mut self, process: Process) {
        if self.is_silent() {
            return;
        }
        let Phase::Gather(gather) = &mut self.phase else {
            return;
        };
        let all: u32 = gather.answered.values().sum();
        let answers = gather.answered.entry(process).or_default();
        if *answers < ANSWERS && all < ALL_ANSWERS {
            *answers += 1;
            self.counters.joins_sent += 1;
            let join = self.join(false);
            self.outputs.push_back(send_to(
                process.node,
                &Packet::Join(join),
                self.config.seal_bytes,
            ));
        }
    }

    /// How much longer than others this process waits before it gives somebody up, so that its word does not part those who hear each
    /// other: where it comes to more than were on its ring, they know better; and who agrees to no ring with somebody whom it does
    /// not hear itself leaves it to the others to give it up.
    pub(super) fn modesty(&self) -> u64 {
        let ring = self
            .installed
            .as_ref()
            .map_or(0, |ring| ring.members().len());
        let is_guest = 2 * ring < self.sets.procs.len() && !mutants::on(Mutant::M60);
        match self.hears_each || is_guest {
            true => self.config.timers.token_loss,
            false => 0,
        }
    }

    /// Of whom this process says that it wants a ring with them.
    fn wanted(&self) -> BTreeSet<Process> {
        let mut said = self.sets.said();
        if self.hears_each {
            let is_heard = |process: &Process| {
                *process == self.me
                    || self.heard.contains_key(process)
                    || self.sets.fails.contains(process)
            };
            said.retain(is_heard);
        }
        said
    }

    pub(super) fn join(&self, leaving: bool) -> Join {
        Join {
            cluster: self.config.cluster,
            sender: self.me,
            ring_seq: self.ring_seq.max,
            leaving,
            procs: self.wanted(),
            fails: self.sets.fails.clone(),
        }
    }

    pub(super) fn say_to_others(&mut self, packet: &Packet) {
        self.outputs.push_back(Output::Send {
            class: Class::Token,
            channel: Channel::default(),
            to: Target::Others,
            burst: Burst::single(packet.encode_sealed(self.config.seal_bytes)),
            after: None,
            pace: None,
        });
    }
}

//! The joins that a process sends while it gathers.

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

/// Answers to all processes together in that time: a stranger that makes up processes gets no more out of it.
const ALL_ANSWERS: u32 = 64;

/// Joins to all that go out at once when the sets change, before the next waits for its time: many processes that start
/// together bring news many times (A10, join storms).
const JOINS: u32 = 8;

impl RingEngine {
    /// Sends a join to all at once, as the sets have changed, unless `JOINS` were sent since one was due by time.
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

    /// Sends a join to one process that may not know the beliefs of this one: a few times between two joins to all.
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

    /// The time, in nanoseconds, that this process waits longer than others before it gives processes up, so that its
    /// word does not part processes that hear each other. A process waits longer if less than half of the process set
    /// was on its ring: the others know better. So does a process that agrees to no ring with a process that it does
    /// not hear itself: it leaves it to the others to give that one up.
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

    /// The process set of a join of this process.
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

//! The engine as its driver sees it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::counters::URingCounters;
use super::engine::URing;
use super::stream::Stream;
use super::word::Word;
use crate::contract::{
    Class, Delivery, Engine, Input, NodeId, Output, Process, Seq, Service, Status, SubmitError,
    Time, TimerReason,
};
use crate::mutants::{self, Mutant};
use crate::paxos::{AcceptorId, Config, Instance, Round};

impl URing {
    /// The number of the newest configuration; 0 if there is none.
    pub fn number(&self) -> Round {
        self.config.as_ref().map_or(0, |config| config.number)
    }

    /// The newest configuration that this process knows.
    pub fn config(&self) -> Option<&Arc<Config>> {
        self.config.as_ref()
    }

    /// The first instance that this process, which coordinates, has proposed nothing for; `None` if it may propose nothing.
    pub fn proposed(&self) -> Option<Instance> {
        let leading = self.leading.as_ref();
        let leading = leading.filter(|leading| leading.knows_what_counts());
        leading.map(|leading| leading.machine.next())
    }

    /// Up to where it has learnt. For simulations.
    pub fn learnt(&self) -> Instance {
        self.learner.next()
    }

    /// Whether it is in the ring, and knows where the round starts.
    pub fn is_operational(&self) -> bool {
        self.stream.is_some() && self.learner.round() == self.number() && self.number() > 0
    }

    /// Whether all that was decided before the newest configuration is known to be with a majority of its acceptors. For
    /// simulations.
    pub fn is_complete(&self) -> bool {
        self.complete == self.number()
    }

    /// What others' values and its own take here on their way to the coordinator, in bytes. For tests.
    pub fn carried_bytes(&self) -> usize {
        self.stream.as_ref().map_or(0, Stream::carried_bytes)
    }

    /// Whether all of its own messages are delivered.
    pub fn is_settled(&self) -> bool {
        let told = self.told.next >= self.learner.next();
        self.own.is_settled() && told && self.hand_out.is_empty()
    }

    /// Until when this process, outside the ring, does not ask to be taken in, since it was left out again and again; `None` if it is
    /// in the ring, or asks.
    pub fn stays_out_until(&self) -> Option<Time> {
        let is_out = self.config.is_some() && self.stream.is_none();
        let until = self.election.join;
        (is_out && until > self.now).then_some(until)
    }

    pub(super) fn on_timer(&mut self) {
        let now = self.now;
        let is_due = |at: Option<Time>| at.is_some_and(|at| at <= now);
        if is_due(self.hangs_at()) {
            self.on_late_disk();
        }
        if is_due(self.fetch_at()) {
            self.on_fetch_timer();
        }
        if is_due(self.election_at()) {
            self.on_election_timer();
        }
        if is_due(self.multicast_at()) {
            self.on_multicast_timer();
        }
        if let Some(stream) = &mut self.stream {
            stream.on_time(now, self.settings.patience.heartbeat);
        }
    }

    fn state(&self) -> String {
        let Some(config) = &self.config else {
            return match (self.resumed(), self.is_refounded()) {
                (0, _) => "waiting for all acceptors: the cluster is not founded".to_string(),
                (_, false) => {
                    "waiting for the others: there is a state, and no configuration".to_string()
                }
                (_, true) => {
                    "the others have founded the cluster anew: the state is of the one before"
                        .to_string()
                }
            };
        };
        let names = |processes: &[Process]| {
            let names: Vec<String> = processes.iter().map(|who| who.node.to_string()).collect();
            names.join(", ")
        };
        let number = config.number;
        if !self.foreign.is_empty() && self.stream.is_none() {
            return format!(
                "outside: the others have founded the cluster anew; configuration {number} is another one's"
            );
        }
        if self.stream.is_none() {
            let lost = self.lost_stores().unwrap_or_default();
            return format!("outside the ring of configuration {number}{lost}");
        }
        if !self.is_operational() {
            let waits = self.waits_for().unwrap_or_default();
            return format!("configuration {number} begins{waits}");
        }
        if let Some(missing) = self.missing_majority() {
            let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
            let (missing, all) = (missing.join(", "), config.acceptors.len());
            return format!(
                "no majority: nothing is ordered, as of the {all} acceptors these are not there: {missing} \
                 (configuration {number})"
            );
        }
        let (ring, coordinator) = (names(&config.ring), config.coordinator.node);
        // What has become of a log that was given up the driver says.
        let log = if self.disk.damaged {
            "; its log cannot be read, it votes for nothing"
        } else if self.disk.refill.is_some() {
            "; its log gets what it lacks, it votes for nothing until then"
        } else {
            ""
        };
        format!("operational: {ring} (configuration {number}, coordinator {coordinator}){log}")
    }
}

impl URing {
    /// That no majority of the acceptors has its store, if those that are there say so: nothing goes on by itself then.
    fn lost_stores(&self) -> Option<String> {
        let config = self.config.as_ref()?;
        let now = |who: &AcceptorId| {
            if who.node == self.me.node {
                return self.votes().then(|| self.acceptor.id());
            }
            self.peers.at(who.node)?.here?.acceptor
        };
        let is_other = |who: &&AcceptorId| now(who).is_some_and(|now| now != **who);
        let lost: Vec<String> = config
            .acceptors
            .iter()
            .filter(is_other)
            .map(|who| who.node.to_string())
            .collect();
        let all = config.acceptors.len();
        let is_majority_left = 2 * (all - lost.len()) > all;
        (!is_majority_left).then(|| {
            let (count, nodes) = (lost.len(), lost.join(", "));
            format!(": {count} of its {all} acceptors have lost their stores ({nodes})")
        })
    }

    /// Acceptors of the configuration to which there is no link, if so many that no majority of them is there. For the status
    /// alone: links that are down in one place only do not keep the ring from ordering along the others.
    fn missing_majority(&self) -> Option<Vec<NodeId>> {
        let config = self.config.as_ref()?;
        let is_there = |who: &AcceptorId| {
            let process = config.ring.iter().find(|process| process.node == who.node);
            process.is_some_and(|process| self.is_there(*process))
        };
        let acceptors = config.acceptors.iter();
        let missing: Vec<NodeId> = acceptors
            .filter(|who| !is_there(who))
            .map(|who| who.node)
            .collect();
        let is_majority_there = 2 * missing.len() < config.acceptors.len();
        (!is_majority_there).then_some(missing)
    }

    /// What the round waits for, as far as this process knows.
    fn waits_for(&self) -> Option<String> {
        let next = self.learner.next();
        if let Some(lack) = &self.lack {
            let missing = lack.upto.saturating_sub(next);
            return Some(format!(": {missing} instances to learn"));
        }
        let nodes = self.unpromised().into_iter();
        let nodes: Vec<String> = nodes.map(|node| node.to_string()).collect();
        (!nodes.is_empty()).then(|| format!(": waits for promises of {}", nodes.join(", ")))
    }
}

impl Engine for URing {
    fn handle(&mut self, now: Time, input: Input) {
        self.now = now;
        if self.left {
            if let Input::Writable {
                peer,
                session,
                bytes,
            } = input
            {
                self.peers.on_writable(peer, session, bytes);
            }
            return;
        }
        self.spare.heard();
        if matches!(input, Input::Timer) {
            self.spare.all_heard();
        }
        self.on_input(input);
        self.settle();
    }

    fn submit(&mut self, now: Time, service: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        self.now = now;
        if self.left {
            return Err(SubmitError::Stopped);
        }
        self.submitted = true;
        self.own.submit(service, payload)
    }

    /// Only the coordinator of a round that has begun orders them, and at most 2³⁰ at once: others answer `Unsupported`.
    fn submit_skips_to(&mut self, now: Time, next: Seq) -> Result<(), SubmitError> {
        self.now = now;
        self.submitted = true;
        match self.skip_to(next) {
            true => Ok(()),
            false => Err(SubmitError::Unsupported),
        }
    }

    fn leave(&mut self, now: Time) {
        self.now = now;
        self.peers.say_to_all(&Word::Leaving);
        self.left = true;
    }

    fn poll_output(&mut self) -> Option<Output> {
        if core::mem::take(&mut self.submitted) && !self.left {
            self.settle();
        }
        self.next_output()
    }

    fn poll_delivery(&mut self) -> Option<Delivery> {
        if self.is_refounded() {
            return None;
        }
        let had_room = self.hand_out.has_room();
        let early = mutants::on(Mutant::U92).then(|| self.pass()).flatten();
        let delivery = early.or_else(|| self.hand_out.next());
        let delivery = delivery.or_else(|| self.pass());
        if !had_room && self.hand_out.has_room() {
            self.poke = true;
        }
        delivery
    }

    fn reading(&self) -> Class {
        Class::Token
    }

    fn next_timer(&self) -> Option<(Time, TimerReason)> {
        if self.left || !self.started {
            return None;
        }
        let poke = self
            .poke
            .then_some((self.now, "u-ring: the application has room"));
        let fetch = self
            .fetch_at()
            .map(|at| (at, "u-ring: ask for what is missing"));
        let election = self.election_at().map(|at| (at, "u-ring: who is there"));
        let ring = self.ring_at().map(|at| (at, "u-ring: the neighbours"));
        let more = self.has_more();
        let more = more.then_some((self.now, "ring paxos: more values to send"));
        let values = self.multicast_at();
        let values = values.map(|at| (at, "ring paxos: values that did not come"));
        let disk = self.hangs_at();
        let disk = disk.map(|at| (at, "u-ring: a disk that does not answer"));
        let needs = self.needs_at();
        let needs = needs.map(|at| (at, "u-ring: say what is needed"));
        let times = [poke, more, fetch, election, ring, values, disk, needs]
            .into_iter()
            .flatten();
        let (at, what) = times.min()?;
        Some((at, TimerReason::Other(what)))
    }

    fn wants_links(&self) -> bool {
        true
    }

    fn status(&self) -> Status {
        let mut status = Status {
            state: self.state(),
            waiting: self.own.waiting(),
            ..Status::default()
        };
        let counters = URingCounters {
            uring_messages_malformed: self.hand_out.malformed,
            uring_instances_learnt: self.learner.next() - 1,
            uring_instances_forgotten: self.acceptor.kept() - 1,
            uring_words_dropped: self.peers.dropped(),
            ..self.counters.clone()
        };
        counters.add_to(&mut status.counters);
        let configuration = ("uring_configuration", self.number());
        status.counters.extend([configuration]);
        let cast = self.stream.as_ref().and_then(|stream| stream.cast.as_ref());
        let rate = cast.and_then(|cast| cast.rate.as_ref());
        let kbps = rate.map(|rate| rate.bits_per_second() / 1_000);
        status
            .counters
            .extend(kbps.map(|kbps| ("uring_rate_kbps", kbps)));
        status
    }
}

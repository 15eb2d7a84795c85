//! Standing for the configuration that follows: what is wanted, and what the register says.

use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

use super::codec::{Source, put_config};
use super::config::Arbiter;
use super::disk::Effect;
use super::elect::{Candidacy, Why};
use super::engine::URing;
use super::word::{Arbitration, Here, Word};
use crate::contract::{NodeId, Output, Process};
use crate::mutants::{self, Mutant};
use crate::paxos::{self, AcceptorId, Candidate, Config, Round};

/// Who lacks no more instances than these may well coordinate: so many votes are told soon.
pub(super) const MOST_BEHIND: u64 = 256;

impl URing {
    /// Stands for a configuration without those that are not there, and with all who want to come in. `suspect`: one
    /// that may seem to be there. `lead`: with another coordinator, which is this process unless it yields.
    pub(super) fn stand(&mut self, suspect: Option<Process>, lead: bool) {
        self.election.tries = 0;
        self.try_later();
        let why = Why {
            suspect,
            lead,
            yields: self.yields(),
        };
        let (Some(wanted), Some(config)) = (self.wanted(why), &self.config) else {
            return;
        };
        self.counters.uring_candidacies += 1;
        self.election.why = why;
        if wanted.coordinator != config.coordinator {
            self.election.yielded = why.yields;
        }
        self.election.candidate = Some(match self.settings.arbiter {
            Arbiter::Service => Candidacy::Service(wanted),
            Arbiter::Embedded => {
                let (number, voters) = (wanted.number, config.acceptors.clone());
                // One candidate for each number: its ballots begin with 1.
                Candidacy::Register(Candidate::new(number, voters, self.me, 1, wanted))
            }
        });
        self.say_candidacy(None);
    }

    /// What this process wants to follow now; `None` if too few acceptors are there for it.
    pub(super) fn wanted(&self, why: Why) -> Option<Arc<Config>> {
        let config = self.config.as_ref()?;
        let there = |process: &Process| self.is_there(*process) && Some(*process) != why.suspect;
        let stay = config.ring.iter().copied().filter(there);
        let stay: Vec<Process> = stay.chain([self.me]).collect();
        let with = |come: Vec<Process>| {
            let all = stay.iter().copied().chain(come);
            let mut ring = self.sort(all.filter(there).chain([self.me]));
            ring.dedup();
            let acceptors = self.acceptors_of(config, &ring);
            let nodes = Self::nodes(&ring);
            let voters = acceptors.iter().filter(|who| nodes.contains(&who.node));
            (2 * voters.count() > acceptors.len()).then_some((ring, acceptors))
        };
        let come = with(self.joining().collect());
        // Who waits to be taken in is needed.
        let all = || with(self.outside(|_| !mutants::on(Mutant::U86)).collect());
        let (ring, acceptors) = come.or_else(all)?;
        let coordinator = self.coordinator_of(config, &ring, &acceptors, why)?;
        let next = config.next(self.complete, coordinator, ring, acceptors);
        Some(Arc::new(next))
    }

    /// Who has said that it wants to come in, and knows the newest configuration.
    pub(super) fn joining(&self) -> impl Iterator<Item = Process> {
        self.outside(|here| here.joins)
    }

    /// Who is not in the ring, knows the newest configuration, and says something more of itself.
    fn outside(&self, says: impl Fn(&Here) -> bool) -> impl Iterator<Item = Process> {
        let number = self.number();
        let config = self.config.as_ref();
        let is_meant = move |here: &Here| says(here) && here.number == number;
        let peers = self.peers.iter();
        peers
            .filter(move |peer| peer.here.as_ref().is_some_and(&is_meant))
            .map(|peer| peer.process)
            .filter(move |process| config.is_some_and(|config| !config.ring.contains(process)))
    }

    /// Those of the configuration; where a node in the ring has lost its store, with its new one.
    fn acceptors_of(&self, config: &Config, ring: &[Process]) -> Vec<AcceptorId> {
        let now = |who: &AcceptorId| {
            let process = ring.iter().find(|process| process.node == who.node)?;
            if *process == self.me {
                return self.votes().then(|| self.acceptor.id());
            }
            let now = self.peers.acceptor_of(*process);
            now.filter(|now| now.node == who.node)
        };
        let acceptors = config.acceptors.iter();
        acceptors.map(|who| now(who).unwrap_or(*who)).collect()
    }

    /// Whether another one should rather coordinate: who lacks much of what is decided would have to be told all of it
    /// first. But not twice: others may know no more, or may not be able to.
    fn yields(&self) -> bool {
        let is_behind = self.learner.is_behind(MOST_BEHIND) && !mutants::on(Mutant::U39);
        is_behind && !self.election.yielded
    }

    /// The same coordinator, if it is there; else this process, if it does not yield; else the next one in the ring that
    /// votes.
    fn coordinator_of(
        &self,
        config: &Config,
        ring: &[Process],
        acceptors: &[AcceptorId],
        why: Why,
    ) -> Option<Process> {
        let votes = |process: &Process| acceptors.iter().any(|who| who.node == process.node);
        if !why.lead && ring.contains(&config.coordinator) {
            return Some(config.coordinator);
        }
        let me = ring.iter().position(|process| *process == self.me)?;
        let first = me + usize::from(why.yields);
        let mut in_order = ring[first..].iter().chain(&ring[..first]).copied();
        // Others' logs may have failed.
        let well =
            |process: &Process| *process == self.me || self.peers.acceptor_of(*process).is_some();
        let best = in_order.clone().find(|who| votes(who) && well(who));
        best.or_else(|| in_order.find(votes))
    }

    /// What the candidate has to say: to one of the voters, or to all and the service.
    pub(super) fn say_candidacy(&mut self, to: Option<NodeId>) {
        let candidate = match &self.election.candidate {
            Some(Candidacy::Register(candidate)) => candidate,
            Some(Candidacy::Service(wanted)) if to.is_none() => {
                let mut bytes = Vec::new();
                put_config(&mut bytes, wanted);
                return self.out.push_back(Output::Arbitrate {
                    number: wanted.number,
                    wanted: bytes.into(),
                });
            }
            Some(Candidacy::Service(_)) | None => return,
        };
        let voters = candidate.voters().iter().map(|who| who.node);
        let voters: Vec<NodeId> = voters
            .filter(|node| to.is_none_or(|to| to == *node))
            .collect();
        let word = Word::Ask(candidate.number(), candidate.word());
        for node in voters {
            self.say(node, word.clone());
        }
    }

    /// An acceptor is asked about the configuration after its own.
    pub(super) fn on_ask(&mut self, node: NodeId, number: Round, word: Arbitration) {
        let Some(config) = &self.config else {
            return;
        };
        if number <= config.number {
            let known = Word::Known(config.clone());
            return self.say(node, known);
        }
        let votes = self.votes() && config.acceptors.contains(&self.acceptor.id());
        if number != config.number + 1 || !votes || self.is_well_without(node) {
            return;
        }
        let Some(answer) = self.register.on_word(number, word) else {
            return;
        };
        let slot = self.register.slot(number);
        let only_accepted =
            |slot: &&paxos::Slot<_>| !mutants::on(Mutant::U58) || slot.accepted.is_some();
        if let Some(slot) = slot.filter(only_accepted) {
            self.disk.put_slot(number, slot);
        }
        let answer = Word::Answer(number, self.acceptor.id(), answer);
        let effect = Effect::Say(node, answer);
        match mutants::on(Mutant::U90) {
            true => self.disk.then(effect),
            // The next configuration must not wait for votes at a disk that is behind.
            false if !mutants::on(Mutant::U02) => self.disk.then_first(effect),
            false => self.ready.push(effect),
        }
    }

    /// Whether a node is outside a ring in which this process is, and which has begun and has its coordinator: that it has no link
    /// to the coordinator itself is no reason for another one. Those in the ring see what is wrong there: who stands itself has.
    fn is_well_without(&self, node: NodeId) -> bool {
        let config = self.config.as_ref();
        let outside = |config: &Arc<Config>| {
            let is_in = config.ring.iter().any(|process| process.node == node);
            !is_in && self.is_there(config.coordinator)
        };
        let stands = self.election.candidate.is_some();
        let is_well = !stands && self.is_operational() && config.is_some_and(outside);
        is_well && !mutants::on(Mutant::U87)
    }

    /// The service says which configuration has a number.
    pub(super) fn on_arbitrated(&mut self, number: Round, chosen: Bytes) {
        let mut source = Source(chosen);
        let config = source.config().filter(|_| source.is_over());
        match config.filter(|config| config.number == number) {
            Some(config) => self.know(&config),
            None => self.counters.uring_messages_refused += 1,
        }
    }

    /// An acceptor has answered the candidate.
    pub(super) fn on_answer(
        &mut self,
        node: NodeId,
        number: Round,
        who: AcceptorId,
        word: Arbitration,
    ) {
        let Some(Candidacy::Register(candidate)) = &mut self.election.candidate else {
            return;
        };
        if candidate.number() != number || who.node != node {
            return;
        }
        let is_asking = |word: &Arbitration| matches!(word, paxos::Word::Prepare(_));
        let asked = is_asking(&candidate.word());
        let chosen = candidate.on_word(who, word);
        let goes_on = asked && !is_asking(&candidate.word());
        if let Some(config) = chosen {
            self.know(&config);
        } else if goes_on {
            self.say_candidacy(None);
        }
    }
}

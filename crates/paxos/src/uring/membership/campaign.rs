//! The campaign for the next configuration: the wanted configuration, and the answers of the register.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

use super::super::codec::Source;
use super::super::config::Arbiter;
use super::super::disk::Effect;
use super::super::peers::Peer;
use super::super::word::{Arbitration, Hello, Word};
use super::candidacy::{Campaign, CampaignReason};
use super::{Around, Membership, sort};
use crate as paxos;
use crate::{AcceptorId, Ballot, Candidate, Config, Round, has_acceptor_of};
use rota_core::contract::{NodeId, Process};
use rota_core::mutants::{self, Mutant};

/// A process that lacks no more instances than these may well coordinate: this number of votes is told soon.
pub const MOST_BEHIND: u64 = 256;

impl Membership {
    /// Stands for a configuration without processes that are not there, and with all that want to come in. `suspect`: a
    /// process to leave out though it may seem to be there. `lead`: with another coordinator, which is this process
    /// unless it yields. `false` if too few acceptors are there for it.
    pub fn stand(&mut self, around: &Around<'_>, suspect: Option<Process>, lead: bool) -> bool {
        self.candidacy.begin();
        self.try_later(around);
        let why = CampaignReason {
            suspect,
            lead,
            yields: self.yields(around),
        };
        let own = self.promised();
        let (Some(wanted), Some(config)) = (self.wanted(around, why), &self.config) else {
            return false;
        };
        let is_other = wanted.coordinator != config.coordinator;
        let campaign = match around.cx.settings.arbiter {
            Arbiter::Service => Campaign::Service(wanted),
            Arbiter::Embedded => {
                let (number, voters) = (wanted.number, config.acceptors.clone());
                // One candidate for each number: no ballot of its own was before.
                let count = own.map_or(0, |ballot| ballot.count).saturating_add(1);
                Campaign::Register(Candidate::new(number, voters, around.cx.me, count, wanted))
            }
        };
        self.candidacy.stand(campaign, why, is_other);
        true
    }

    /// Stands again, as the register has not answered: with a higher ballot, and for the configuration that is wanted
    /// now. `false`: not now.
    pub fn stand_again(&mut self, around: &Around<'_>) -> bool {
        self.try_later(around);
        if self.stands_in_the_way(around) {
            return false;
        }
        let wanted = self.wanted(around, self.candidacy.why());
        let own = self.promised();
        self.candidacy.stand_again(own, wanted)
    }

    /// The ballot that this acceptor has promised. A candidate that did not go beyond it would trail for ever behind another one whose
    /// tries fall between its own.
    fn promised(&self) -> Option<Ballot> {
        let slot = self.slot().filter(|_| !mutants::on(Mutant::U121));
        slot.and_then(|slot| slot.promised)
    }

    /// Whether this process is outside a ring whose coordinator is there again: the coordinator may be standing to take
    /// it in. The candidacy remains, as its ballots have been used.
    fn stands_in_the_way(&self, around: &Around<'_>) -> bool {
        let there =
            |config: &Arc<Config>| self.is_there(around.cx, around.links, config.coordinator);
        let is_led = around.ring.is_none() && self.config.as_ref().is_some_and(there);
        is_led && !mutants::on(Mutant::U122)
    }

    fn try_later(&mut self, around: &Around<'_>) {
        let Self {
            candidacy, random, ..
        } = self;
        candidacy.try_later(around.cx, |end| random.below(end));
    }

    /// The configuration that this process wants now; `None` if too few acceptors are there for it.
    fn wanted(&self, around: &Around<'_>, why: CampaignReason) -> Option<Arc<Config>> {
        let (cx, links) = (around.cx, around.links);
        let config = self.config.as_ref()?;
        let there =
            |process: &Process| self.is_there(cx, links, *process) && Some(*process) != why.suspect;
        let stay = config.ring.iter().copied().filter(there);
        let stay: Vec<Process> = stay.chain([cx.me]).collect();
        let nearer = self.nearer(around);
        let nearer = nearer.filter(|_| why.suspect.is_none() && !why.lead);
        let with = |come: &[Process], voting: &dyn Fn(&Process) -> bool| {
            let all = stay.iter().chain(come).copied();
            let mut ring = sort(cx, all.filter(there).chain([cx.me]));
            ring.dedup();
            let now = acceptors_of(around, config, &ring);
            let nearer = nearer.as_ref().filter(|_| now == config.acceptors);
            let acceptors = nearer.cloned().unwrap_or(now);
            let voting = ring.iter().filter(|process| voting(process));
            let nodes: BTreeSet<NodeId> = voting.map(|process| process.node).collect();
            let voters = acceptors.iter().filter(|who| nodes.contains(&who.node));
            (2 * voters.count() > acceptors.len()).then_some((ring, acceptors))
        };
        let joining: Vec<Process> = self.joining(around).collect();
        let outside = self.outside(around, |_| !mutants::on(Mutant::U86));
        let outside: Vec<Process> = outside.collect();
        // Processes that wait to be taken in are needed if the logs of others are away; and the knowledge of those logs
        // may be old.
        let votes =
            |process: &Process| votes_as(around, *process).is_some() || mutants::on(Mutant::U102);
        let well = with(&joining, &votes).or_else(|| with(&outside, &votes));
        let any = || with(&joining, &|_| true).or_else(|| with(&outside, &|_| true));
        let (ring, acceptors) = well.or_else(any)?;
        let coordinator = coordinator_of(around, config, (&ring, &acceptors), why)?;
        let mut next = config.next(self.complete, coordinator, ring, acceptors);
        if mutants::on(Mutant::U155) && next.acceptors != config.acceptors {
            next.prior.clear();
        }
        Some(Arc::new(next))
    }

    /// Processes that have said that they want to come in, and know the newest configuration.
    pub(super) fn joining(&self, around: &Around<'_>) -> impl Iterator<Item = Process> {
        self.outside(around, |here| here.joins)
    }

    /// Processes outside the ring that know the newest configuration, and whose hello passes `says`; no observers.
    fn outside(
        &self,
        around: &Around<'_>,
        says: impl Fn(&Hello) -> bool,
    ) -> impl Iterator<Item = Process> {
        let (cx, links, number) = (around.cx, around.links, self.number());
        let config = self.config.as_ref();
        let is_meant = move |here: &Hello| says(here) && here.number == number;
        let peers = links.iter();
        let may_come =
            move |peer: &&Peer| !cx.is_observer(peer.process.node) || mutants::on(Mutant::U139);
        peers
            .filter(may_come)
            .filter(move |peer| peer.here.as_ref().is_some_and(&is_meant))
            .map(|peer| peer.process)
            .filter(move |process| config.is_some_and(|config| !config.ring.contains(process)))
    }

    /// Whether another process should rather coordinate: one that lacks many decided instances would have to be told
    /// all of them first. No process yields twice: others may know no more, or may not be able to coordinate.
    fn yields(&self, around: &Around<'_>) -> bool {
        let is_behind = around.learning.learner.is_behind(MOST_BEHIND);
        is_behind && !mutants::on(Mutant::U39) && !self.candidacy.has_yielded()
    }

    /// An acceptor is asked about the configuration after its own. Returns its answer, for when that is durable.
    /// `is_well`: it is in a ring that orders.
    pub fn on_ask(
        &mut self,
        around: &Around<'_>,
        (node, is_well): (NodeId, bool),
        (number, word): (Round, Arbitration),
    ) -> Option<Effect> {
        let (config, voter) = (self.config.as_ref()?, around.voter);
        let votes = voter.votes() && config.acceptors.contains(&voter.id());
        let is_well = is_well && self.is_well_without(around, node);
        if number != config.number + 1 || !votes || is_well {
            return None;
        }
        let answer = self.register.on_word(number, word)?;
        let answer = Word::Answer(number, voter.id(), answer);
        Some(Effect::Say(node, answer))
    }

    /// The state that the register has to remember for the answer it has just given.
    pub fn to_remember(&self) -> Option<(Round, &super::Slot)> {
        let only_accepted =
            |slot: &&paxos::Slot<_>| !mutants::on(Mutant::U58) || slot.accepted.is_some();
        let slot = self.slot().filter(only_accepted)?;
        Some((self.number() + 1, slot))
    }

    /// Whether the ring is well without a node: the node is outside, the coordinator is there, and this process does
    /// not stand. A node outside without a link to the coordinator is no reason for another configuration: members of
    /// the ring see faults of the ring themselves, and then stand.
    fn is_well_without(&self, around: &Around<'_>, node: NodeId) -> bool {
        let outside = |config: &Arc<Config>| {
            let is_in = config.ring.iter().any(|process| process.node == node);
            !is_in && self.is_there(around.cx, around.links, config.coordinator)
        };
        let stands = self.candidacy.stands();
        let is_well = !stands && self.config.as_ref().is_some_and(outside);
        is_well && !mutants::on(Mutant::U87)
    }
}

/// The configuration with this number that the service has chosen.
pub fn arbitrated(number: Round, chosen: Bytes) -> Option<Arc<Config>> {
    let mut source = Source(chosen);
    let config = source.config().filter(|_| source.is_over());
    config.filter(|config| config.number == number)
}

/// The acceptor as which a process votes, as far as it has said; `None` if its log is away.
pub(super) fn votes_as(around: &Around<'_>, process: Process) -> Option<AcceptorId> {
    match process == around.cx.me {
        true => around.voter.votes().then(|| around.voter.id()),
        false => around.links.acceptor_of(process),
    }
}

/// The acceptors of the configuration; a node in the ring that has lost its store with its new one.
fn acceptors_of(around: &Around<'_>, config: &Config, ring: &[Process]) -> Vec<AcceptorId> {
    let now = |who: &AcceptorId| {
        let process = ring.iter().find(|process| process.node == who.node)?;
        let now = votes_as(around, *process);
        now.filter(|now| now.node == who.node)
    };
    let acceptors = config.acceptors.iter();
    acceptors.map(|who| now(who).unwrap_or(*who)).collect()
}

/// The same coordinator, if it is there, votes, and no other one is wanted; else this process, if it does not yield; else the
/// next one in the ring that votes.
fn coordinator_of(
    around: &Around<'_>,
    config: &Config,
    (ring, acceptors): (&[Process], &[AcceptorId]),
    why: CampaignReason,
) -> Option<Process> {
    let votes = |process: &Process| has_acceptor_of(acceptors, process.node);
    let votes_on = votes(&config.coordinator) || mutants::on(Mutant::U159);
    let stays = ring.contains(&config.coordinator) && votes_on;
    if !why.lead && stays {
        return Some(config.coordinator);
    }
    let me = around.cx.me;
    let place = ring.iter().position(|process| *process == me)?;
    let first = place + usize::from(why.yields);
    let mut in_order = ring[first..].iter().chain(&ring[..first]).copied();
    // Others' logs may have failed.
    let well = |process: &Process| *process == me || votes_as(around, *process).is_some();
    let best = in_order.clone().find(|who| votes(who) && well(who));
    best.or_else(|| in_order.find(votes))
}

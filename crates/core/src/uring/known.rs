//! Configurations: the first one, and what follows when one becomes known.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use super::config::Arbiter;
use super::disk::Effect;
use super::elect::Candidacy;
use super::engine::URing;
use super::peers::Peer;
use super::stream::Stream;
use super::word::{Here, Word};
use crate::contract::{NodeId, Process};
use crate::mutants::{self, Mutant};
use crate::paxos::{AcceptorId, Config, Round};

/// The wait to be taken in doubles up to so many times that of the first: who is left out again and again costs the others a
/// twentieth of the time at most.
pub(super) const MOST_WAITS: u64 = 96;
/// Nobody waits longer than so many times that of the first before it stands itself, or asks once more.
pub(super) const MOST_PUT_OFF: u64 = 16;

impl URing {
    pub(super) fn sort(&self, processes: impl Iterator<Item = Process>) -> Vec<Process> {
        let place = |node: NodeId| self.settings.ring.iter().position(|other| *other == node);
        let mut sorted: Vec<Process> = processes.collect();
        sorted.sort_by_key(|process| (place(process.node), process.node));
        sorted
    }

    /// The first of the acceptors founds the cluster when all of them are there, and none has ever been in one.
    pub(super) fn try_to_found(&mut self) {
        let is_founder = self.settings.acceptors.first() == Some(&self.me.node);
        // An application that has a state goes on with what that came from.
        if !is_founder || self.config.is_some() || !self.votes() || self.resumed() > 0 {
            return;
        }
        let acceptor = |node: &NodeId| {
            if *node == self.me.node {
                return Some(self.acceptor.id());
            }
            let here = self.peers.at(*node)?.here?;
            let acceptor = here.acceptor.filter(|_| here.number == 0);
            acceptor.filter(|who| who.node == *node)
        };
        let all = self.settings.acceptors.len();
        let enough = if mutants::on(Mutant::U13) {
            all / 2 + 1
        } else {
            all
        };
        let acceptors: Vec<_> = self
            .settings
            .acceptors
            .iter()
            .filter_map(acceptor)
            .collect();
        if acceptors.len() < enough {
            return;
        }
        let is_new = |peer: &&super::peers::Peer| peer.here.is_some_and(|here| here.number == 0);
        let others = self.peers.iter().filter(is_new).map(|peer| peer.process);
        let ring = self.sort(others.chain([self.me]));
        let founded = 1 + self.random.below(u64::MAX - 1);
        let first = Arc::new(Config {
            founded,
            number: 1,
            coordinator: self.me,
            ring,
            acceptors,
            prior: Vec::new(),
        });
        match self.settings.arbiter {
            Arbiter::Embedded => {
                // Were it told before it is durable, this process could found the cluster twice.
                let is_founding = core::mem::replace(&mut self.founding, true);
                if !is_founding {
                    self.disk.put_config(&first);
                    self.when_durable(Effect::Found(first), Mutant::U52);
                }
            }
            Arbiter::Service if self.election.candidate.is_none() => {
                self.election.again = self.now.after(self.settings.patience.retry);
                self.election.candidate = Some(Candidacy::Service(first));
                self.say_candidacy(None);
            }
            Arbiter::Service => {}
        }
    }

    /// Somebody says that this is the newest one.
    pub(super) fn on_known(&mut self, config: &Arc<Config>) {
        // The service alone says which foundation goes on, where there is one.
        let is_arbitrated = self.settings.arbiter == Arbiter::Service;
        let is_believed = is_arbitrated || self.is_vouched_for(config) || mutants::on(Mutant::U71);
        if self.config.is_some() || is_believed {
            self.know(config);
        }
    }

    /// Whether who belongs to no foundation yet may take this for the one that goes on: a majority of its acceptors belongs to
    /// it, or it names this process. One acceptor may have a log of a cluster that has been founded anew since.
    fn is_vouched_for(&self, config: &Config) -> bool {
        let names =
            config.ring.contains(&self.me) || config.acceptors.contains(&self.acceptor.id());
        let belongs = |who: &&AcceptorId| {
            let peer = self.peers.at(who.node);
            peer.is_some_and(|peer| peer.theirs == config.founded)
        };
        names || config.acceptors.iter().filter(belongs).count() >= config.majority()
    }

    /// The newest one: everything before is over.
    pub(super) fn know(&mut self, config: &Arc<Config>) {
        if config.number <= self.number() {
            return;
        }
        let founded = self.config.as_ref().map(|config| config.founded);
        let belongs = match self.founded() {
            0 => true,
            founded => founded == config.founded,
        };
        if !belongs && !mutants::on(Mutant::U43) {
            // All acceptors have lost their stores, and others have begun anew: this process belongs to what was before.
            self.counters.uring_configurations_foreign += 1;
            return;
        }
        if founded.is_none() {
            self.peers.found(config.founded);
        }
        let was_in = self.stream.is_some();
        self.counters.uring_configurations += 1;
        let before = self.config.replace(config.clone());
        self.register.forget(config.number);
        if self.is_acceptor() {
            self.disk.put_config(config);
        }
        self.peers.forget_promises();
        self.lack = None;
        self.election.candidate = None;
        self.election.admit = None;
        let stays = self.has_lasted(before.as_deref(), config);
        (self.election.known, self.election.moved) = (self.now, self.now);
        (self.election.told, self.early) = (0, false);
        self.pass_on(config);
        if self.complete > 0 {
            // The coordinator need not wait for acceptors that nobody depends on any more.
            let here = Word::Here(self.here());
            self.peers.say_to_all(&here);
        }
        self.round_start = (0, 0);
        if !mutants::on(Mutant::U05) {
            self.own.again();
        }
        self.stream = self.stream_of(config);
        self.learnt = vec![0; config.acceptors.len()];
        self.mute = vec![false; config.acceptors.len()];
        self.on_early_follow();
        let begun = founded.is_none() || self.learner.round() == config.number.saturating_sub(1);
        self.election.unbegun = if begun { 0 } else { self.election.unbegun + 1 };
        self.begin_to_lead(config);
        if self.leading.is_some() && self.is_wanted() {
            // Who has said so said it of the configuration before.
            self.election.admit = Some(self.now.after(self.settings.patience.retry / 8));
        }
        if stays {
            self.on_lasted();
        }
        self.wait_longer(was_in, stays);
        if self.stream.is_none() {
            self.on_outside();
        }
    }

    /// How long this process waits until it is taken in: longer each time when it is left out soon, and as at first when it was in
    /// for long. That others were together without it says nothing.
    fn wait_longer(&mut self, was_in: bool, stays: bool) {
        let is_out = self.stream.is_none();
        let waits = &mut self.election.waits;
        let forgets = stays && (was_in || mutants::on(Mutant::U85));
        if forgets {
            *waits = 0;
        } else if was_in && is_out {
            *waits = (2 * *waits).clamp(1, MOST_WAITS);
        }
    }

    /// The configuration before has lasted: what was tried in vain before it does not count any more.
    const fn on_lasted(&mut self) {
        self.election.rounds = 0;
        if !self.hand_out.lacks_view() {
            self.election.views = 0;
        }
    }

    /// Whether this process tells configurations to who knows this one. Who belongs to no foundation yet is told only by acceptors:
    /// all of them may have lost their stores and be about to found another one, which they could not with what somebody
    /// remembers who holds nothing.
    fn tells(&self, number: Round) -> bool {
        number > 0 || self.is_acceptor()
    }

    /// Others get to know it.
    fn pass_on(&mut self, config: &Arc<Config>) {
        let number = |peer: &Peer| peer.here.map_or(0, |here| here.number);
        let tells = |peer: &&Peer| self.tells(number(peer)) || mutants::on(Mutant::U69);
        let told = self.peers.iter().filter(tells);
        let told: Vec<NodeId> = told.map(|peer| peer.process.node).collect();
        let word = Word::Known(config.clone());
        for node in told {
            self.say(node, word.clone());
        }
    }

    /// The successor may have known the configuration first.
    fn on_early_follow(&mut self) {
        let Some(successor) = self.stream.as_ref().and_then(Stream::successor) else {
            return;
        };
        let number = self.number();
        let Some(peer) = self.peers.process(successor) else {
            return;
        };
        let session = peer.session;
        let follow = peer.early.take_if(|follow| follow.round == number);
        if let (Some(follow), Some(stream)) = (follow, &mut self.stream) {
            let acceptors = self
                .config
                .as_ref()
                .map_or(0, |config| config.acceptors.len());
            stream.on_follow(session, (follow, Vec::new()), acceptors);
        }
    }

    /// This process is not in the ring: it asks to be taken in, and stands itself if nobody is there to ask.
    pub(super) fn on_outside(&mut self) {
        let patience = self.settings.patience;
        let place = self.place_among_acceptors();
        let random = self.random.below(patience.retry);
        self.election.join = self.now.after(self.election.waits * patience.retry);
        let waits = self.election.waits.min(MOST_PUT_OFF) * patience.retry;
        let wait = patience.silence / 2 + place * patience.retry / 2 + waits + random;
        self.election.stand = self.now.after(wait);
    }

    pub(super) fn place_among_acceptors(&self) -> u64 {
        let config = self.config.as_ref();
        let place = config.and_then(|config| {
            let mut nodes = config.acceptors.iter().map(|who| who.node);
            nodes.position(|node| node == self.me.node)
        });
        place.unwrap_or(0) as u64
    }

    /// Which foundation this process belongs to; 0 if none yet.
    fn founded(&self) -> u64 {
        let known = self.config.as_ref().map(|config| config.founded);
        known.unwrap_or(self.resumed())
    }

    /// Whether somebody belongs to another foundation than this process: its numbers say nothing here.
    pub(super) fn is_foreign(&self, founded: u64) -> bool {
        let own = self.founded();
        founded > 0 && own > 0 && founded != own && !mutants::on(Mutant::U42)
    }

    /// It did.
    pub(super) fn on_foreign(&mut self, process: Process) {
        self.counters.uring_messages_foreign += 1;
        if let Some(peer) = self.peers.process(process) {
            peer.here = None;
        }
        // It learns that it is not alone.
        if self.foreign.insert(process)
            && let Some(config) = &self.config
        {
            self.say(process.node, Word::Known(config.clone()));
        }
    }

    /// Somebody says who it is.
    pub(super) fn on_here(&mut self, process: Process, here: Here) {
        let before = self.peers.process(process);
        let before = before.and_then(|peer| peer.here.replace(here));
        if before.is_some_and(|before| before.acceptor.is_none()) && here.acceptor.is_some() {
            // What it had promised while its log was away it has not said.
            self.say_prepare(Some(process.node));
            self.say_candidacy(Some(process.node));
        }
        let theirs = self.peers.process(process).map_or(0, |peer| peer.theirs);
        if self.config.is_some() && (theirs > 0 || process == self.me) {
            // Who belongs to no foundation yet is told of more than one.
            self.on_complete(here.complete);
        }
        let old = here.number < self.number() && self.tells(here.number);
        if old && let Some(config) = &self.config {
            let known = Word::Known(config.clone());
            return self.say(process.node, known);
        }
        self.try_to_found();
        let leads = self.stream.as_ref().is_some_and(Stream::leads);
        let wanted = || self.joining().next().is_some() || self.is_renamed(process);
        if leads && self.election.admit.is_none() && wanted() {
            let wait = self.settings.patience.retry / 8;
            self.election.admit = Some(self.now.after(wait));
        }
    }

    /// Whether anybody wants to come in, or votes with another store.
    fn is_wanted(&self) -> bool {
        let mut peers = self.peers.iter().map(|peer| peer.process);
        self.joining().next().is_some() || peers.any(|who| self.is_renamed(who))
    }

    /// Whether a process of the ring votes with another store than the configuration has.
    fn is_renamed(&self, process: Process) -> bool {
        let now = self.peers.acceptor_of(process);
        let config = self.config.as_ref();
        config.zip(now).is_some_and(|(config, now)| {
            let mut old = config.acceptors.iter();
            let is_old = old.any(|who| who.node == now.node && *who != now);
            is_old && config.ring.contains(&process)
        })
    }

    pub(super) fn on_leaving(&mut self, process: Process) {
        // Of each node one life.
        self.election.gone.retain(|who| who.node != process.node);
        self.election.gone.insert(process);
    }

    /// What this process says of itself.
    pub(super) fn here(&self) -> Here {
        Here {
            number: self.number(),
            acceptor: self.votes().then(|| self.acceptor.id()),
            complete: self.complete,
            joins: self.joins(),
        }
    }

    /// Whether it wants to be taken in now. Who is to vote has a name first: it would be taken in without a vote.
    fn joins(&self) -> bool {
        let is_ready = self.named || self.disk.failed || !self.is_acceptor();
        self.stream.is_none() && is_ready && self.now >= self.election.join
    }

    /// Whether a process is this one, or there is a link to it and it has not said that it leaves.
    pub(super) fn is_there(&self, process: Process) -> bool {
        process == self.me || self.peers.has(process) && !self.election.gone.contains(&process)
    }

    /// Nodes of processes.
    pub(super) fn nodes(of: &[Process]) -> BTreeSet<NodeId> {
        of.iter().map(|process| process.node).collect()
    }
}

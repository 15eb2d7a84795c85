//! Members and configurations: the messages of others about themselves, and the steps that follow; and observers, which
//! are no members.

use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

use super::engine::URing;
use super::membership::{
    Answered, Asking, Due, Founding, Membership, arbitrated, around, has_seat, is_asked,
};
use super::peers::Peer;
use super::round::RoundState;
use super::stream::Stream;
use super::voter::Reopened;
use super::watching;
use super::word::{Arbitration, Hello, Word};
use crate::{AcceptorId, Config, Instance, Round};
use rota_core::contract::{NodeId, Output, Process};
use rota_core::mutants::{self, Mutant};

impl URing {
    /// The message of this process about itself.
    pub(super) fn here(&self) -> Hello {
        let ring = self.stream.as_ref();
        self.membership.here(&self.cx, &self.voter, ring)
    }

    /// The first of the acceptors founds the cluster when all are there.
    pub(super) fn try_to_found(&mut self) {
        match self.membership.try_to_found(&around!(self)) {
            Some(Founding::Durably(first)) => self.voter.found(first),
            Some(Founding::Asks) => self.say_campaign(None),
            None => {}
        }
    }

    /// Another process says that this is the newest configuration.
    pub(super) fn on_known(&mut self, config: &Arc<Config>) {
        if self.membership.believes(&around!(self), config) {
            self.know(config);
        }
    }

    /// Takes a newer configuration as the newest one: everything before is over.
    pub(super) fn know(&mut self, config: &Arc<Config>) {
        if config.number <= self.number() {
            return;
        }
        if !self.membership.belongs(config) {
            self.counters.uring_configurations_foreign += 1;
            return;
        }
        let (is_first, was_in) = (self.number() == 0, self.stream.is_some());
        if is_first {
            self.links.found(config.founded);
        }
        self.counters.uring_configurations += 1;
        let decided = self.is_operational() && self.learning.learner.reached() > self.round.start.0;
        let lasted = self.membership.install(&self.cx, config, decided);
        let has_seat = self.has_seat();
        self.voter.on_configuration(&self.cx, has_seat);
        self.voter.put_config(config);
        self.links.forget_promises();
        self.outbox.reading.forget_promises();
        self.pass_on(config);
        if self.membership.complete() > 0 {
            // The coordinator need not wait for acceptors that nobody depends on any more.
            let here = Word::Hello(self.here());
            self.links.say_to_all(&here);
        }
        self.begin_configuration(config, is_first);
        if lasted {
            let lacks_view = self.learning.hand_out.lacks_view();
            self.membership.election.on_lasted(lacks_view);
        }
        let is_out = self.stream.is_none();
        let outside = &mut self.membership.outside;
        outside.wait_longer(was_in, is_out, lasted);
        if is_out {
            self.membership.on_outside(&self.cx, was_in || is_first);
        }
    }

    /// Begins a new configuration: its ring, and the first steps of its coordinator.
    fn begin_configuration(&mut self, config: &Arc<Config>, is_first: bool) {
        if !mutants::on(Mutant::U05) {
            self.own.again();
        }
        self.stream = Stream::of(&self.cx, config);
        self.round = RoundState::of(config);
        self.on_early_follow();
        let begun = self.learning.learner.round() == config.number.saturating_sub(1);
        let election = &mut self.membership.election;
        election.on_begun(is_first || begun);
        self.begin_to_lead(config);
        if self.leading.is_some() && self.membership.is_wanted(&around!(self)) {
            // Processes that want to join have said so in the configuration before.
            self.membership.election.admit_soon(&self.cx);
        }
    }

    /// Tells others the configuration.
    fn pass_on(&mut self, config: &Arc<Config>) {
        let number = |peer: &Peer| peer.here.map_or(0, |here| here.number);
        let tells =
            |peer: &&Peer| Membership::tells(&self.voter, number(peer)) || mutants::on(Mutant::U69);
        let told = self.links.iter().filter(tells);
        let told: Vec<NodeId> = told.map(|peer| peer.process.node).collect();
        let word = Word::Known(config.clone());
        for node in told {
            self.say(node, word.clone());
        }
    }

    /// The successor may have known the configuration first.
    fn on_early_follow(&mut self) {
        let number = self.number();
        let (Some(stream), Some(config)) = (&mut self.stream, self.membership.config()) else {
            return;
        };
        let successor = stream.successor();
        let Some(peer) = successor.and_then(|successor| self.links.process(successor)) else {
            return;
        };
        if let Some(follow) = peer.early.take_if(|follow| follow.round == number) {
            stream.on_resume_from(peer.session, (follow, Vec::new()), config.acceptors.len());
        }
    }

    /// Another process belongs to another foundation.
    pub(super) fn on_foreign(&mut self, process: Process) {
        self.counters.uring_messages_foreign += 1;
        if let Some(peer) = self.links.process(process) {
            peer.here = None;
        }
        // That process learns that it is not alone.
        if self.membership.foundation.on_foreign(process)
            && let Some(config) = self.membership.config().cloned()
        {
            self.say(process.node, Word::Known(config));
        }
    }

    /// A process says who it is.
    pub(super) fn on_hello(&mut self, process: Process, here: Hello) {
        let before = self.links.process(process);
        let before = before.and_then(|peer| peer.here.replace(here));
        if before.is_some_and(|before| before.acceptor.is_none()) && here.acceptor.is_some() {
            self.on_voting(process.node);
        }
        let theirs = self.links.process(process).map_or(0, |peer| peer.theirs);
        let has_config = self.membership.config().is_some();
        if has_config && (theirs > 0 || process == self.cx.me) {
            // The message of a process without a foundation does not count: it may be told of more than one.
            self.on_complete(here.complete);
        }
        let is_old = here.number < self.number() && Membership::tells(&self.voter, here.number);
        if is_old && let Some(config) = self.membership.config().cloned() {
            return self.say(process.node, Word::Known(config));
        }
        self.try_to_found();
        self.membership.plan_to_admit(&around!(self));
    }

    /// An acceptor, which may be this one, votes again: it has not sent its promises while its log was away.
    pub(super) fn on_voting(&mut self, node: NodeId) {
        self.say_prepare(Some(node));
        self.say_campaign(Some(node));
        self.membership.plan_to_admit(&around!(self));
    }

    pub(super) fn on_election_timer(&mut self) {
        if self.membership.asks_to_join(&around!(self)) {
            let here = Word::Hello(self.here());
            self.membership.outside.asked_to_join(&self.cx);
            self.links.say_to_all(&here);
        }
        match self.membership.candidacy_is_due(self.cx.now) {
            Some(true) => {
                if self.membership.stand_again(&around!(self)) {
                    self.say_campaign(None);
                }
                return;
            }
            Some(false) => return,
            None => {}
        }
        match self.membership.due(&around!(self)) {
            Some(Due::Suspects(suspect)) => {
                self.counters.uring_suspicions += 1;
                self.stand(suspect, false);
            }
            Some(Due::Leads) => self.stand(None, true),
            Some(Due::Again) => self.stand(None, false),
            None => {}
        }
        let later = self.membership.put_off(&around!(self));
        if let (Some(later), Some(stream)) = (later, &mut self.stream) {
            stream.on_heard(later);
        }
    }

    /// Stands for the configuration that follows.
    fn stand(&mut self, suspect: Option<Process>, lead: bool) {
        if self.membership.stand(&around!(self), suspect, lead) {
            self.counters.uring_candidacies += 1;
            self.say_campaign(None);
        }
    }

    /// Sends the question of the candidate: to one of the voters, or to all of them, or to the service.
    pub(super) fn say_campaign(&mut self, to: Option<NodeId>) {
        match self.membership.candidacy.asking(to) {
            Some(Asking::Voters(voters, word)) => {
                for node in voters {
                    self.say(node, word.clone());
                }
            }
            Some(Asking::Service(number, wanted)) => {
                let output = Output::Arbitrate { number, wanted };
                self.outbox.out.push_back(output);
            }
            None => {}
        }
    }

    /// An acceptor is asked about the configuration after its own.
    pub(super) fn on_ask(&mut self, node: NodeId, number: Round, word: Arbitration) {
        let Some(config) = self.membership.config() else {
            return;
        };
        if number <= config.number {
            let known = Word::Known(config.clone());
            return self.say(node, known);
        }
        let votes = |who| Membership::is_voting(&self.links, &self.voter, who);
        let decides = self.round.can_decide(config, votes) || mutants::on(Mutant::U104);
        let asked = (node, self.is_operational() && decides);
        let answer = self
            .membership
            .on_ask(&around!(self), asked, (number, word));
        if let Some(answer) = answer {
            self.voter.answer(self.membership.to_remember(), answer);
        }
    }

    /// The service says which configuration has a number.
    pub(super) fn on_arbitrated(&mut self, number: Round, chosen: Bytes) {
        match arbitrated(number, chosen) {
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
        let candidacy = &mut self.membership.candidacy;
        match candidacy.on_answer((node, number), who, word) {
            Answered::Chosen(config) => self.know(&config),
            Answered::GoesOn => self.say_campaign(None),
            Answered::Waits => {}
        }
    }
}

/// The list of acceptors.
impl URing {
    /// Whether this node is one of those that vote.
    pub(super) fn has_seat(&self) -> bool {
        let (list, node) = (self.accounts().acceptor_list(), self.cx.me.node);
        let config = self.membership.config();
        config.is_some_and(|config| has_seat(config, self.membership.complete(), list, node))
    }

    /// Whether this acceptor may have to be asked for a promise. Who was left out, and is to vote again, has not kept what
    /// was decided meanwhile: nobody needs its promise before it is an acceptor.
    pub(super) fn may_be_asked(&self) -> bool {
        let (list, node) = (self.accounts().acceptor_list(), self.cx.me.node);
        let (config, complete) = (self.membership.config(), self.membership.complete());
        list.is_none() || config.is_some_and(|config| is_asked(config, complete, node))
    }

    /// Goes on as the newest list of acceptors says: this node becomes one of those that vote, or is none any more; it
    /// offers to vote; or it coordinates, and takes a step nearer to the list.
    pub(super) fn look_at_list(&mut self) {
        if self.accounts().acceptor_list().is_none() || self.membership.config().is_none() {
            return;
        }
        let has_seat = self.has_seat();
        if has_seat != self.voter.is_acceptor() {
            let lacks = Reopened::of(&self.membership);
            let learnt = (self.learning.learnt(), self.membership.complete());
            match has_seat {
                true => self.voter.take_seat(&self.cx, learnt, &lacks),
                false => self.voter.leave_seat(),
            }
            let here = Word::Hello(self.here());
            self.links.say_to_all(&here);
        }
        self.offer();
        self.membership.plan_to_seat(&around!(self));
    }

    /// Offers the coordinator to vote, if this node is to and does not, and has all that others may need of it.
    fn offer(&mut self) {
        let Some(config) = self.membership.config() else {
            return;
        };
        let (node, accounts) = (self.cx.me.node, self.accounts());
        let is_to = accounts.acceptor_list().has(node) && !config.has_acceptor_of(node);
        if !is_to || self.stream.is_none() {
            return;
        }
        let kept = self.voter.kept();
        let has_all = accounts.bound().is_none_or(|bound| kept <= bound);
        let has_all = has_all || mutants::on(Mutant::U158);
        // No round starts before what an acceptor has not kept: the others have to have that.
        let is_known = kept <= self.round.learnt_by_majority(config) || mutants::on(Mutant::U161);
        let coordinator = config.coordinator.node;
        let may = has_all && is_known && self.voter.is_well();
        if may && self.membership.seats.offers(&self.cx) {
            let next = self.learning.next();
            let offer = Word::Offer(self.voter.id(), next);
            self.voter.offer(coordinator, offer, next);
        }
    }

    /// A process offers to vote.
    pub(super) fn on_offer(&mut self, process: Process, who: AcceptorId, theirs: Instance) {
        let places = (theirs, self.learning.next());
        let seats = &mut self.membership.seats;
        seats.on_offer(self.cx.now, (process, who), places);
    }
}

/// Observers, and what they are told.
impl URing {
    /// An observer asks for what is decided next, unless it knows of something that it lacks, or has no room.
    pub(super) fn observe(&mut self) {
        if !self.cx.observes() || self.membership.config().is_none() {
            return;
        }
        let learner = &self.learning.learner;
        let has_all = learner.next() >= learner.decided();
        if !has_all || !self.learning.hand_out.has_room() {
            return;
        }
        let next = self.learning.next();
        let acceptors = self.membership.informants(&self.cx, &self.links);
        if let Some(node) = self.catch_up.watch.ask(&self.cx, &acceptors) {
            self.say(node, Word::Watch(next));
        }
    }

    /// An observer waits for what is decided from an instance on.
    pub(super) fn on_watch(&mut self, node: NodeId, from: Instance) {
        self.links.watches(node, from.max(1));
    }

    /// An acceptor tells observers what they wait for: itself if it is little, and else how far it goes.
    pub(super) fn tell_observers(&mut self) {
        if !self.voter.remembers() || mutants::on(Mutant::U136) {
            return;
        }
        let next = self.learning.next();
        for (node, from) in self.links.take_watching(next) {
            self.counters.uring_observers_told += 1;
            match watching::is_little(from, next) || from < self.voter.kept() {
                true => self.links.asks(node, from..next),
                false => self.say(node, Word::Decided(next)),
            }
        }
    }

    /// An acceptor tells an observer that much is decided.
    pub(super) fn on_decided(&mut self, node: NodeId, next: Instance) {
        if !self.catch_up.watch.is_of(node) {
            self.counters.uring_messages_stale += 1;
            return;
        }
        self.catch_up.watch.on_told(self.cx.now, node, false);
        self.learning.learner.on_decided(next);
        self.catch_up.seek_again();
    }
}

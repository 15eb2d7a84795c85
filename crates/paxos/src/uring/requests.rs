//! Requests for things that the ring does not bring: decided instances, values that were multicast, and places that a
//! merge waits for.

use alloc::vec::Vec;
use bytes::Bytes;
use core::ops::Range;

use super::catch_up::{self, Brought};
use super::dissemination::Ask;
use super::engine::URing;
use super::lead::RoundCoordinator;
use super::parts::Dropped;
use super::reading::{Piecemeal, Reader};
use super::snapshot::Snapshot;
use super::word::Word;
use crate::{Instance, ValueId, Vote};
use rota_core::contract::{NodeId, Output, Process};
use rota_core::mutants::{self, Mutant};
use rota_core::wire::Part;

/// Decided instances that are missing.
impl URing {
    /// Asks for missing instances that no process is being asked for.
    pub(super) fn ask_for_missing(&mut self) {
        while !self.voter.is_busy() && self.ask_for_some() {}
    }

    /// Whether there was something to ask for.
    fn ask_for_some(&mut self) -> bool {
        let is_awaited = self.voter.lack().is_some();
        if !self.catch_up.may_ask(&self.learning, is_awaited) {
            return false;
        }
        let Some(missing) = self.catch_up.missing(&self.learning.learner) else {
            return false;
        };
        if mutants::on(Mutant::U16) {
            self.learning.leave_out(missing.end);
            return false;
        }
        let missing = missing.start..missing.end.min(self.brought());
        if missing.is_empty() {
            return false;
        }
        let informants = || self.membership.informants(&self.cx, &self.links);
        let asked = self.catch_up.ask(self.cx.now, missing, informants);
        let Some((node, range)) = asked else {
            return false;
        };
        self.say(node, Word::Fetch(range.start, range.end));
        true
    }

    /// The first instance that the ring still brings. Instances from there on are not learnt elsewhere: values that
    /// have counted are not carried any more, and a proposal that comes may name such a value without bringing it. As
    /// long as the round has not begun here, all known decisions are of earlier rounds: a proposal that repeats one
    /// comes with its value. (A snapshot may reach into what the ring brings:
    /// [`Resolved::Forgotten`](super::dissemination::Resolved).)
    fn brought(&self) -> Instance {
        let has_begun = self.learning.learner.round() == self.number();
        let has_begun = has_begun || mutants::on(Mutant::U37);
        let stream = self.stream.as_ref().filter(|_| has_begun);
        stream.map_or(Instance::MAX, |stream| {
            stream.next().max(self.round.start.0)
        })
    }

    /// Another process asks for decided values.
    pub(super) fn on_fetch(&mut self, node: NodeId, from: Instance, upto: Instance) {
        self.counters.uring_fetches_served += 1;
        self.links.asks(node, from..upto);
    }

    /// The next part of a long message to another process.
    pub(super) fn next_part(&mut self) -> Option<Output> {
        // Whoever does not vote has not kept what it has learnt.
        let next = self.learning.next().min(self.voter.kept_to());
        let answer = |node, about| {
            let reading = &mut self.outbox.reading;
            catch_up::answer(&self.cx, (&self.voter, reading), next, (node, about))
        };
        self.links.next_part(self.voter.kept(), answer)
    }

    /// Takes the answer.
    pub(super) fn on_chosen(&mut self, node: NodeId, votes: &[Vote]) {
        self.counters.uring_votes_fetched += votes.len() as u64;
        if self.outbox.reading.is_stuck() {
            let wanted = self.learning.told_to()..self.voter.resident();
            let is_next = |vote: &&Vote| vote.end() > wanted.start;
            let next = votes.iter().skip_while(|vote| !is_next(vote)).cloned();
            let told = self.voter.sound(&wanted, next.map(Some).collect());
            self.outbox.reading.on_told(told);
        }
        // Nothing is no answer: the acceptor could not read it, and another one is asked in its time.
        if !votes.is_empty() {
            self.catch_up.watch.on_told(self.cx.now, node, false);
        }
        let learner = &mut self.learning.learner;
        self.catch_up.on_chosen(&self.cx, learner, (node, votes));
    }

    /// Takes the answer of a process that has forgotten the instances.
    pub(super) fn on_forgotten(&mut self, node: NodeId, at: u64, part: &Bytes, more: bool) {
        let (learner, is_watched) = (&self.learning.learner, self.catch_up.watch.is_of(node));
        let is_wanted = is_watched || learner.next() < learner.decided();
        self.catch_up.watch.on_told(self.cx.now, node, more);
        let brought = self
            .catch_up
            .on_forgotten(&self.cx, is_wanted, node, (at, part, more));
        match brought {
            Brought::Snapshot(base) => {
                self.begin_at(*base);
                self.catch_up.forget_to(self.learning.next());
            }
            Brought::Part => {}
            Brought::Nothing => self.counters.uring_messages_stale += 1,
            Brought::Garbage => self.counters.uring_messages_refused += 1,
        }
    }

    /// Begins at a snapshot, as others have forgotten everything before it.
    fn begin_at(&mut self, base: Snapshot) {
        if base.next <= self.learning.next() {
            return;
        }
        if let Some(stream) = &mut self.stream {
            stream.counted_to(base.next, |who| base.counted(who));
        }
        self.learning.begin_at(&self.cx, &base, &mut self.own);
        if self.voter.is_acceptor() {
            let number = self.number();
            self.voter.rest_on(&self.cx, base, Some(number));
        }
    }
}

/// Votes that only the log has.
impl URing {
    /// The disk has read some, or cannot.
    pub(super) fn on_fetched(&mut self, asked: &Range<Instance>, records: Vec<(u64, Bytes)>) {
        let is_over = asked.start < self.voter.kept();
        let votes = self.voter.read_back(asked, records);
        let (count, is_read) = (votes.len() as u64, !votes.is_empty());
        let Some(reader) = self.outbox.reading.on_fetched(asked, votes, is_over) else {
            return;
        };
        self.counters.uring_votes_read_back += count;
        self.counters.uring_reads_failed += u64::from(!is_read && !is_over);
        match reader {
            // The application and the snapshot are looked after in any case.
            Reader::Application | Reader::Snapshot => {}
            Reader::Peer(node) => self.links.has_read(node),
            Reader::Promise(node) if is_over => self.promise_anew(node),
            Reader::Promise(node) => self.go_on_promising(node),
        }
    }

    /// Forgets what waits for values that have to be read back first, as those come.
    pub(super) fn read_to_forget(&mut self) {
        while self.voter.is_readable()
            && let Some(at) = self.voter.lacks_to_forget()
        {
            let vote = match self.outbox.reading.get(Reader::Snapshot, at..at + 1) {
                Piecemeal::Later => return,
                Piecemeal::Never => None,
                Piecemeal::Votes(votes) => votes.front().cloned(),
            };
            self.voter.fill(&self.cx, at, vote.as_ref());
        }
    }

    /// Asks others for values that the application waits for, and that the log should have and does not.
    pub(super) fn ask_elsewhere(&mut self) {
        if !self.outbox.reading.is_stuck() {
            return;
        }
        let nodes = self.membership.informants(&self.cx, &self.links);
        let from = self.learning.told_to();
        let upto = self.voter.resident();
        if let Some(node) = self.outbox.reading.ask(&self.cx, &nodes) {
            self.say(node, Word::Fetch(from, upto));
        }
    }

    /// The log is away, or open again: nobody waits for it any more.
    pub(super) fn look_at_log(&mut self) {
        for reader in self.outbox.reading.close(!self.voter.is_readable()) {
            if let Reader::Peer(node) = reader {
                self.links.has_read(node);
            }
        }
    }
}

/// Values that were multicast.
impl URing {
    /// Takes parts of values that came together.
    pub(super) fn on_datagrams(&mut self, bytes: &[u8], segment: usize) {
        let Some(settings) = self.cx.settings.multicast else {
            return;
        };
        for start in (0..bytes.len()).step_by(segment.max(1)) {
            let datagram = &bytes[start..bytes.len().min(start + segment)];
            match Part::decode(datagram, settings.seal_bytes) {
                Ok(part) => self.on_part(settings.cluster, &part),
                Err(_) => self.counters.uring_messages_refused += 1,
            }
        }
    }

    fn on_part(&mut self, cluster: u32, part: &Part<'_>) {
        self.counters.uring_parts_received += 1;
        let counted = self.learning.learnt().counted(part.head.proposer);
        let counted = counted.unwrap_or(0);
        if part.head.counter <= counted {
            return;
        }
        // Nobody has more values under way than bytes.
        let ahead = 2 * self.cx.settings.proposer.window_bytes as u64;
        let is_sound = part.head.cluster == cluster && part.head.counter - counted <= ahead;
        if !is_sound || self.take_part(part).is_err() {
            self.counters.uring_parts_dropped += 1;
        }
    }

    /// A process outside the ring has no use for parts.
    fn take_part(&mut self, part: &Part<'_>) -> Result<(), Dropped> {
        let Some(stream) = &mut self.stream else {
            return Ok(());
        };
        let Some((id, frame)) = stream.on_part(self.cx.now, part)? else {
            return Ok(());
        };
        if !super::value::is_sound(&frame) {
            return Err(Dropped);
        }
        // A value without room here is asked for later.
        let _ = self.on_value(id, frame);
        Ok(())
    }

    /// The next datagrams of own values.
    pub(super) fn multicast(&mut self) -> Option<Output> {
        let settings = self.cx.settings.multicast?;
        let (now, leads) = (self.cx.now, self.leading.is_some());
        let (mut began, stream) = (false, self.stream.as_mut());
        let output = self.sending.next(now, &settings, stream, &mut began);
        // The coordinator may propose it now.
        self.outbox.submitted |= began && leads;
        output
    }

    /// Looks for missing values, so that they are asked for in time.
    pub(super) fn watch(&mut self) {
        let begun = self.learning.learner.round() == self.number();
        let table = self.leading.as_ref().and_then(RoundCoordinator::table);
        if let Some(stream) = &mut self.stream {
            stream.watch(&self.cx, table, begun);
        }
    }

    /// Something is to be asked for, or sent once more.
    pub(super) fn on_overdue(&mut self) {
        let table = self.leading.as_ref().and_then(RoundCoordinator::table);
        let Some(stream) = &mut self.stream else {
            return;
        };
        let due = stream.overdue(&self.cx, table);
        if let Some(ask) = due.ask {
            self.ask_for_value(ask);
        }
        if let Some((id, frame)) = due.own {
            self.send_late(id, frame);
        }
    }

    fn ask_for_value(&mut self, ask: Ask) {
        let is_asked = match ask {
            Ask::Predecessor => self.ask_predecessor(),
            Ask::Proposers(wanted) => self.ask_proposers(wanted),
        };
        // A gap without a process to ask is no loss for which others should slow down.
        if let Some(stream) = self.stream.as_mut().filter(|_| is_asked) {
            self.counters.uring_values_asked_for += 1;
            stream.on_asked(&self.cx);
        }
    }

    /// The predecessor has the values that it named.
    fn ask_predecessor(&mut self) -> bool {
        let Some(stream) = &mut self.stream else {
            return false;
        };
        let has_link = stream.predecessor().is_some_and(|who| self.links.has(who));
        if has_link {
            stream.ask_predecessor();
        }
        has_link
    }

    /// The coordinator asks the proposers for values that it lacks.
    fn ask_proposers(&mut self, mut wanted: Vec<(Process, Vec<u64>)>) -> bool {
        wanted.retain(|(process, _)| self.links.has(*process));
        let is_asked = !wanted.is_empty();
        for (process, counters) in wanted {
            self.say(process.node, Word::Want(counters));
        }
        is_asked
    }

    /// Sends the coordinator an own value over its link, as it seems not to have had that.
    fn send_late(&mut self, id: ValueId, frame: Bytes) {
        let (Some(stream), Some(config)) = (&mut self.stream, self.membership.config()) else {
            return;
        };
        if mutants::on(Mutant::U31) {
            return;
        }
        match self.links.process(config.coordinator) {
            None => stream.goes_along(id),
            // The value may be among the messages that wait.
            Some(peer) if peer.has_words() => return,
            Some(peer) => peer.say(&Word::Value(id.counter, frame)),
        }
        self.counters.uring_values_sent_again += 1;
    }

    /// The coordinator lacks own values.
    pub(super) fn on_want(&mut self, process: Process, counters: &[u64]) {
        let config = self.membership.config();
        if config.is_none_or(|config| config.coordinator != process) {
            self.counters.uring_messages_stale += 1;
            return;
        }
        let peer = self.links.process(process);
        // The messages that wait may be an answer; and values are asked for again.
        let Some(peer) = peer.filter(|peer| !peer.has_words()) else {
            return;
        };
        let mut room = self.cx.settings.word_bytes;
        for counter in counters {
            let Some(frame) = self.own.value(*counter) else {
                continue;
            };
            self.counters.uring_values_sent_again += 1;
            room = room.saturating_sub(frame.len());
            peer.say(&Word::Value(*counter, frame));
            if room == 0 {
                return;
            }
        }
    }
}

/// Places that a merge of several rings waits for.
impl URing {
    pub(super) fn on_need(&mut self, next: Instance) {
        self.counters.uring_needs_heard += 1;
        self.needs.on_need(next);
    }

    /// Tells the coordinator what is needed here, if it is time.
    pub(super) fn tell_needs(&mut self) {
        let (next, leads) = (self.learning.next(), self.leading.is_some());
        let Some(needed) = self.needs.next_word(&self.cx, next, leads) else {
            return;
        };
        let config = self.membership.config();
        let coordinator = config.map(|config| config.coordinator);
        if let Some(coordinator) = coordinator.filter(|who| *who != self.cx.me) {
            self.counters.uring_needs_said += 1;
            self.links.say(coordinator.node, &Word::Need(needed));
        }
    }
}

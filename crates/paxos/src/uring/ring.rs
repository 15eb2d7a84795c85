//! Messages along the ring: those between neighbours, and batches of values, proposals and votes; and promises, which
//! may have to wait for the log.

use alloc::vec::Vec;
use bytes::Bytes;
use core::ops::Range;

use super::codec::MOST_NUMBER;
use super::dissemination::Resolved;
use super::engine::{Life, URing};
use super::stream::Progress;
use super::wire::Records;
use super::word::{Head, Proposal, Record, ResumeFrom, Word};
use crate::{Instance, Promise, ValueId};
use rota_core::contract::{NodeId, Output, Process};
use rota_core::mutants::{self, Mutant};

impl URing {
    /// Takes a message of another process, or of this one to itself.
    pub(super) fn on_word(&mut self, process: Process, word: Word) {
        if let Some(stream) = &mut self.stream {
            stream.on_aside(self.cx.now, process);
        }
        let node = process.node;
        match word {
            Word::Hello(here) => self.on_hello(process, here),
            Word::Known(config) => self.on_known(&config),
            Word::Ask(number, word) => self.on_ask(node, number, word),
            Word::Answer(number, who, word) => self.on_answer(node, number, who, word),
            Word::Prepare(round, from) => self.on_prepare(process, round, from),
            Word::Promise(promise, more) => self.on_promise(node, promise, more),
            Word::ResumeFrom(follow, lacks) => self.on_resume_from(process, follow, lacks),
            Word::Fetch(from, upto) => self.on_fetch(node, from, upto),
            Word::Chosen(votes) => self.on_chosen(node, &votes),
            Word::Forgotten(at, part, more) => self.on_forgotten(node, at, &part, more),
            Word::Leaving => self.membership.absent.on_leaving(process),
            Word::Want(counters) => self.on_want(process, &counters),
            Word::Value(counter, frame) => {
                let _ = self.on_value(ValueId { process, counter }, frame);
            }
            Word::Need(next) => self.on_need(next),
            Word::Watch(from) => self.on_watch(node, from),
            Word::Decided(next) => self.on_decided(node, next),
            Word::Offer(who, theirs) => self.on_offer(process, who, theirs),
        }
    }
}

impl URing {
    /// Takes the resume message of the successor.
    fn on_resume_from(&mut self, process: Process, follow: ResumeFrom, mut lacks: Vec<Instance>) {
        lacks.sort_unstable();
        let number = self.number();
        let Some(peer) = self.links.process(process) else {
            return;
        };
        if follow.round > number {
            peer.early = Some(follow);
            return;
        }
        let (Some(stream), Some(config)) = (&mut self.stream, self.membership.config()) else {
            return;
        };
        if follow.round == number && stream.successor() == Some(process) {
            stream.on_resume_from(peer.session, (follow, lacks), config.acceptors.len());
        } else if follow.round < number {
            peer.say(&Word::Known(config.clone()));
        }
    }

    /// Takes in a batch of the predecessor, up to the first record that cannot be taken.
    pub(super) fn on_batch(&mut self, process: Process, head: &Head, body: Bytes) {
        // No record that comes to the coordinator is for its disk: its own proposals are bounded where it makes them.
        // The others' votes have to pass.
        let leads = self.leading.is_some() && !mutants::on(Mutant::U83);
        let is_full = self.voter.is_full() && !leads && !mutants::on(Mutant::U77);
        let config = self.membership.config().cloned();
        let (Some(stream), Some(config)) = (&mut self.stream, config) else {
            self.counters.uring_messages_stale += 1;
            return;
        };
        if stream.predecessor() != Some(process) || !stream.is_current(head) {
            stream.on_aside(self.cx.now, process);
            self.counters.uring_messages_stale += 1;
            return;
        }
        if is_full {
            // The predecessor is not slow: this disk is.
            let later = self.cx.now.after(self.cx.settings.patience.heartbeat);
            stream.on_heard(self.cx.now);
            stream.ask_predecessor_at(later);
            return;
        }
        if head.start > 0 {
            // The predecessor has forgotten the proposals before.
            stream.jump(head.from);
            self.start_round(&config, (head.start, head.kept));
        } else {
            let election = &mut self.membership.election;
            election.heard_told(head.kept, self.cx.now);
        }
        if head.complete {
            self.on_complete(head.round);
        }
        let mut at = head.from;
        for record in Records::new(body, &config.ring) {
            let is_value = matches!(record, Ok(Record::Value(..)));
            let taken = record.is_ok_and(|record| self.on_record(head, &mut at, record));
            if !taken {
                self.refuse(is_value);
                return;
            }
        }
        // A batch that has to be refused again and again is as bad as silence.
        if let Some(stream) = &mut self.stream {
            stream.on_heard(self.cx.now);
        }
    }

    /// The predecessor is to begin again behind the records that were taken in: at once, if it is asked for values that
    /// were forgotten here; else later, lest two processes that do not understand each other do nothing else.
    fn refuse(&mut self, is_value: bool) {
        let at = self.cx.now.after(self.cx.settings.patience.heartbeat);
        let stream = self.stream.as_mut();
        if let Some(stream) = stream.filter(|stream| !stream.is_to_ask()) {
            // With a value, this process may be the one that is behind: values that have counted elsewhere have not
            // counted here, and take room.
            match is_value {
                true => self.counters.uring_values_put_off += 1,
                false => self.counters.uring_messages_refused += 1,
            }
            stream.ask_predecessor_at(at);
        }
    }

    fn on_record(&mut self, head: &Head, at: &mut Instance, record: Record) -> bool {
        match record {
            Record::Value(id, frame) => {
                let taken = self.on_value(id, frame);
                if let Some(stream) = &mut self.stream {
                    stream.goes_along(id);
                }
                taken
            }
            Record::Proposal(proposal) => self.on_proposal(head, at, proposal),
            Record::Voted(index, next) => {
                let config = self.membership.config();
                let who = config.and_then(|config| config.acceptors.get(usize::from(index)));
                if let Some(who) = who {
                    self.learning.learner.on_voted(head.round, *who, next);
                }
                who.is_some()
            }
            Record::Learnt(index, next) => {
                let learnt = self.round.on_learnt(usize::from(index), next);
                if learnt == Some(true) {
                    self.membership.election.on_nearer(self.cx.now);
                }
                learnt.is_some()
            }
            Record::Lost(place, count) => {
                let stream = self.stream.as_mut();
                stream.is_some_and(|stream| stream.on_lost(&self.cx, usize::from(place), count))
            }
            Record::LogFailed(index) => self.round.on_log_failed(usize::from(index)),
        }
    }

    /// The next proposal of the round, or one that is here already.
    fn on_proposal(&mut self, head: &Head, at: &mut Instance, proposal: Proposal) -> bool {
        let Some(stream) = &mut self.stream else {
            return false;
        };
        let (first, span) = (*at, proposal.span());
        let is_none = first == 0 || head.start == 0 || stream.leads();
        if is_none || span > MOST_NUMBER || first + span > MOST_NUMBER {
            return false;
        }
        *at = first + span;
        let expected = stream.end();
        if first != expected {
            // A proposal that is here already is not needed again. No process of this round has made a proposal that
            // reaches beyond the expected instance, or leaves a gap.
            return *at <= expected;
        }
        match stream.on_proposal(first, proposal) {
            Resolved::Known(value, whole) => {
                self.adopt_next(first, (value, whole));
                true
            }
            Resolved::Blocked => true,
            Resolved::Forgotten => {
                self.counters.uring_values_asked_for += 1;
                false
            }
            Resolved::Refused => false,
        }
    }
}

/// Outputs.
impl URing {
    /// The next output, after all that was asked for before.
    pub(super) fn next_output(&mut self) -> Option<Output> {
        if let Some(output) = self.outbox.out.pop_front() {
            return Some(output);
        }
        if let Some(output) = self.links.next_word() {
            return Some(output);
        }
        if self.life == Life::Left {
            return self.next_part();
        }
        let output = self.follow().or_else(|| self.batch());
        let output = output.or_else(|| self.next_part());
        let output = output.or_else(|| self.multicast());
        output.or_else(|| self.outbox.reading.next())
    }

    /// Tells the predecessor from which instance on to send, if it is to be told and can be.
    fn follow(&mut self) -> Option<Output> {
        let stream = self.stream.as_mut()?;
        if !stream.is_to_ask() {
            return None;
        }
        let peer = self.links.process(stream.predecessor()?)?;
        if peer.has_words() {
            return None;
        }
        let (follow, lacks) = stream.follow();
        let word = Word::ResumeFrom(follow, lacks);
        peer.say(&word);
        self.links.next_word()
    }

    /// Notes it if this acceptor votes for nothing in this round any more: others are told along the ring, and do not
    /// wait for it.
    fn note_log_failed(&mut self) {
        // Before the round begins its log may be open again: then it votes from the start.
        let begun = self.is_operational() || mutants::on(Mutant::U101);
        let Some(config) = self.membership.config().filter(|_| begun) else {
            return;
        };
        let (me, voter) = (self.cx.me.node, self.voter.id());
        let place = config.acceptors.iter().position(|who| who.node == me);
        // The others wait for the store that the configuration has, which may be another one.
        let abstains = |at: usize| {
            let is_other = config.acceptors[at] != voter && !mutants::on(Mutant::U111);
            self.voter.abstains() || is_other
        };
        if let Some(at) = place.filter(|at| abstains(*at) && !mutants::on(Mutant::U34)) {
            self.round.on_log_failed(at);
        }
    }

    /// The next batch for the successor.
    fn batch(&mut self) -> Option<Output> {
        self.note_log_failed();
        let config = self.membership.config()?;
        let stream = self.stream.as_mut()?;
        let session = stream.session()?;
        let peer = self.links.process(stream.successor()?)?;
        if peer.session != session {
            return None;
        }
        let learner = &self.learning.learner;
        let begun = learner.round() == config.number;
        let told = (0, self.membership.election.told());
        let (start, kept) = if begun { self.round.start } else { told };
        let head = Head {
            founded: config.founded,
            round: config.number,
            epoch: 0,
            start,
            kept,
            from: 0,
            complete: self.membership.complete() == config.number,
        };
        let voted = if begun { learner.voted() } else { &[] };
        let force = stream.is_to_speak();
        let room = peer.room(force).min(super::MOST_BATCH);
        if room < super::LEAST_ROOM {
            return None;
        }
        let to = peer.process.node;
        let own = |index: usize| {
            config
                .acceptors
                .get(index)
                .is_some_and(|who| who.node == to)
        };
        if !force && stream.puts_off(self.cx.now, &head, (voted, &own)) {
            return None;
        }
        let sizes = (room, self.cx.settings.batch_bytes);
        let progress = Progress {
            voted,
            learnt: self.round.learnt(),
            log_failed: self.round.log_failed(),
        };
        let bytes = stream.batch(head, &progress, own, sizes, force)?;
        stream.on_batch_sent(self.cx.now);
        self.counters.uring_batches_sent += 1;
        self.counters.uring_batch_bytes_sent += bytes.len() as u64;
        Some(peer.send_along(bytes))
    }
}

/// Promises on their way to coordinators.
impl URing {
    /// A promise is made. `lacks`: the instances whose votes it lacks, as only the log has them.
    pub(super) fn promised(&mut self, node: NodeId, promise: Promise, lacks: Range<Instance>) {
        match lacks.is_empty() || mutants::on(Mutant::U126) {
            true => self.tell_promise(node, promise),
            false => {
                self.outbox.reading.owe(node, promise, lacks);
                self.go_on_promising(node);
            }
        }
    }

    fn tell_promise(&mut self, node: NodeId, promise: Promise) {
        if node == self.cx.me.node {
            let word = Word::Promise(promise, false);
            return self.outbox.loopback.push_back(word);
        }
        self.counters.uring_votes_promised += promise.votes.len() as u64;
        self.links.promise(node, promise);
    }

    pub(super) fn go_on_promising(&mut self, node: NodeId) {
        if let Some(promise) = self.outbox.reading.go_on(node) {
            self.tell_promise(node, promise);
        }
    }

    /// Some votes that a promise lacked are forgotten meanwhile: one that says so is made.
    pub(super) fn promise_anew(&mut self, node: NodeId) {
        let owed = self.outbox.reading.take_owed(node);
        let config = self.membership.config();
        if let (Some(owed), Some(config)) = (owed, config)
            && owed.round == config.number
            && self.voter.votes()
        {
            let about = (owed.round, owed.from);
            let next = self.learning.next();
            self.voter.promise(config.coordinator, about, next);
        }
    }
}

//! What was decided and did not come along the ring: asked of acceptors, by ranges (Multi-Ring Paxos §5.1).

use alloc::vec::Vec;
use bytes::Bytes;
use core::ops::Range;

use super::base_bytes::put_base;
use super::codec::{Source, fitting, vote_bytes};
use super::engine::URing;
use super::peers::Peer;
use super::questions::Questions;
use super::word::Word;
use crate::contract::{NodeId, Process, Time};
use crate::mutants::{self, Mutant};
use crate::pack::MOST_MESSAGE_BYTES;
use crate::paxos::{Instance, Vote};

/// Votes that are looked at for one answer.
const VOTES: usize = 4096;

/// The largest base beside the messages that go on behind it, in bytes.
const MOST_BASE: usize = 16 << 20;

/// What is asked of one acceptor after the other.
#[derive(Debug, Default)]
pub struct Fetching {
    questions: Questions,
    /// What has come of a base.
    part: Part,
    /// Whom it asks next if that brings nothing.
    turn: usize,
    /// After an answer with nothing in it: not before this time.
    pause: Option<Time>,
}

/// The first bytes of a base, whoever is asked meanwhile: where links are slow it takes longer than anybody is waited for.
#[derive(Debug, Default)]
struct Part {
    of: Option<NodeId>,
    bytes: Vec<u8>,
    /// When something came last.
    heard: Time,
}

impl Part {
    /// The next bytes, if they are. Another's base is not begun while this one comes.
    fn take(&mut self, from: (NodeId, Time), at: u64, bytes: &[u8], patience: u64) -> bool {
        let (node, now) = from;
        let is_old = self.bytes.is_empty() || now.since(self.heard) > patience;
        if at == 0 && (self.of == Some(node) || is_old) {
            self.of = Some(node);
            self.bytes.clear();
        }
        let is_next = self.of == Some(node) && at == self.bytes.len() as u64;
        if is_next {
            self.bytes.extend_from_slice(bytes);
            self.heard = now;
        }
        is_next
    }

    fn forget(&mut self) {
        *self = Self::default();
    }
}

impl Fetching {
    /// What was proposed in a round that is over is not known any more.
    pub fn seek_again(&mut self) {
        self.questions.seek_again();
    }
}

impl URing {
    /// Asks for what is missing, if something is that nobody is being asked for.
    pub(super) fn fetch(&mut self) {
        // What comes has to be written: no faster than the disk takes it, and what the ring brings comes first.
        let waits = self.votes() && self.disk.is_busy() && !mutants::on(Mutant::U51);
        while !waits
            && self.fetching.pause.is_none()
            && !self.fetching.questions.is_enough()
            && self.fetch_some()
        {}
    }

    /// Whether there was something to ask for.
    fn fetch_some(&mut self) -> bool {
        let is_behind = self.learner.next() < self.learner.decided();
        // A slow application does not stop an acceptor that a coordinator may wait for.
        let is_awaited = self.lack.is_some();
        if !is_behind || !(is_awaited || self.hand_out.has_room()) {
            return false;
        }
        let Some(missing) = self.missing() else {
            return false;
        };
        if mutants::on(Mutant::U16) {
            self.learner.skip_to(missing.end);
            self.counted.next = missing.end;
            self.told.next = missing.end;
            return false;
        }
        let upto = missing.end.min(self.brought());
        if missing.start >= upto {
            return false;
        }
        // One after the other: what one has not is not asked of two.
        let asked = self.fetching.questions.to();
        let Some(node) = asked.or_else(|| self.preferential()) else {
            return false;
        };
        let questions = &mut self.fetching.questions;
        let Range { start, end } = questions.ask(self.now, node, missing.start..upto);
        self.say(node, Word::Fetch(start, end));
        true
    }

    /// What is decided, is not known, and is not asked for. What lies between gaps is not looked through in each step.
    fn missing(&mut self) -> Option<Range<Instance>> {
        let found = self.missing_from(self.fetching.questions.sought());
        debug_assert_eq!(found, self.missing_from(0));
        let sought = found.as_ref().map(|missing| missing.start);
        let questions = &mut self.fetching.questions;
        questions.sought_to(sought.unwrap_or_else(|| self.learner.decided()));
        found
    }

    fn missing_from(&self, from: Instance) -> Option<Range<Instance>> {
        let mut missing = self.learner.missing_from(from)?;
        loop {
            let at = self.fetching.questions.behind(missing.start);
            if at < missing.end {
                return Some(at..missing.end);
            }
            missing = self.learner.missing_from(at)?;
        }
    }

    /// What is not before this the ring still brings. It is not learnt elsewhere: what has counted is not carried any
    /// more, and the proposal that comes may name a value without bringing it. As long as the round has not begun here,
    /// what is known to be decided was so in earlier ones: what is proposed of it again comes with its value. (A base may reach
    /// into what the ring brings: [`Stream::ask_forgotten`].)
    fn brought(&self) -> Instance {
        let has_begun = self.learner.round() == self.number() || mutants::on(Mutant::U37);
        let stream = self.stream.as_ref().filter(|_| has_begun);
        stream.map_or(Instance::MAX, |stream| {
            stream.next().max(self.round_start.0)
        })
    }

    /// Whom to ask: one of the acceptors there is a link to, always the same until it has no answer.
    fn preferential(&self) -> Option<NodeId> {
        let nodes = self.informants();
        let turn = self.fetching.turn.checked_rem(nodes.len())?;
        nodes.get(turn).copied()
    }

    /// This one is asked now, whoever else is being: it knows what is missing.
    pub(super) fn ask_first(&mut self, node: NodeId) {
        let turn = self.informants().iter().position(|other| *other == node);
        self.fetching.turn = turn.unwrap_or(self.fetching.turn);
        if self.fetching.questions.to() != Some(node) {
            self.give_up();
        }
        self.fetching.pause = None;
    }

    fn informants(&self) -> Vec<NodeId> {
        let Some(config) = &self.config else {
            return Vec::new();
        };
        let is_there = |node: &NodeId| {
            let peer = self.peers.at(*node);
            peer.is_some_and(|peer| self.is_there(peer.process))
        };
        let nodes = config.acceptors.iter().map(|who| who.node);
        nodes.filter(is_there).collect()
    }

    /// Somebody asks what was decided.
    pub(super) fn on_fetch(&mut self, node: NodeId, from: Instance, upto: Instance) {
        self.counters.uring_fetches_served += 1;
        if from >= self.acceptor.kept() {
            let word = Word::Chosen(self.chosen(from, upto));
            return self.peers.say(node, &word);
        }
        if self.peers.at(node).is_some_and(Peer::tells_base) {
            // Several questions may have that answer.
            return;
        }
        let mut bytes = Vec::new();
        put_base(&mut bytes, &self.base);
        self.peers.base(node, bytes.into());
    }

    /// What is known to be decided of a range, from its beginning on, as much as one word takes.
    fn chosen(&self, from: Instance, upto: Instance) -> Vec<Vote> {
        let known = self.learner.next();
        let upto = if mutants::on(Mutant::U08) {
            upto
        } else {
            upto.min(known)
        };
        let votes = self.acceptor.votes().from(from);
        let votes = votes.map_while(|vote| vote.part(from, upto)).take(VOTES);
        fitting(votes, self.settings.word_bytes).collect()
    }

    /// The answer.
    pub(super) fn on_chosen(&mut self, process: Process, votes: &[Vote]) {
        let is_awaited = self.fetching.questions.to() == Some(process.node);
        let answers = match is_awaited {
            true => self.answers(votes),
            false => None,
        };
        // One that comes late is as good: where links are slow, all may.
        let from = self.learner.missing().map_or(0, |missing| missing.start);
        let begins = votes.first().is_some_and(|first| first.first <= from);
        let brings = votes
            .last()
            .is_some_and(|last| last.end() > self.learner.next());
        if answers == Some(true) || begins && brings {
            self.fetching.pause = None;
        } else if is_awaited && (votes.is_empty() || answers == Some(false)) {
            // It does not know, or not what was asked for.
            self.give_up();
            self.ask_another();
        }
        for vote in votes {
            self.counters.uring_votes_fetched += 1;
            self.learner.on_chosen(vote);
        }
    }

    /// Whether what who is asked says begins where a question does; `None` if it answers none.
    fn answers(&mut self, votes: &[Vote]) -> Option<bool> {
        let (first, last) = votes.first().zip(votes.last())?;
        let bytes: usize = votes.iter().map(vote_bytes).sum();
        let is_full = bytes >= self.settings.word_bytes / 2 || votes.len() >= VOTES;
        let brought = first.first..last.end();
        self.fetching
            .questions
            .answered(self.now, &brought, is_full)
    }

    /// Nothing is waited for any more.
    fn give_up(&mut self) {
        self.fetching.questions.give_up();
    }

    fn ask_another(&mut self) {
        self.fetching.turn = self.fetching.turn.wrapping_add(1);
        self.fetching.pause = Some(self.now.after(self.settings.patience.heartbeat));
    }

    /// When a question or a pause is over.
    pub(super) fn fetch_at(&self) -> Option<Time> {
        let asked = self.fetching.questions.since();
        let asked = asked.map(|at| at.after(self.settings.patience.silence));
        asked.into_iter().chain(self.fetching.pause).min()
    }

    pub(super) fn on_fetch_timer(&mut self) {
        self.fetching.pause = None;
        if self.fetching.questions.to().is_some() {
            self.give_up();
            self.ask_another();
        }
    }

    /// The one that was asked is gone.
    pub(super) fn stop_asking(&mut self, node: NodeId) {
        if self.fetching.part.of == Some(node) {
            self.fetching.part.forget();
        }
        if self.fetching.questions.to() == Some(node) {
            self.give_up();
            self.ask_another();
        }
    }

    /// The largest base, in bytes: each node may have a message that goes on behind it.
    fn most_base(&self) -> usize {
        let message = 2 * MOST_MESSAGE_BYTES;
        MOST_BASE.saturating_add(message.saturating_mul(self.settings.ring.len()))
    }

    /// An answer: what was asked for is forgotten there.
    pub(super) fn on_forgotten(&mut self, process: Process, at: u64, part: &Bytes, more: bool) {
        let is_asked = self.fetching.questions.to() == Some(process.node);
        let patience = 16 * self.settings.patience.silence;
        let from = (process.node, self.now);
        // Over a slow link the answer comes when another one is asked.
        let is_wanted = self.learner.next() < self.learner.decided();
        if !is_wanted || !self.fetching.part.take(from, at, part, patience) {
            // Nobody has asked for it, or something is missing before.
            self.counters.uring_messages_stale += 1;
            return;
        }
        if more && self.fetching.part.bytes.len() <= self.most_base() {
            if is_asked {
                self.fetching.questions.goes_on(self.now);
            }
            return;
        }
        let bytes = core::mem::take(&mut self.fetching.part).bytes;
        let Some(base) = Source(bytes.into()).base().filter(|_| !more) else {
            self.counters.uring_messages_refused += 1;
            self.give_up();
            return self.ask_another();
        };
        // Questions behind it may have other answers, and of those before it each may have this one.
        self.begin_at(base);
        self.fetching.questions.forget_to(self.learner.next());
    }
}

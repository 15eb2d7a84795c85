//! What was decided and did not come along the ring: asked of acceptors, by ranges (Multi-Ring Paxos §5.1).

use alloc::vec::Vec;
use bytes::Bytes;

use super::codec::{Source, fitting, put_base};
use super::engine::URing;
use super::word::Word;
use crate::contract::{NodeId, Process, Time};
use crate::mutants::{self, Mutant};
use crate::paxos::{Instance, Vote};

/// Votes that are looked at for one answer.
const VOTES: usize = 4096;

/// The largest base, in bytes.
const MOST_BASE: usize = 64 << 20;

/// One question at a time.
#[derive(Debug, Default)]
pub struct Fetching {
    /// Who was asked, and when.
    asked: Option<(NodeId, Time)>,
    /// What has come of a base.
    part: Vec<u8>,
    /// Whom it asks next if that brings nothing.
    turn: usize,
    /// After an answer with nothing in it: not before this time.
    pause: Option<Time>,
}

impl URing {
    /// Asks for what is missing, if something is and nobody is being asked.
    pub(super) fn fetch(&mut self) {
        if self.fetching.asked.is_some() || self.fetching.pause.is_some() {
            return;
        }
        let is_behind = self.learner.next() < self.learner.decided();
        // A slow application does not stop an acceptor that a coordinator may wait for.
        let is_awaited = self.lack.is_some();
        if !is_behind || !(is_awaited || self.hand_out.has_room()) {
            return;
        }
        let Some(missing) = self.learner.missing() else {
            return;
        };
        if mutants::on(Mutant::U16) {
            self.learner.skip_to(missing.end);
            self.counted.next = missing.end;
            self.told.next = missing.end;
            return;
        }
        let upto = missing.end.min(self.brought());
        if missing.start >= upto {
            return;
        }
        let Some(node) = self.preferential() else {
            return;
        };
        self.fetching.asked = Some((node, self.now));
        self.fetching.part.clear();
        self.say(node, Word::Fetch(missing.start, upto));
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
        self.fetching.asked.take_if(|(asked, _)| *asked != node);
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
        if self.disk.failed {
            // What was decided since is not in there, and something else may be.
            return self.peers.say(node, &Word::Chosen(Vec::new()));
        }
        if from >= self.acceptor.kept() {
            let word = Word::Chosen(self.chosen(from, upto));
            return self.peers.say(node, &word);
        }
        if self.base.next < self.acceptor.kept() {
            return self.peers.say(node, &Word::Chosen(Vec::new()));
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
        // One that comes late is as good: where links are slow, all may.
        let is_awaited = matches!(self.fetching.asked, Some((node, _)) if node == process.node);
        let from = self.learner.missing().map_or(0, |missing| missing.start);
        let begins = votes.first().is_some_and(|first| first.first <= from);
        let brings = votes
            .last()
            .is_some_and(|last| last.end() > self.learner.next());
        let helps = begins && brings;
        if helps {
            self.fetching.asked = None;
            self.fetching.pause = None;
        } else if is_awaited {
            // It does not know, or not what was asked for.
            self.fetching.asked = None;
            self.ask_another();
        }
        for vote in votes {
            self.counters.uring_votes_fetched += 1;
            self.learner.on_chosen(vote);
        }
    }

    fn ask_another(&mut self) {
        self.fetching.turn = self.fetching.turn.wrapping_add(1);
        self.fetching.pause = Some(self.now.after(self.settings.patience.heartbeat));
    }

    /// When a question or a pause is over.
    pub(super) fn fetch_at(&self) -> Option<Time> {
        let asked = self.fetching.asked;
        let asked = asked.map(|(_, at)| at.after(self.settings.patience.silence));
        asked.into_iter().chain(self.fetching.pause).min()
    }

    pub(super) fn on_fetch_timer(&mut self) {
        self.fetching.pause = None;
        if self.fetching.asked.take().is_some() {
            self.ask_another();
        }
    }

    /// The one that was asked is gone.
    pub(super) fn stop_asking(&mut self, node: NodeId) {
        if matches!(self.fetching.asked, Some((asked, _)) if asked == node) {
            self.fetching.asked = None;
            self.ask_another();
        }
    }

    /// An answer: what was asked for is forgotten there.
    pub(super) fn on_forgotten(&mut self, process: Process, part: &Bytes, more: bool) {
        let is_answer = matches!(self.fetching.asked, Some((node, _)) if node == process.node);
        if !is_answer {
            self.counters.uring_messages_stale += 1;
            return;
        }
        self.fetching.part.extend_from_slice(part);
        if more && self.fetching.part.len() <= MOST_BASE {
            self.fetching.asked = Some((process.node, self.now));
            return;
        }
        self.fetching.asked = None;
        let bytes = core::mem::take(&mut self.fetching.part);
        match Source(bytes.into()).base().filter(|_| !more) {
            Some(base) => self.begin_at(base),
            None => {
                self.counters.uring_messages_refused += 1;
                self.ask_another();
            }
        }
    }
}

//! Catch-up: decided instances that did not come along the ring are asked of acceptors, by ranges (Multi-Ring Paxos
//! §5.1).

use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;
use core::ops::Range;

use super::codec::{Source, fitting, vote_bytes};
use super::context::Context;
use super::learning::Learning;
use super::questions::CatchUpPipeline;
use super::reading::{Piecemeal, Reader, Reading};
use super::snapshot::Snapshot;
use super::snapshot_bytes::put_base;
use super::voter::Voter;
use super::watching::Watch;
use super::word::Word;
use crate::{Instance, Learner, Vote};
use rota_core::contract::{NodeId, Time};
use rota_core::mutants::{self, Mutant};
use rota_core::pack::MOST_MESSAGE_BYTES;

/// The most votes in one answer.
const VOTES: usize = 4096;

/// The largest snapshot beside the messages that go on behind it, in bytes.
const MOST_BASE: usize = 16 << 20;

/// The catch-up of a process, which asks one acceptor after the other.
#[derive(Debug, Default)]
pub struct CatchUp {
    questions: CatchUpPipeline,
    /// The question of an observer for what is decided next.
    pub watch: Watch,
    /// The part of a snapshot that has come.
    part: Part,
    /// The turn of the acceptor that is asked; the next one has its turn when this one brings nothing.
    turn: usize,
    /// The time before which nothing is asked, after an answer that brought nothing.
    pause: Option<Time>,
}

/// The first bytes of a snapshot, whichever acceptor is asked meanwhile: on slow links a snapshot takes longer than any
/// answer is waited for.
#[derive(Debug, Default)]
struct Part {
    of: Option<NodeId>,
    bytes: Vec<u8>,
    /// The time at which bytes last came.
    heard: Time,
}

impl Part {
    /// Takes bytes, and returns whether they were the next. The snapshot of another node is not begun while this one
    /// comes.
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

/// The result of some bytes of a snapshot.
#[derive(Debug)]
pub enum Brought {
    /// The whole snapshot.
    Snapshot(Box<Snapshot>),
    /// More has to come.
    Part,
    /// Nobody has asked for the bytes, or some before them are missing.
    Nothing,
    /// The bytes are no snapshot.
    Garbage,
}

impl CatchUp {
    /// Begins the search for missing instances anew: proposals of a round that is over are not known any more.
    pub fn seek_again(&mut self) {
        self.questions.seek_again();
    }

    /// Whether missing instances may be asked for now.
    pub fn may_ask(&self, learning: &Learning, is_awaited: bool) -> bool {
        let is_behind = learning.next() < learning.learner.decided();
        // A slow application does not stop an acceptor that a coordinator may wait for.
        let has_room = is_awaited || learning.hand_out.has_room();
        self.pause.is_none() && !self.questions.is_enough() && is_behind && has_room
    }

    /// The first gap: decided instances that are neither known nor asked for. Instances between gaps are not looked
    /// through in each step.
    pub fn missing(&mut self, learner: &Learner) -> Option<Range<Instance>> {
        let found = self.missing_from(learner, self.questions.sought());
        debug_assert_eq!(found, self.missing_from(learner, 0));
        let sought = found.as_ref().map(|missing| missing.start);
        self.questions
            .sought_to(sought.unwrap_or_else(|| learner.decided()));
        found
    }

    fn missing_from(&self, learner: &Learner, from: Instance) -> Option<Range<Instance>> {
        let mut missing = learner.missing_from(from)?;
        loop {
            let at = self.questions.behind(missing.start);
            if at < missing.end {
                return Some(at..missing.end);
            }
            missing = learner.missing_from(at)?;
        }
    }

    /// Asks for some of the missing instances. Returns the acceptor and the instances. Acceptors are asked one after
    /// the other, never two for the same instances.
    pub fn ask(
        &mut self,
        now: Time,
        missing: Range<Instance>,
        informants: impl FnOnce() -> Vec<NodeId>,
    ) -> Option<(NodeId, Range<Instance>)> {
        let asked = self.questions.to();
        let node = asked.or_else(|| self.preferential(&informants()))?;
        Some((node, self.questions.ask(now, node, missing)))
    }

    /// The acceptor to ask: one with a link, always the same until it has no answer.
    fn preferential(&self, informants: &[NodeId]) -> Option<NodeId> {
        let turn = self.turn.checked_rem(informants.len())?;
        informants.get(turn).copied()
    }

    /// Turns to this acceptor now, and gives up questions to another one: it knows the missing instances.
    pub fn ask_first(&mut self, node: NodeId, informants: &[NodeId]) {
        let turn = informants.iter().position(|other| *other == node);
        self.turn = turn.unwrap_or(self.turn);
        if self.questions.to() != Some(node) {
            self.questions.give_up();
        }
        self.pause = None;
    }

    /// Takes an answer.
    pub fn on_chosen(
        &mut self,
        cx: &Context,
        learner: &mut Learner,
        (node, votes): (NodeId, &[Vote]),
    ) {
        let is_awaited = self.questions.to() == Some(node);
        let answers = match is_awaited {
            true => self.answers(cx, votes),
            false => None,
        };
        // A late answer is as good: on slow links all answers may be late.
        let from = learner.missing().map_or(0, |missing| missing.start);
        let begins = votes.first().is_some_and(|first| first.first <= from);
        let brings = votes.last().is_some_and(|last| last.end() > learner.next());
        if answers == Some(true) || begins && brings {
            self.pause = None;
        } else if is_awaited && (votes.is_empty() || answers == Some(false)) {
            // The acceptor does not know the instances, or answers something else.
            self.ask_another(cx);
        }
        for vote in votes {
            learner.on_chosen(vote);
        }
    }

    /// Whether an answer of the acceptor that is asked begins where a question does; `None` if it answers none.
    fn answers(&mut self, cx: &Context, votes: &[Vote]) -> Option<bool> {
        let (first, last) = votes.first().zip(votes.last())?;
        let bytes: usize = votes.iter().map(vote_bytes).sum();
        let is_full = bytes >= cx.settings.word_bytes / 2 || votes.len() >= VOTES;
        let brought = first.first..last.end();
        self.questions.answered(cx.now, &brought, is_full)
    }

    /// Gives up all questions: another acceptor is asked, a little later.
    fn ask_another(&mut self, cx: &Context) {
        self.questions.give_up();
        self.turn = self.turn.wrapping_add(1);
        self.pause = Some(cx.now.after(cx.settings.patience.heartbeat));
    }

    /// The time at which a question or a pause is over.
    pub fn next_time(&self, cx: &Context) -> Option<Time> {
        let asked = self.questions.since();
        let asked = asked.map(|at| at.after(cx.settings.patience.silence));
        asked.into_iter().chain(self.pause).min()
    }

    /// That time has come.
    pub fn on_timer(&mut self, cx: &Context) {
        self.pause = None;
        if self.questions.to().is_some() {
            self.ask_another(cx);
        }
    }

    /// The link to a node is gone.
    pub fn on_down(&mut self, cx: &Context, node: NodeId) {
        if self.part.of == Some(node) {
            self.part.forget();
        }
        if self.questions.to() == Some(node) {
            self.ask_another(cx);
        }
    }

    /// Takes an answer of an acceptor that has forgotten the instances: the next bytes of its snapshot. `is_wanted`:
    /// decided instances are missing, or it is not known which are decided.
    pub fn on_forgotten(
        &mut self,
        cx: &Context,
        is_wanted: bool,
        node: NodeId,
        (at, part, more): (u64, &Bytes, bool),
    ) -> Brought {
        let is_asked = self.questions.to() == Some(node);
        let patience = 16 * cx.settings.patience.silence;
        // Over a slow link the answer may come when another acceptor is asked already.
        if !is_wanted || !self.part.take((node, cx.now), at, part, patience) {
            return Brought::Nothing;
        }
        if more && self.part.bytes.len() <= most_base(cx) {
            if is_asked {
                self.questions.goes_on(cx.now);
            }
            return Brought::Part;
        }
        let bytes = core::mem::take(&mut self.part).bytes;
        match Source(bytes.into()).base().filter(|_| !more) {
            Some(base) => Brought::Snapshot(Box::new(base)),
            None => {
                self.ask_another(cx);
                Brought::Garbage
            }
        }
    }

    /// Everything before this instance is learnt. Questions behind it may have other answers, and each question before
    /// it may have this one.
    pub fn forget_to(&mut self, next: Instance) {
        self.questions.forget_to(next);
    }
}

/// The largest snapshot, in bytes: each node may have a message that goes on behind it.
fn most_base(cx: &Context) -> usize {
    let message = 2 * MOST_MESSAGE_BYTES;
    MOST_BASE.saturating_add(message.saturating_mul(cx.settings.ring.len()))
}

/// The answer to a question for decided instances.
#[derive(Debug)]
pub enum Answer {
    /// This message.
    Votes(Word),
    /// The instances are forgotten: this snapshot, in parts.
    Snapshot(Bytes),
    /// The values are read back first.
    Later,
}

/// The decided values of a range, from its beginning on, as many as one message takes; none if the log should have them
/// and does not: another acceptor is asked then. `next`: everything before is known.
pub fn answer(
    cx: &Context,
    (voter, reading): (&Voter, &mut Reading),
    next: Instance,
    (node, asked): (NodeId, Range<Instance>),
) -> Answer {
    if asked.start < voter.kept() {
        let mut bytes = Vec::new();
        put_base(&mut bytes, voter.trimmed());
        return Answer::Snapshot(bytes.into());
    }
    let upto = match mutants::on(Mutant::U08) {
        true => asked.end,
        false => asked.end.min(next),
    };
    let archived = asked.start..voter.resident().min(upto);
    if !archived.is_empty() {
        return match reading.get(Reader::Peer(node), archived) {
            Piecemeal::Later => Answer::Later,
            Piecemeal::Never => Answer::Votes(Word::Chosen(Vec::new())),
            Piecemeal::Votes(votes) => {
                let votes = votes.iter().cloned();
                let votes = votes.map_while(|vote| vote.part(asked.start, upto));
                let votes = fitting(votes.take(VOTES), cx.settings.word_bytes);
                Answer::Votes(Word::Chosen(votes.collect()))
            }
        };
    }
    reading.forget(Reader::Peer(node));
    let votes = voter.record().from(asked.start);
    let votes = votes.map_while(|vote| vote.part(asked.start, upto));
    let votes = fitting(votes.take(VOTES), cx.settings.word_bytes);
    Answer::Votes(Word::Chosen(votes.collect()))
}

//! What was decided and did not come along the ring: asked of acceptors, by ranges (Multi-Ring Paxos §5.1).

use alloc::vec::Vec;
use bytes::Bytes;
use core::ops::Range;

use super::codec::{Source, fitting, vote_bytes};
use super::context::Context;
use super::learning::Learning;
use super::questions::CatchUpPipeline;
use super::snapshot::Snapshot;
use super::snapshot_bytes::put_base;
use super::voter::Voter;
use super::word::Word;
use crate::{Instance, Learner, Vote};
use rota_core::contract::{NodeId, Time};
use rota_core::mutants::{self, Mutant};
use rota_core::pack::MOST_MESSAGE_BYTES;

/// Votes that are looked at for one answer.
const VOTES: usize = 4096;

/// The largest base beside the messages that go on behind it, in bytes.
const MOST_BASE: usize = 16 << 20;

/// What is asked of one acceptor after the other.
#[derive(Debug, Default)]
pub struct CatchUp {
    questions: CatchUpPipeline,
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

/// What bytes of a base bring.
#[derive(Debug)]
pub enum Brought {
    /// The whole of it.
    Snapshot(Snapshot),
    /// More has to come.
    Part,
    /// Nobody has asked for it, or something is missing before.
    Nothing,
    /// It is none.
    Garbage,
}

impl CatchUp {
    /// What was proposed in a round that is over is not known any more.
    pub fn seek_again(&mut self) {
        self.questions.seek_again();
    }

    /// Whether something may be asked for now, where something is missing.
    pub fn may_ask(&self, learning: &Learning, is_awaited: bool) -> bool {
        let is_behind = learning.next() < learning.learner.decided();
        // A slow application does not stop an acceptor that a coordinator may wait for.
        let has_room = is_awaited || learning.hand_out.has_room();
        self.pause.is_none() && !self.questions.is_enough() && is_behind && has_room
    }

    /// What is decided, is not known, and is not asked for. What lies between gaps is not looked through in each step.
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

    /// Asks for some of what is missing: whom, and for what. One after the other: what one has not is not asked of two.
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

    /// Whom to ask: one of the acceptors there is a link to, always the same until it has no answer.
    fn preferential(&self, informants: &[NodeId]) -> Option<NodeId> {
        let turn = self.turn.checked_rem(informants.len())?;
        informants.get(turn).copied()
    }

    /// This one is asked now, whoever else is being: it knows what is missing.
    pub fn ask_first(&mut self, node: NodeId, informants: &[NodeId]) {
        let turn = informants.iter().position(|other| *other == node);
        self.turn = turn.unwrap_or(self.turn);
        if self.questions.to() != Some(node) {
            self.questions.give_up();
        }
        self.pause = None;
    }

    /// The answer.
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
        // One that comes late is as good: where links are slow, all may.
        let from = learner.missing().map_or(0, |missing| missing.start);
        let begins = votes.first().is_some_and(|first| first.first <= from);
        let brings = votes.last().is_some_and(|last| last.end() > learner.next());
        if answers == Some(true) || begins && brings {
            self.pause = None;
        } else if is_awaited && (votes.is_empty() || answers == Some(false)) {
            // It does not know, or not what was asked for.
            self.ask_another(cx);
        }
        for vote in votes {
            learner.on_chosen(vote);
        }
    }

    /// Whether what who is asked says begins where a question does; `None` if it answers none.
    fn answers(&mut self, cx: &Context, votes: &[Vote]) -> Option<bool> {
        let (first, last) = votes.first().zip(votes.last())?;
        let bytes: usize = votes.iter().map(vote_bytes).sum();
        let is_full = bytes >= cx.settings.word_bytes / 2 || votes.len() >= VOTES;
        let brought = first.first..last.end();
        self.questions.answered(cx.now, &brought, is_full)
    }

    /// Nothing is waited for any more: another one is asked, a little later.
    fn ask_another(&mut self, cx: &Context) {
        self.questions.give_up();
        self.turn = self.turn.wrapping_add(1);
        self.pause = Some(cx.now.after(cx.settings.patience.heartbeat));
    }

    /// When a question or a pause is over.
    pub fn next_time(&self, cx: &Context) -> Option<Time> {
        let asked = self.questions.since();
        let asked = asked.map(|at| at.after(cx.settings.patience.silence));
        asked.into_iter().chain(self.pause).min()
    }

    /// It is.
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

    /// An answer: what was asked for is forgotten there, and these are the next bytes of its base.
    pub fn on_forgotten(
        &mut self,
        cx: &Context,
        learner: &Learner,
        node: NodeId,
        (at, part, more): (u64, &Bytes, bool),
    ) -> Brought {
        let is_asked = self.questions.to() == Some(node);
        let patience = 16 * cx.settings.patience.silence;
        // Over a slow link the answer comes when another one is asked.
        let is_wanted = learner.next() < learner.decided();
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
            Some(base) => Brought::Snapshot(base),
            None => {
                self.ask_another(cx);
                Brought::Garbage
            }
        }
    }

    /// Everything before this is learnt. Questions behind it may have other answers, and of those before it each may have this one.
    pub fn forget_to(&mut self, next: Instance) {
        self.questions.forget_to(next);
    }
}

/// The largest base, in bytes: each node may have a message that goes on behind it.
fn most_base(cx: &Context) -> usize {
    let message = 2 * MOST_MESSAGE_BYTES;
    MOST_BASE.saturating_add(message.saturating_mul(cx.settings.ring.len()))
}

/// What somebody is answered who asks what was decided from `from` on.
#[derive(Debug)]
pub enum Answer {
    /// This word.
    Votes(Word),
    /// That is forgotten: this base, in parts.
    Snapshot(Bytes),
}

/// What was decided in a range, from its beginning on, as much as one word takes. `next`: everything before is known.
pub fn answer(cx: &Context, voter: &Voter, next: Instance, asked: Range<Instance>) -> Answer {
    if asked.start < voter.kept() {
        let mut bytes = Vec::new();
        put_base(&mut bytes, voter.trimmed());
        return Answer::Snapshot(bytes.into());
    }
    let upto = match mutants::on(Mutant::U08) {
        true => asked.end,
        false => asked.end.min(next),
    };
    let votes = voter.record().from(asked.start);
    let votes = votes.map_while(|vote| vote.part(asked.start, upto));
    let votes = fitting(votes.take(VOTES), cx.settings.word_bytes);
    Answer::Votes(Word::Chosen(votes.collect()))
}

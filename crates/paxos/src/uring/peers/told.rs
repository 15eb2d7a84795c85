//! Long messages over a link: answers, promises and snapshots, in parts that take turns with batches of the ring.

use alloc::vec::Vec;
use core::ops::Range;

use super::super::catch_up::Answer;
use super::super::codec::{fitting, vote_bytes};
use super::super::word::Word;
use super::{ASKED, Peer, SMALL};
use crate::{Instance, Promise, Vote};
use rota_core::contract::Output;
use rota_core::mutants::{self, Mutant};

impl Peer {
    /// Parts are made one at a time, and wait for their room as other messages do.
    pub(super) fn next_part(
        &mut self,
        enough: usize,
        answer: &mut impl FnMut(Range<Instance>, bool) -> Option<Answer>,
    ) -> Option<Output> {
        if !self.has_parts() || !self.words.is_empty() || !self.may_tell() {
            return None;
        }
        let told = |peer: &mut Self| peer.promise_part(enough).or_else(|| peer.base_part(enough));
        let part = match self.answered {
            true => {
                let part = told(self).or_else(|| self.answer_part(answer));
                // The instances are forgotten, and there is a snapshot to tell now.
                part.or_else(|| told(self))
            }
            false => self.answer_part(answer).or_else(|| told(self)),
        }?;
        (self.part_is_next, self.answered) = (false, matches!(part, Word::Chosen(_)));
        self.words.push_back(part.encode(self.founded).into());
        self.next_word()
    }

    /// Whether a part may be told now.
    fn may_tell(&self) -> bool {
        self.is_clear() || self.is_small() || mutants::on(Mutant::U66)
    }

    /// Whether nothing waits but a promise of which little is left to tell.
    fn is_small(&self) -> bool {
        let Some((promise, told)) = self.promise.as_ref().filter(|_| self.asked.of.is_empty())
        else {
            return false;
        };
        let rest = &promise.votes[*told..];
        let bytes = || rest.iter().map(vote_bytes).sum::<usize>();
        // Each vote takes some bytes: many need not be added up.
        rest.len() <= SMALL / 16 && bytes() <= SMALL && !mutants::on(Mutant::U110)
    }

    /// Whether there is more to tell than words. A question that waits for the disk holds up nothing.
    pub(super) fn has_parts(&self) -> bool {
        let reads = self.asked.reads && !mutants::on(Mutant::U130);
        !self.asked.of.is_empty() && !reads || self.promise.is_some() || self.base.is_some()
    }

    pub(super) fn asks(&mut self, about: Range<Instance>) {
        let is_again = |asked: &Range<Instance>| asked.start == about.start;
        if mutants::on(Mutant::U108) {
            self.asked.of.push_back(about);
        } else if let Some(asked) = self.asked.of.iter_mut().find(|asked| is_again(asked)) {
            *asked = about;
        } else {
            let old = (self.asked.of.len() + 1).saturating_sub(ASKED);
            self.asked.of.drain(..old);
            self.asked.reads &= old == 0;
            self.asked.of.push_back(about);
        }
    }

    /// The next answer with votes. Forgotten instances have a snapshot for an answer, which is told in parts, and once
    /// for several questions.
    fn answer_part(
        &mut self,
        answer: &mut impl FnMut(Range<Instance>, bool) -> Option<Answer>,
    ) -> Option<Word> {
        while !self.asked.reads
            && let Some(about) = self.asked.of.pop_front()
        {
            match answer(about.clone(), self.base.is_some()) {
                Some(Answer::Votes(word)) => return Some(word),
                Some(Answer::Later) => {
                    self.asked.of.push_front(about);
                    self.asked.reads = true;
                }
                Some(Answer::Snapshot(base)) => self.base = Some((0, base)),
                None => {}
            }
        }
        None
    }

    /// The next part of a snapshot.
    fn base_part(&mut self, enough: usize) -> Option<Word> {
        let (at, mut rest) = self.base.take()?;
        let part = rest.split_to(rest.len().min(enough));
        let more = !rest.is_empty();
        self.base = more.then_some((at + part.len() as u64, rest));
        Some(Word::Forgotten(at, part, more))
    }

    /// The next part of a promise.
    fn promise_part(&mut self, enough: usize) -> Option<Word> {
        let (promise, told) = self.promise.as_mut()?;
        let rest = &promise.votes[*told..];
        let votes: Vec<Vote> = fitting(rest.iter().cloned(), enough).collect();
        let more = votes.len() < rest.len();
        let part = Promise {
            round: promise.round,
            acceptor: promise.acceptor,
            from: promise.from,
            held: promise.held,
            kept: promise.kept,
            votes,
        };
        *told += part.votes.len();
        if !more {
            self.promise = None;
        }
        Some(Word::Promise(part, more))
    }
}

//! The last resume message of the successor, and what it was told since.

use alloc::vec;
use alloc::vec::Vec;

use super::super::word::{Head, ResumeFrom};
use super::super::write::Writer;
use crate::Instance;
use rota_core::contract::Session;
use rota_core::mutants::{self, Mutant};
use rota_core::resume::Resumed;

/// See the module's page.
#[derive(Debug)]
pub struct Following {
    resumed: Resumed,
    /// The next proposal to send.
    at: Instance,
    /// By acceptor: the first instance without its vote, as the successor was last told. 0 after each resume message: the
    /// votes that a link has lost are told again.
    voted: Vec<Instance>,
    /// Likewise the first instance that it has not learnt.
    learnt: Vec<Instance>,
    /// Likewise whether the successor was told that its log has failed.
    log_failed: Vec<bool>,
    /// By place in the ring: the number of times that values had to be asked for, as the successor was last told.
    losses: Vec<u64>,
    /// It wants the values of proposals in these instances.
    lacks: Vec<Instance>,
    /// It was told where the round starts, and that the configuration is complete.
    start: bool,
    complete: bool,
}

/// What this process knows of the acceptors, by their indexes.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The first instance without its vote.
    pub voted: &'a [Instance],
    /// The first instance that it has not learnt.
    pub learnt: &'a [Instance],
    /// Whether it votes for nothing more in the round.
    pub log_failed: &'a [bool],
}

impl Following {
    /// A successor that has said this, and was told nothing of these numbers of acceptors and processes. `next`: the
    /// next proposal here.
    pub fn new(
        session: Session,
        (follow, lacks): (&ResumeFrom, Vec<Instance>),
        (acceptors, places): (usize, usize),
        next: Instance,
    ) -> Self {
        let told = if mutants::on(Mutant::U15) {
            follow.next
        } else {
            0
        };
        Self {
            resumed: Resumed::new(session, follow.epoch),
            at: match mutants::on(Mutant::U03) {
                true => next,
                false => follow.next,
            },
            voted: vec![told; acceptors],
            learnt: vec![0; acceptors],
            log_failed: vec![false; acceptors],
            losses: vec![0; places],
            lacks,
            start: false,
            complete: false,
        }
    }

    /// The session in which it has said so.
    pub const fn session(&self) -> Session {
        self.resumed.session()
    }

    /// The next proposal to send.
    pub const fn at(&self) -> Instance {
        self.at
    }

    /// Begins a batch: everything before `first` is forgotten here.
    pub fn begin(&mut self, head: &mut Head, first: Instance) {
        self.at = self.at.max(first);
        head.epoch = self.resumed.epoch();
        head.from = self.at;
    }

    /// Whether it wants the value of the proposal in this instance.
    pub fn lacks(&self, first: Instance) -> bool {
        self.lacks.binary_search(&first).is_ok()
    }

    /// It was sent all proposals before this instance.
    pub const fn on_proposal(&mut self, end: Instance) {
        self.at = end;
    }

    /// Whether the head says something new.
    const fn is_news(&self, head: &Head) -> bool {
        head.start > 0 && !self.start || head.complete && !self.complete
    }

    /// Whether a batch must not wait: the head says something new, or it brings values that the successor lacks.
    pub fn is_urgent(&self, head: &Head) -> bool {
        let brings = self.lacks.last().is_some_and(|last| *last >= self.at);
        self.is_news(head) || brings
    }

    /// Whether there are votes that it was not told. `own`: whether an acceptor is the successor's.
    pub fn has_votes(&self, (voted, own): (&[Instance], &impl Fn(usize) -> bool)) -> bool {
        let mut votes = self.voted.iter().zip(voted).enumerate();
        votes.any(|(index, (told, next))| told < next && !own(index))
    }

    /// Tells how far acceptors have voted.
    pub fn put_votes(
        &mut self,
        batch: &mut Writer,
        voted: &[Instance],
        own: &impl Fn(usize) -> bool,
    ) {
        for (index, (told, next)) in self.voted.iter_mut().zip(voted).enumerate() {
            if *told < *next && !own(index) && batch.takes_vote() {
                batch.voted(index as u8, *next);
                *told = *next;
            }
        }
    }

    /// The head is told. Returns whether it says something new.
    pub const fn on_head(&mut self, head: &Head) -> bool {
        let news = self.is_news(head);
        self.start |= head.start > 0;
        self.complete |= head.complete;
        news
    }

    /// Tells what goes with other records, or with the next heartbeat. `losses`: by place in the ring; those of the
    /// successor, at `to`, are left out.
    pub fn put_rest(
        &mut self,
        batch: &mut Writer,
        progress: &Progress<'_>,
        own: &impl Fn(usize) -> bool,
        (losses, to): (&[u64], usize),
    ) {
        for (index, (told, next)) in self.learnt.iter_mut().zip(progress.learnt).enumerate() {
            if *told < *next && !own(index) && batch.takes_vote() {
                batch.learnt(index as u8, *next);
                *told = *next;
            }
        }
        for (index, (told, failed)) in self
            .log_failed
            .iter_mut()
            .zip(progress.log_failed)
            .enumerate()
        {
            if *failed && !*told && !own(index) && batch.takes_vote() {
                batch.log_failed(index as u8);
                *told = true;
            }
        }
        for (place, (told, count)) in self.losses.iter_mut().zip(losses).enumerate() {
            if *told < *count && place != to && batch.takes_vote() {
                batch.lost(place as u8, *count);
                *told = *count;
            }
        }
    }
}

//! Votes that an acceptor forgets, and those that leave its memory: their values are read back from the log.
//!
//! Only a vote for a decided value that was learnt here leaves memory, and only when it is durable in the log: those that
//! may matter to a later round stay. Where a log has lost such votes, they are forgotten.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;
use core::ops::Range;

use super::super::context::Context;
use super::super::found;
use super::super::snapshot::Snapshot;
use super::Voter;
use crate::{Instance, Round, Vote};
use rota_core::mutants::{self, Mutant};

/// A snapshot that is next, while values of it are read back.
#[derive(Debug)]
pub(super) struct Forgetting {
    base: Snapshot,
    /// The instances of the values that it lacks, from the last to the first.
    lacks: Vec<Instance>,
}

impl Forgetting {
    fn new(base: Snapshot) -> Self {
        let mut lacks = base.lacks();
        lacks.reverse();
        Self { base, lacks }
    }

    /// It gets the first of the values that it lacks; without that the whole message is forgotten.
    fn fill(self, at: Instance, frame: Option<&Bytes>) -> Self {
        let Self {
            mut base,
            mut lacks,
        } = self;
        base.fill(at, frame);
        match frame {
            Some(_) => {
                lacks.pop_if(|next| *next == at);
                Self { base, lacks }
            }
            None => Self::new(base),
        }
    }
}

/// A hint at the decided instances is written once in this many instances.
pub(super) const HINT_EVERY: u64 = 32;

/// The most records that are forgotten at once: others wait meanwhile.
const MOST_AT_ONCE: usize = 4096;

impl Voter {
    /// The first instance whose vote is in memory.
    pub fn resident(&self) -> Instance {
        self.acceptor.resident()
    }

    /// The number of votes that only the log has.
    pub fn archived_votes(&self) -> usize {
        self.archive.len()
    }

    /// The instances from this one on whose votes only the log has.
    pub(super) fn archived(&self, from: Instance) -> Range<Instance> {
        let (from, upto) = (from.max(self.acceptor.kept()), self.acceptor.resident());
        from..upto.max(from)
    }

    /// Votes for decided values leave memory while it holds more than it may. `next`: everything before is learnt.
    pub fn part_with_some(&mut self, cx: &Context, next: Instance) {
        let settings = &cx.settings.acceptor;
        if settings.forgets || !self.votes() || self.disk.is_refilled() {
            return;
        }
        let durable = match mutants::on(Mutant::U125) {
            true => next,
            false => self.disk.learnt().min(next),
        };
        while self.acceptor.votes().bytes() > settings.memory_bytes
            && !mutants::on(Mutant::U133)
            && let Some(vote) = self.acceptor.part_with(durable)
        {
            self.archive.put(vote);
        }
    }

    /// The votes of some instances that only the log has, as far as these records of it are whole, and of the values
    /// that were decided.
    pub fn read_back(&self, asked: &Range<Instance>, records: Vec<(u64, Bytes)>) -> Vec<Vote> {
        let votes = records.into_iter();
        let votes = votes.map(|(position, bytes)| found::vote(position, &bytes));
        self.sound(asked, votes.collect())
    }

    /// The same of what others tell.
    pub fn sound(&self, asked: &Range<Instance>, votes: Vec<Option<Vote>>) -> Vec<Vote> {
        self.archive.sound(asked, votes)
    }

    /// The bytes that its votes take in memory, about, and those of the names of votes that only the log has.
    pub fn memory_bytes(&self) -> usize {
        self.acceptor.votes().bytes() + self.archive.bytes()
    }

    /// Whether its log can be read.
    pub const fn is_readable(&self) -> bool {
        !self.disk.has_failed()
    }

    /// The log was opened again with these votes. If it lacks any that only it had, everything up to the last of
    /// them is forgotten, as if it had been trimmed.
    pub(super) fn forget_lost(&mut self, cx: &Context, has: &BTreeMap<Instance, Vote>) {
        let Some(lost) = self.archive.lost(has) else {
            return;
        };
        let mut base = self.trimmed.clone();
        self.archive.advance(&mut base, lost, usize::MAX);
        for at in base.lacks() {
            // A vote for another value may be there, older than the one that is lost.
            let sound = self
                .archive
                .sound(&(at..at + 1), vec![has.get(&at).cloned()]);
            base.fill(at, sound.first().and_then(|vote| vote.value.frame()));
        }
        self.rest_on(cx, base, None);
    }

    /// Forgets instances that are far behind `next`, before which everything was learnt here, but none from `learnt`
    /// on, which a majority may not have learnt, and none from `needed` on, which partitions need.
    pub fn trim(
        &mut self,
        cx: &Context,
        (next, needed): (Instance, Option<Instance>),
        learnt: impl FnOnce() -> Instance,
    ) {
        debug_assert_eq!(
            self.acceptor.kept(),
            self.trimmed.next,
            "who has forgotten has a base"
        );
        let keep = match mutants::on(Mutant::U56) {
            true => cx.settings.acceptor.kept_instances / 16,
            false => cx.settings.acceptor.kept_instances,
        };
        // Not one by one.
        let slack = (keep / 16).max(1);
        let needed = needed.filter(|_| !mutants::on(Mutant::U119));
        let is_needed = needed.is_some_and(|needed| needed <= self.trimmed.next);
        let is_due = next >= self.trimmed.next + keep + slack && self.forgetting.is_none();
        if is_due && !is_needed {
            // Instances that others have to learn yet are not forgotten: if this acceptor dies, no other may be able to
            // tell them. Others that are restarted can tell only the instances before their hints.
            let hinted = match mutants::on(Mutant::U80) {
                true => 0,
                false => HINT_EVERY,
            };
            let below = learnt().saturating_sub(hinted).min(next - keep);
            let below = below.min(needed.unwrap_or(below));
            if below > self.trimmed.next {
                self.trim_to(cx, below);
            }
        }
    }

    /// Forgets everything below here, or as much as is forgotten at once.
    fn trim_to(&mut self, cx: &Context, below: Instance) {
        let mut base = self.trimmed.clone();
        // The rest follows soon: others wait for this process.
        self.archive.advance(&mut base, below, MOST_AT_ONCE);
        let below = match base.next < below.min(self.acceptor.resident()) {
            true => base.next,
            false => self.advance(&mut base, below),
        };
        base.next = below;
        base.forget_open(self.oldest_open(cx, &base));
        self.forget(cx, Forgetting::new(base));
    }

    /// Has a snapshot go on to `below` by the votes in memory, or as far as is forgotten at once. Returns how far.
    fn advance(&self, base: &mut Snapshot, below: Instance) -> Instance {
        let votes = self.acceptor.votes().from(base.next);
        let mut votes = votes.take_while(|vote| vote.first < below);
        let last = votes.nth(MOST_AT_ONCE);
        drop(votes);
        let below = below.min(last.map_or(below, |vote| vote.first));
        let votes = self.acceptor.votes().from(base.next);
        for vote in votes.map_while(|vote| vote.part(0, below)) {
            if !mutants::on(Mutant::U11) {
                base.advance(&vote);
            }
        }
        below
    }

    /// Forgets everything before a snapshot that is next, when that has all its values.
    fn forget(&mut self, cx: &Context, next: Forgetting) {
        match next.lacks.is_empty() || mutants::on(Mutant::U129) {
            true => self.rest_on(cx, next.base, None),
            false => self.forgetting = Some(next),
        }
    }

    /// An instance whose value has to be read back before anything is forgotten.
    pub fn lacks_to_forget(&self) -> Option<Instance> {
        self.forgetting.as_ref()?.lacks.last().copied()
    }

    /// That value; `None` if it cannot be read.
    pub fn fill(&mut self, cx: &Context, at: Instance, vote: Option<&Vote>) {
        if let Some(next) = self.forgetting.take() {
            self.forget(cx, next.fill(at, vote.and_then(|vote| vote.value.frame())));
        }
    }

    /// The values of messages that began before this are not kept.
    fn oldest_open(&self, cx: &Context, base: &Snapshot) -> Instance {
        let most = 4 * cx.settings.acceptor.kept_instances;
        base.next.saturating_sub(most)
    }

    /// Forgets everything before a snapshot. `lacks`: none of the values of messages that go on behind it is among the
    /// votes; they become votes of this round at least.
    pub fn rest_on(&mut self, cx: &Context, mut base: Snapshot, lacks: Option<Round>) {
        base.forget_open(self.oldest_open(cx, &base));
        self.acceptor.trim(base.next);
        self.archive.trim(base.next);
        self.kept_to = self.kept_to.max(base.next);
        // The next one follows from this one. It may have waited for a value that is forgotten now.
        self.forgetting = None;
        let lacks = lacks.filter(|_| !mutants::on(Mutant::U62));
        let values = lacks.map_or_else(Vec::new, |number| base.values(self.label(number)));
        self.disk.put_base(&base, values);
        self.trimmed = base;
    }

    /// A round for votes for decided values: no other value was or will be voted for in it, and no vote for the same
    /// instance is of a higher one.
    pub(super) fn label(&self, number: Round) -> Round {
        self.acceptor.promised().max(number)
    }
}

//! The pace of a ring: the time of its decisions, and the rounds that the others propose meanwhile.

use alloc::collections::BTreeMap;

use crate::order::{Instance, Rank, Round};

/// A smoothed number follows each new one by an eighth.
const SMOOTH: u64 = 8;
/// More rounds than these are not counted in the time of a decision.
const MOST_ROUNDS: Round = 1 << 20;

/// Watches one proposal after the other until it is decided.
#[derive(Clone, Default, Debug)]
pub(super) struct Pace {
    /// The time that a decision takes, in nanoseconds; 0 while that is not known.
    decision: u64,
    /// Rounds with values that the fastest of the others had meanwhile, eight times.
    eighths: u64,
    /// The last instance of the proposal that is watched, and when it was made.
    watched: Option<(Instance, u64)>,
    /// Rounds with values of each other ring since then.
    others: BTreeMap<Rank, Round>,
}

impl Pace {
    /// Everything up to this instance is proposed.
    pub(super) fn on_proposed(&mut self, last: Instance, now: u64) {
        if self.watched.is_none() {
            self.watched = Some((last, now));
            self.others.clear();
        }
    }

    /// Another ring has proposed values in this many rounds more.
    pub(super) fn on_others(&mut self, from: Rank, rounds: Round) {
        let counted = self.others.entry(from).or_insert(0);
        *counted = counted.saturating_add(rounds);
    }

    /// Everything before this instance is decided.
    pub(super) fn on_decided(&mut self, before: Instance, now: u64) {
        let Some((_, then)) = self.watched.filter(|(last, _)| before > *last) else {
            return;
        };
        self.watched = None;
        let took = now.saturating_sub(then);
        self.decision = match self.decision {
            0 => took,
            known => known - known / SMOOTH + took / SMOOTH,
        };
        let fastest = self.others.values().copied().max().unwrap_or(0);
        let seen = fastest.min(MOST_ROUNDS);
        self.eighths = self.eighths - self.eighths / SMOOTH + seen;
    }

    /// The time that a decision takes, in nanoseconds; 0 while that is not known.
    pub(super) const fn decision(&self) -> u64 {
        self.decision
    }

    /// Rounds with values that the fastest of the others has in the time of this many decisions.
    pub(super) const fn rounds_in(&self, decisions: u64) -> Round {
        decisions * self.eighths / SMOOTH
    }
}

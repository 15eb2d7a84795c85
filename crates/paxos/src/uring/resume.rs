//! An application that has a state goes on behind it. Beside the state it needs the snapshot of the place where it
//! stands, as this ring has told it (Benz et al. 2014, §5.2, where an instance's number is all that is kept; a process
//! that begins there without the table of counted values delivers again what others dropped).

use alloc::collections::{BTreeSet, VecDeque};

use super::learning::Learning;
use super::snapshot::Snapshot;
use super::voter::Voter;
use crate::{Instance, Vote};
use rota_core::mutants::{self, Mutant};

/// The most snapshots that are wanted at once.
const MOST_WANTED: usize = 64;

/// Snapshots for the application, and the one that it begins with.
#[derive(Clone, Default, Debug)]
pub struct Snapshots {
    /// The snapshot at which the application begins, until the start.
    begin: Option<Snapshot>,
    /// The places of which the application wants the snapshots.
    wanted: BTreeSet<Instance>,
    /// The wanted snapshots that it has not taken.
    told: VecDeque<Snapshot>,
}

impl Snapshots {
    /// The next place of which a snapshot is wanted; everything before it may be told in one go.
    pub(super) fn next(&self) -> Instance {
        self.wanted.first().copied().unwrap_or(Instance::MAX)
    }

    /// A snapshot that was wanted, when everything before it is on its way to the application.
    pub fn take(&mut self) -> Option<Snapshot> {
        self.told.pop_front()
    }

    /// The application has a state with everything before this snapshot.
    pub fn begin_with(&mut self, base: Snapshot) {
        self.begin = Some(base);
    }
}

impl Learning {
    /// The application wants the snapshot of a place to which it will come. Returns whether it will get it.
    pub fn want_snapshot(&mut self, next: Instance) -> bool {
        let is_ahead = next > self.delivered.next && self.bases.wanted.len() < MOST_WANTED;
        if is_ahead {
            self.bases.wanted.insert(next);
        } else if next == self.delivered.next {
            self.bases.told.push_back(self.delivered.clone());
            return true;
        }
        is_ahead
    }

    /// The application begins without a state: it has missed everything that its acceptor has forgotten.
    pub(super) fn begin_delivering(&mut self, trimmed: &Snapshot) {
        if trimmed.next > 1 && self.bases.begin.is_none() {
            self.hand_out.missed(1, trimmed, false, 0);
        }
        self.delivered = trimmed.clone();
    }

    /// The application begins behind its state. To be called when it is known whether this process votes.
    pub fn begin_behind_state(&mut self, voter: &Voter) {
        let Some(base) = self.bases.begin.take() else {
            return;
        };
        let trimmed = voter.trimmed();
        if base.next < trimmed.next {
            // The instances that the application needs next are forgotten here.
            self.hand_out.missed(base.next, trimmed, false, 0);
            self.delivered = trimmed.clone();
            return;
        }
        if !mutants::on(Mutant::U96) {
            self.hand_out.begin(&base);
        }
        self.begin_behind(base, voter.is_acceptor());
        if mutants::on(Mutant::U95) {
            self.delivered.table = trimmed.table.clone();
        }
    }

    /// The part of a value that is told next: not beyond a place of which the snapshot is wanted.
    pub(super) fn next_part(&self, vote: &Vote, upto: Instance) -> Option<Vote> {
        vote.part(self.delivered.next, upto.min(self.bases.next()))
    }

    /// Everything before `delivered` was told, or is known to be missed.
    pub(super) fn on_delivered(&mut self) {
        while self.bases.next() <= self.delivered.next {
            let place = self.bases.wanted.pop_first();
            // A place that was missed has no snapshot.
            if place == Some(self.delivered.next) {
                self.bases.told.push_back(self.delivered.clone());
            }
        }
    }
}

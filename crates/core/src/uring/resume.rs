//! An application that has a state goes on behind it. Beside the state it needs what follows from everything before: the base of the place where
//! it stands, as this ring has told it (Benz et al. 2014, §5.2, where an instance's number is all that is kept; without the table of values that
//! have counted, who begins there delivers again what others dropped).

use alloc::collections::{BTreeSet, VecDeque};

use super::base::Base;
use super::engine::URing;
use crate::contract::NodeId;
use crate::mutants::{self, Mutant};
use crate::paxos::{Instance, Vote};

/// So many bases are wanted at once, at most.
const MOST_WANTED: usize = 64;

/// Bases for the application, and the one that it begins with.
#[derive(Clone, Default, Debug)]
pub struct Bases {
    /// The application begins with a state of this foundation; 0: with none.
    founded: u64,
    /// Where it begins, until the start.
    begin: Option<Base>,
    /// The places of which the application wants the bases.
    wanted: BTreeSet<Instance>,
    /// Those that it has not taken.
    told: VecDeque<Base>,
}

impl Bases {
    /// The next place of which a base is wanted; everything before it may be told in one go.
    fn next(&self) -> Instance {
        self.wanted.first().copied().unwrap_or(Instance::MAX)
    }
}

impl URing {
    /// The application has a state with everything before this base, of a ring that was founded so: what follows is told behind it. To be said
    /// before the start.
    pub fn resume(&mut self, founded: u64, base: Base) {
        (self.bases.founded, self.bases.begin) = (founded, Some(base));
    }

    /// The application wants the base of a place to which it will come. Whether it will be told.
    pub fn want_base(&mut self, next: Instance) -> bool {
        let is_ahead = next > self.told.next && self.bases.wanted.len() < MOST_WANTED;
        if is_ahead {
            self.bases.wanted.insert(next);
        } else if next == self.told.next {
            self.bases.told.push_back(self.told.clone());
            return true;
        }
        is_ahead
    }

    /// The first instance of which the application was told nothing.
    pub const fn told(&self) -> Instance {
        self.told.next
    }

    /// A base that was wanted, when everything before it is on its way to the application.
    pub fn take_base(&mut self) -> Option<Base> {
        self.bases.told.pop_front()
    }

    /// Of which foundation the application has a state; 0 if it began without one.
    pub(super) fn resumed(&self) -> u64 {
        if mutants::on(Mutant::U97) {
            return 0;
        }
        self.bases.founded
    }

    /// The ring was founded anew after the application's state: that says nothing about this one.
    pub fn is_refounded(&self) -> bool {
        let is_other = match &self.config {
            Some(config) => config.founded != self.resumed(),
            // One that is left of before says nothing.
            None => 2 * self.foreign_acceptors() > self.settings.acceptors.len(),
        };
        self.resumed() > 0 && is_other
    }

    /// Acceptors that have turned out to belong to another foundation.
    fn foreign_acceptors(&self) -> usize {
        let acceptors = self.settings.acceptors.iter();
        let is_foreign = |node: &&NodeId| self.foreign.iter().any(|who| who.node == **node);
        acceptors.filter(is_foreign).count()
    }

    /// The application begins with nothing: what is forgotten here it has missed.
    pub(super) fn begin_telling(&mut self) {
        if self.base.next > 1 && self.bases.begin.is_none() {
            self.hand_out.missed(1, &self.base, false, 0);
        }
        self.told = self.base.clone();
    }

    /// The application begins behind its state. To be said when it is known whether this process votes.
    pub(super) fn begin_behind_state(&mut self) {
        let Some(base) = self.bases.begin.take() else {
            return;
        };
        if base.next < self.base.next {
            // What the application needs next is forgotten here.
            self.hand_out.missed(base.next, &self.base, false, 0);
            self.told = self.base.clone();
            return;
        }
        if !mutants::on(Mutant::U96) {
            self.hand_out.begin(&base);
        }
        if !self.is_acceptor() {
            self.learner.skip_to(base.next);
            self.counted = base.clone();
        }
        self.told = base;
        self.on_told();
        if mutants::on(Mutant::U95) {
            self.told.table = self.base.table.clone();
        }
    }

    /// The part of a value that is told next: not beyond a place of which the base is wanted.
    pub(super) fn next_part(&self, vote: &Vote, upto: Instance) -> Option<Vote> {
        vote.part(self.told.next, upto.min(self.bases.next()))
    }

    /// Everything before `told` was told, or is known to be missed.
    pub(super) fn on_told(&mut self) {
        while self.bases.next() <= self.told.next {
            let place = self.bases.wanted.pop_first();
            // What was missed in between has no base.
            if place == Some(self.told.next) {
                self.bases.told.push_back(self.told.clone());
            }
        }
    }
}

//! How quick a disk is: how much may be under way, and when it hangs.

use rota_core::contract::Time;
use rota_core::mutants::{self, Mutant};

/// Of what may be under way at a disk that is quick, this part may be at one of which nothing is known.
const LEAST_PART: usize = 16;

/// Not less than this part, also where it has failed again and again: a disk that takes long for anything takes that in its time.
const FLOOR_PART: usize = 256;

/// See the module's page.
#[derive(Debug, Default)]
pub struct Pace {
    /// No more is under way than this and one record, in bytes: what the disk takes in a part of the time that it may take.
    most: usize,
    /// At a disk that is quick.
    full: usize,
    /// Since when the disk has answered nothing, where it has something to answer.
    since: Option<Time>,
    /// It had to answer by then, and has had a little longer since.
    late: Option<Time>,
}

impl Pace {
    /// Of one that may turn out to be quick: then so many bytes may be under way.
    pub fn new(full: usize) -> Self {
        let most = match mutants::on(Mutant::U74) {
            true => full,
            false => full / LEAST_PART,
        };
        Self {
            most,
            full,
            ..Self::default()
        }
    }

    /// So much may be under way now, in bytes.
    pub const fn most(&self) -> usize {
        self.most
    }

    /// It has something to answer.
    pub fn on_request(&mut self, now: Time) {
        self.since.get_or_insert(now);
    }

    /// It has answered so many bytes, so long after the first of them were asked for, and has more to answer unless that was all.
    /// Twice as much may be under way where that would take half of its time at most. A quick answer to little says nothing of
    /// that; nor does how soon an answer comes behind another one, as it may have been on its way as long. Not less where it
    /// took long: it may be one that takes as long for anything.
    pub fn on_answer(
        &mut self,
        now: Time,
        (bytes, took): (usize, u64),
        is_all: bool,
        patience: u64,
    ) {
        let took = match mutants::on(Mutant::U82) {
            true => self.since.map_or(0, |since| now.since(since)),
            false => took,
        };
        (self.since, self.late) = ((!is_all).then_some(now), None);
        let bytes = match mutants::on(Mutant::U81) {
            true => self.most,
            false => bytes,
        };
        let twice = 2 * self.most as u128 * u128::from(took);
        if bytes > 0 && 2 * twice <= u128::from(patience) * bytes as u128 {
            self.most = (2 * self.most).min(self.full);
        }
    }

    /// It has failed, or hung: perhaps with more than it takes in its time.
    pub fn on_failed(&mut self) {
        let floor = match (mutants::on(Mutant::U74), mutants::on(Mutant::U98)) {
            (true, _) => self.full,
            (_, true) => self.full / LEAST_PART,
            (false, false) => self.full / FLOOR_PART,
        };
        let most = (self.most / 4).max(floor);
        *self = Self {
            most,
            ..Self::new(self.full)
        };
    }

    /// When a disk that may take so long has hung. Where the process itself did not run, its answers are at the door by
    /// then: it gets `grace` more, from when that is noticed.
    pub fn hangs_at(&self, patience: u64, grace: u64) -> Option<Time> {
        let late = self.late.map(|at| at.after(grace));
        late.or_else(|| self.since.map(|at| at.after(patience)))
    }

    /// The time that [`Self::hangs_at`] named has come. Whether that was the last.
    pub fn is_late(&mut self, now: Time) -> bool {
        self.late.replace(now).is_some()
    }
}

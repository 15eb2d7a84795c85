//! The pace of a disk: the bytes that may be under way, and the time at which it hangs.

use rota_core::contract::Time;
use rota_core::mutants::{self, Mutant};

/// One part in this many of the bytes for a quick disk may be under way at a disk of which nothing is known.
const LEAST_PART: usize = 16;

/// Not less than one part in this many, also at a disk that has failed again and again: a disk that takes long for
/// anything takes that in its time.
const FLOOR_PART: usize = 256;

/// See the module's page.
#[derive(Debug, Default)]
pub struct Pace {
    /// The most bytes under way, beside one record: as many as the disk takes in a part of the time that it may take.
    most: usize,
    /// The most bytes under way at a quick disk.
    full: usize,
    /// The time since which the disk has answered nothing, if it has something to answer.
    since: Option<Time>,
    /// The time at which its answer was found to be late; it has a little longer since.
    late: Option<Time>,
}

impl Pace {
    /// The pace of a disk that may turn out to be quick: then `full` bytes may be under way.
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

    /// The most bytes that may be under way now.
    pub const fn most(&self) -> usize {
        self.most
    }

    /// The disk has something to answer.
    pub fn on_request(&mut self, now: Time) {
        self.since.get_or_insert(now);
    }

    /// The disk has answered `bytes`, `took` nanoseconds after the first of them were asked for, and has more to answer
    /// unless `is_all`. Twice as much may be under way if that would take half of its time at most. A quick answer to
    /// little says nothing of that; nor does the time between two answers, as the later one may have been on its way as
    /// long. The bound does not shrink when an answer took long: the disk may take as long for anything.
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

    /// The disk has failed, or hung: perhaps with more than it takes in its time.
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

    /// The time at which a disk that may take `patience` has hung. If the process itself did not run, the answers of
    /// the disk have come by then: it gets `grace` more, from the time at which that is noticed.
    pub fn hangs_at(&self, patience: u64, grace: u64) -> Option<Time> {
        let late = self.late.map(|at| at.after(grace));
        late.or_else(|| self.since.map(|at| at.after(patience)))
    }

    /// The time that [`Self::hangs_at`] named has come. Returns whether that was the last.
    pub fn is_late(&mut self, now: Time) -> bool {
        self.late.replace(now).is_some()
    }
}

impl Pace {
    /// Its invariants.
    pub fn check(&self) {
        assert!(
            self.most <= self.full,
            "no disk is quicker than a quick one"
        );
    }
}

//! A log that is open again gets the records that it lacks, as fast as its disk takes them.
//!
//! The missing records are in memory (a log that lacks others is cut off behind them, [`super::memory`]), and wait there,
//! not at the disk: only as many are handed over as there is room for, from one vote to the next. Votes that come meanwhile at or behind that place are found when the place comes
//! there. Until the end no record is written that speaks of votes, such as the decided instances or the snapshot: a log
//! that was cut off in the middle would say it of old votes. Nobody waits for such a log, so it may take long; it is an
//! acceptor's again when little has come while the last of it was written.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::{Acceptor, Instance, Record, Vote};
use rota_core::mutants::{self, Mutant};

/// The repair of a log: its progress towards the state in memory.
#[derive(Debug)]
pub struct LogRepair {
    /// All votes before this one are in the log, or handed over.
    next: Instance,
    /// The votes in the log when it was opened, of those that are in memory, too.
    has: BTreeMap<Instance, Vote>,
    /// The last of it is being written.
    pub(super) is_ending: bool,
}

impl LogRepair {
    /// A repair from the first vote on, of a log with these.
    pub const fn new(has: BTreeMap<Instance, Vote>) -> Self {
        Self {
            next: 1,
            has,
            is_ending: false,
        }
    }

    /// Whether a record of the acceptor is found later.
    pub fn finds(&self, record: &Record) -> bool {
        matches!(record, Record::Voted(vote) if vote.first >= self.next)
    }

    /// The next vote that the log lacks.
    pub(super) fn next(&mut self, acceptor: &Acceptor) -> Option<Vote> {
        let votes = acceptor.votes().from(self.next);
        for vote in votes {
            self.next = vote.end();
            if self.has.get(&vote.first) != Some(&vote) && !mutants::on(Mutant::U49) {
                return Some(vote);
            }
        }
        None
    }

    /// The last of it is written. If more than `most` bytes have come meanwhile, goes on; else returns the votes that
    /// have come.
    pub(super) fn rest(&mut self, acceptor: &Acceptor, most: usize) -> Option<Vec<Vote>> {
        let rest = acceptor.votes().from(self.next);
        self.is_ending = rest.map(|vote| vote.value.bytes()).sum::<usize>() <= most;
        self.is_ending
            .then(|| acceptor.votes().from(self.next).collect())
    }
}

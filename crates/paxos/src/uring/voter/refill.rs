//! A log that is open again gets the records that it lacks, as fast as its disk takes them.
//!
//! The missing records are in memory, and wait there, not at the disk: only as many are handed over as there is room
//! for, from one vote to the next. Votes that come meanwhile at or behind that place are found when the place comes
//! there. Until the end no record is written that speaks of votes, such as the decided instances or the snapshot: a log
//! that was cut off in the middle would say it of old votes. Nobody waits for such a log, so it may take long; it is an
//! acceptor's again when little has come while the last of it was written.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::super::disk::Effect;
use super::Voter;
use crate::{Acceptor, Instance, Record, Round, Value, Vote};
use rota_core::mutants::{self, Mutant};

/// The repair of a log: its progress towards the state in memory.
#[derive(Debug)]
pub struct LogRepair {
    /// All votes before this one are in the log, or handed over.
    next: Instance,
    /// The votes in the log when it was opened.
    has: BTreeMap<Instance, Vote>,
    /// The last of it is being written.
    is_ending: bool,
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
    fn next(&mut self, acceptor: &Acceptor) -> Option<Vote> {
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
    fn rest(&mut self, acceptor: &Acceptor, most: usize) -> Option<Vec<Vote>> {
        let bytes = |vote: Vote| match &vote.value {
            Value::Packet { frame, .. } => frame.len(),
            Value::Members(..) | Value::Skip(_) => 0,
        };
        let rest = acceptor.votes().from(self.next);
        self.is_ending = rest.map(bytes).sum::<usize>() <= most;
        self.is_ending
            .then(|| acceptor.votes().from(self.next).collect())
    }
}

impl Voter {
    /// Hands the disk more of the votes that its log lacks, as far as there is room. `numbers`: the newest
    /// configuration, and the newest that is complete; `next`: all before is learnt.
    pub fn refill(&mut self, numbers: (Round, Round), next: Instance) {
        let mut room = self.disk.room();
        while room > 0
            && let Some(refill) = self.disk.refill().filter(|refill| !refill.is_ending)
        {
            let Some(vote) = refill.next(&self.acceptor) else {
                return self.end_refill(numbers, next);
            };
            room = room.saturating_sub(self.disk.put_again(Record::Voted(vote)));
        }
    }

    /// Puts the records that speak of the votes, and the name, when the log has all votes.
    fn end_refill(&mut self, numbers: (Round, Round), next: Instance) {
        let is_idle = self.disk.is_idle();
        let Some(refill) = self.disk.refill().filter(|_| is_idle) else {
            return;
        };
        refill.is_ending = true;
        self.put_all(numbers, next);
        self.disk.then(Effect::Named);
        self.disk.hand_over();
    }

    /// The last of it is written. Returns whether that is all: then little has come meanwhile, and goes behind.
    pub(super) fn end_rest(&mut self) -> bool {
        let little = self.disk.room() / 4;
        let refill = self.disk.refill();
        let rest = refill.map(|refill| refill.rest(&self.acceptor, little));
        match rest {
            Some(None) => return false,
            Some(Some(rest)) => {
                for vote in rest {
                    self.disk.put_again(Record::Voted(vote));
                }
            }
            None => {}
        }
        true
    }
}

//! A log that is open again gets what it lacks, as fast as its disk takes it.
//!
//! What it lacks is in memory, so it waits there, and not for the disk: only as much is handed over as there is room for, from
//! one vote to the next. What comes meanwhile at or behind that place is found when the place comes there. Until the end nothing
//! is written that speaks of votes, as what is decided or where to begin: a log that was cut off in the middle would say it of
//! old votes. Nobody waits for such a log, so it may take long; it is an acceptor's again when what came while the last of it
//! was written is little.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::super::disk::Effect;
use super::Voter;
use crate::{Acceptor, Instance, Record, Round, Value, Vote};
use rota_core::mutants::{self, Mutant};

/// Up to where a log has been brought to what memory has.
#[derive(Debug)]
pub struct LogRepair {
    /// All votes before this one are in the log, or handed over.
    next: Instance,
    /// What was in the log when it was opened.
    has: BTreeMap<Instance, Vote>,
    /// The last of it is being written.
    is_ending: bool,
}

impl LogRepair {
    /// From the first vote on, of a log with these.
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

    /// The last of it is written: goes on, if what has come meanwhile is more than this, in bytes; else that.
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
    /// Hands the disk more of what its log lacks, as far as there is room. `numbers`: the newest configuration, and the newest that
    /// is complete; `next`: all before is learnt.
    pub fn refill(&mut self, numbers: (Round, Round), next: Instance) {
        let mut room = self.disk.room();
        while room > 0
            && let Some(refill) = self.disk.refill.as_mut().filter(|refill| !refill.is_ending)
        {
            let Some(vote) = refill.next(&self.acceptor) else {
                return self.end_refill(numbers, next);
            };
            room = room.saturating_sub(self.disk.put_again(Record::Voted(vote)));
        }
    }

    /// When the log has all votes: what speaks of them, and its name.
    fn end_refill(&mut self, numbers: (Round, Round), next: Instance) {
        let is_idle = self.disk.is_idle();
        let Some(refill) = self.disk.refill.as_mut().filter(|_| is_idle) else {
            return;
        };
        refill.is_ending = true;
        self.put_all(numbers, next);
        self.disk.then(Effect::Named);
        self.disk.hand_over();
    }

    /// The last of it is written. Whether that is all: what has come meanwhile is little, and goes behind.
    pub(super) fn end_rest(&mut self) -> bool {
        let little = self.disk.room() / 4;
        let rest = self
            .disk
            .refill
            .as_mut()
            .map(|refill| refill.rest(&self.acceptor, little));
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

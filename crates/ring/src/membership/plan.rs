//! The plan of the processes that come from the same ring: the packets that they have to send each other, and the
//! limits of their deliveries.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use super::electorates::OfRing;
use crate::Ended;
use crate::wire::{Commit, OldRing};
use rota_core::contract::{Process, RingId, Seq};
use rota_core::mutants::{self, Mutant};

/// The contents of a complete commit token on one old ring, the same at all processes that come from it.
#[derive(Clone, Hash, Debug)]
pub(super) struct Plan {
    /// The processes that go from it to the new ring together, by ascending id.
    pub transitional: Vec<Process>,
    /// The sequence number up to which all of them have every packet.
    pub low: Seq,
    pub ended: Ended,
    /// The electorates on the new ring.
    pub electorates: OfRing,
    /// The old rings that the processes of `transitional` have told, in their order.
    told: Vec<OldRing>,
}

impl Plan {
    /// For the members of `old`, which has `members`.
    pub fn new(commit: &Commit, old: RingId, members: &[Process]) -> Self {
        let together = |(process, told): &(&Process, &OldRing)| {
            (told.ring == old || mutants::on(Mutant::M14)) && members.contains(process)
        };
        let (transitional, told): (Vec<Process>, Vec<OldRing>) = commit
            .members
            .iter()
            .zip(&commit.told)
            .filter(together)
            .map(|(process, told)| (*process, told.clone()))
            .unzip();
        let over = |value: fn(&OldRing) -> Seq| told.iter().map(value);
        let ended = Ended {
            high: over(|told| told.high).max().unwrap_or(0),
            line: over(|told| told.safe_line).max().unwrap_or(0),
            obliged: told.iter().fold(0, |all, told| all | told.obligations),
        };
        let low = over(|told| told.aru).min().unwrap_or(0);
        let low = if mutants::on(Mutant::R07) {
            over(|told| told.aru).max().unwrap_or(0)
        } else {
            low
        };
        Self {
            transitional,
            low,
            ended,
            electorates: OfRing::new(commit),
            told,
        }
    }

    /// Whether `me` sends a packet that some process may lack: the lowest of those that have it does, or, with `all`,
    /// every one. If a list of ranges was cut, no process may be known to have the packet: then each that has it sends
    /// it.
    pub fn is_sent_by(&self, me: Process, seq: Seq, all: bool) -> bool {
        if self.told.iter().all(|told| has(told, seq)) {
            return false;
        }
        let first = self.told.iter().position(|told| has(told, seq));
        all || first.is_none_or(|index| self.transitional[index] == me)
    }

    /// The packets of those `kept` that some process may lack: never more than a buffer holds, whatever others tell.
    pub fn range(&self, kept: &RangeInclusive<Seq>) -> RangeInclusive<Seq> {
        let first = self.low.saturating_add(1).max(*kept.start());
        first..=self.ended.high.min(*kept.end())
    }
}

impl Plan {
    /// Its invariants, at the process `me`.
    pub fn check(&self, me: Process) {
        assert!(
            self.transitional.contains(&me),
            "a process goes along with itself"
        );
        assert_eq!(
            self.transitional.len(),
            self.told.len(),
            "each that goes along has told"
        );
        assert!(
            self.low <= self.ended.high,
            "no process lacks what none has"
        );
        assert!(self.ended.line <= self.ended.high, "what is safe is there");
    }
}

/// Whether a member is known to have a packet.
fn has(told: &OldRing, seq: Seq) -> bool {
    let index = told.have.partition_point(|range| range.last() < seq);
    seq <= told.aru || told.have.get(index).is_some_and(|range| range.first <= seq)
}

//! What those who come from the same ring have to send each other, and what they will deliver of it.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use super::electorates::OfRing;
use crate::Ended;
use crate::wire::{Commit, OldRing};
use rota_core::contract::{Process, RingId, Seq};
use rota_core::mutants::{self, Mutant};

/// What a complete commit token says about one old ring. The same at all who come from it.
#[derive(Clone, Hash, Debug)]
pub(super) struct Plan {
    /// Those who go from it to the new ring together, by ascending id.
    pub transitional: Vec<Process>,
    /// Everybody has everything up to here.
    pub low: Seq,
    pub ended: Ended,
    /// Who counts in primaries on the new ring.
    pub electorates: OfRing,
    /// What each of `transitional` has told.
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

    /// Whether `me` sends a packet that somebody may lack: the lowest of those who have it does, or,
    /// with `all`, everybody. Where a list of ranges was cut nobody knows, and who has it sends it.
    pub fn is_sent_by(&self, me: Process, seq: Seq, all: bool) -> bool {
        if self.told.iter().all(|told| has(told, seq)) {
            return false;
        }
        let first = self.told.iter().position(|told| has(told, seq));
        all || first.is_none_or(|index| self.transitional[index] == me)
    }

    /// The packets of those `kept` that somebody may lack. Whatever others tell, there are no more than a
    /// buffer holds.
    pub fn range(&self, kept: &RangeInclusive<Seq>) -> RangeInclusive<Seq> {
        let first = self.low.saturating_add(1).max(*kept.start());
        first..=self.ended.high.min(*kept.end())
    }
}

/// Whether a member is known to have a packet.
fn has(told: &OldRing, seq: Seq) -> bool {
    let index = told.have.partition_point(|range| range.last() < seq);
    seq <= told.aru || told.have.get(index).is_some_and(|range| range.first <= seq)
}

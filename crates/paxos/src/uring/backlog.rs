//! The backlog of a ring, in bytes: the records that it keeps for partitions with accounts, from the first that one
//! needs up to the newest.

use alloc::collections::VecDeque;

use crate::Instance;

/// The most bytes between two places that are remembered.
const STEP: u64 = 1 << 20;

/// The bytes of a record beside its value, about.
const RECORD: u64 = 128;

/// See the module's page.
#[derive(Debug)]
pub struct Backlog {
    /// The bytes between two places that are remembered.
    step: u64,
    /// Bytes of all records since the process started.
    total: u64,
    /// Some places, and the bytes before each.
    places: VecDeque<(Instance, u64)>,
    /// The bytes before the first needed record, or less than a step fewer.
    passed: u64,
}

impl Backlog {
    /// A backlog without records. `most`: the bytes that may be kept.
    pub fn new(most: u64) -> Self {
        Self {
            step: (most / 16).clamp(1, STEP),
            total: 0,
            places: VecDeque::new(),
            passed: 0,
        }
    }

    /// Adds the record that was learnt next, with its end and its bytes. Everything from `needed` on is needed;
    /// nothing, if that is `None`.
    pub fn add(&mut self, (end, bytes): (Instance, usize), needed: Option<Instance>) {
        self.total += bytes as u64 + RECORD;
        let last = self.places.back().map_or(self.passed, |(_, total)| *total);
        if self.total >= last + self.step {
            self.places.push_back((end, self.total));
            let is_passed =
                |(end, _): &mut (Instance, u64)| needed.is_none_or(|needed| *end <= needed);
            while let Some((_, total)) = self.places.pop_front_if(is_passed) {
                self.passed = total;
            }
        }
    }

    /// The instance from which on there are at most `bytes`, to within a step.
    pub fn last(&self, bytes: u64) -> Instance {
        let fits = |(_, total): &(Instance, u64)| self.total - total <= bytes;
        let first = self.places.partition_point(|place| !fits(place));
        self.places
            .get(first)
            .map_or(Instance::MAX, |(end, _)| *end)
    }

    /// The bytes from an instance on, to within a step; 0 if nothing is needed.
    pub fn from(&self, needed: Option<Instance>) -> u64 {
        let Some(needed) = needed else {
            return 0;
        };
        let passed = self.places.partition_point(|(end, _)| *end <= needed);
        let last = passed.checked_sub(1).and_then(|at| self.places.get(at));
        self.total - last.map_or(self.passed, |(_, total)| *total)
    }
}

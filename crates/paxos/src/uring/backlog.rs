//! How much a ring keeps for those who have accounts: its records from what the slowest needs up to the newest, in bytes.

use alloc::collections::VecDeque;

use crate::Instance;

/// So many bytes are between two places that are remembered, at most.
const STEP: u64 = 1 << 20;

/// What a record takes beside its value, about.
const RECORD: u64 = 128;

/// See the module's page.
#[derive(Debug)]
pub struct Backlog {
    /// So many bytes are between two places that are remembered.
    step: u64,
    /// Bytes of all records since the process started.
    total: u64,
    /// Some places, and how many bytes were before each.
    places: VecDeque<(Instance, u64)>,
    /// So many were before what is needed, and less than a step more.
    passed: u64,
}

impl Backlog {
    /// Nothing was learnt. `most` is what may be kept.
    pub fn new(most: u64) -> Self {
        Self {
            step: (most / 16).clamp(1, STEP),
            total: 0,
            places: VecDeque::new(),
            passed: 0,
        }
    }

    /// What was learnt next: a record with so many bytes, that ends here. What is from `needed` on is needed; nothing, where there is none.
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

    /// From where on so many bytes are, at most, to within a step.
    pub fn last(&self, bytes: u64) -> Instance {
        let fits = |(_, total): &(Instance, u64)| self.total - total <= bytes;
        let first = self.places.partition_point(|place| !fits(place));
        self.places
            .get(first)
            .map_or(Instance::MAX, |(end, _)| *end)
    }

    /// Bytes from an instance on, to within a step. None, if nothing is needed.
    pub fn from(&self, needed: Option<Instance>) -> u64 {
        let Some(needed) = needed else {
            return 0;
        };
        let passed = self.places.partition_point(|(end, _)| *end <= needed);
        let last = passed.checked_sub(1).and_then(|at| self.places.get(at));
        self.total - last.map_or(self.passed, |(_, total)| *total)
    }
}

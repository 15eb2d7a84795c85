//! Whose messages arrived, and when: whether nodes serve each other.

use std::collections::BTreeSet;

use rota_core::contract::Time;

/// Times are told apart by so many nanoseconds.
const SLOT: u64 = 300_000_000;
/// More slots than any story has; the oldest are forgotten.
const KEPT: usize = 100_000;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Served(BTreeSet<(u64, u16)>);

impl Served {
    /// A message of a node arrived.
    pub(super) fn note(&mut self, now: Time, node: u16) {
        if self.0.insert((now.0 / SLOT, node)) && self.0.len() > KEPT {
            self.0.pop_first();
        }
    }

    /// Slots of time, and nodes.
    pub(super) fn all(&self) -> Vec<(u64, u16)> {
        self.0.iter().copied().collect()
    }
}

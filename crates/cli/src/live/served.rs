//! The senders of the messages that arrived, and the times: whether nodes serve each other.

use std::collections::BTreeSet;

use rota_core::contract::Time;

/// Times are told apart by so many nanoseconds.
const SLOT: u64 = 300_000_000;
/// More slots than any story has; the oldest are forgotten.
const KEPT: usize = 100_000;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Served {
    /// The nodes whose messages arrived since the time was looked at.
    senders: BTreeSet<u16>,
    slots: BTreeSet<(u64, u16)>,
}

impl Served {
    /// A message of a node arrived.
    pub(super) fn note(&mut self, node: u16) {
        self.senders.insert(node);
    }

    /// The messages that arrived are handed out.
    pub(super) fn flushed(&mut self, now: Time) {
        while let Some(node) = self.senders.pop_first() {
            if self.slots.insert((now.0 / SLOT, node)) && self.slots.len() > KEPT {
                self.slots.pop_first();
            }
        }
    }

    /// Slots of time, and nodes.
    pub(super) fn all(&self) -> Vec<(u64, u16)> {
        self.slots.iter().copied().collect()
    }
}

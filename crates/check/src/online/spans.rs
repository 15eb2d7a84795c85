//! The reach of places and counters in a part of the one order.

use rota_core::contract::{MessageId, Process};
use rustc_hash::FxHashMap;

/// The first and the last position of a part of the order, and of each sender in it the first and the last
/// counter.
#[derive(Clone, Debug, Default)]
pub(super) struct Spans {
    positions: Option<(u64, u64)>,
    senders: FxHashMap<Process, (u64, u64)>,
}

impl Spans {
    /// Adds a message that follows all that is there.
    pub fn add(&mut self, message: MessageId, position: u64) {
        let positions = self.positions.get_or_insert((position, position));
        positions.1 = position;
        let counters = self.senders.entry(message.process);
        counters.or_insert((message.counter, message.counter)).1 = message.counter;
    }

    /// Adds another part, before or after.
    pub fn merge(&mut self, other: &Self) {
        let join = |one: (u64, u64), other: (u64, u64)| (one.0.min(other.0), one.1.max(other.1));
        if let Some(others) = other.positions {
            self.positions = Some(self.positions.map_or(others, |mine| join(mine, others)));
        }
        for (sender, others) in &other.senders {
            let mine = self.senders.entry(*sender).or_insert(*others);
            *mine = join(*mine, *others);
        }
    }

    /// The last counter of a sender.
    pub fn last_of(&self, sender: Process) -> Option<u64> {
        self.senders.get(&sender).map(|(_, last)| *last)
    }

    /// Whether all positions here come before this one.
    pub fn positions_before(&self, position: u64) -> bool {
        self.positions.is_none_or(|(_, last)| last < position)
    }

    /// Whether all positions here come behind this one.
    pub fn positions_behind(&self, position: u64) -> bool {
        self.positions.is_none_or(|(first, _)| position < first)
    }

    /// Whether all messages of its sender here come before this one.
    pub fn counters_before(&self, message: MessageId) -> bool {
        let counters = self.senders.get(&message.process);
        counters.is_none_or(|(_, last)| *last < message.counter)
    }

    /// Whether all messages of its sender here come behind this one.
    pub fn counters_behind(&self, message: MessageId) -> bool {
        let counters = self.senders.get(&message.process);
        counters.is_none_or(|(first, _)| message.counter < *first)
    }
}

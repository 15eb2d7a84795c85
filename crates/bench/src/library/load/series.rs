//! What was delivered over time.

use serde::{Deserialize, Serialize};

/// The deliveries of one slot of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::library) struct Slot {
    pub messages: u64,
    pub bytes: u64,
    /// The sum of the latencies of these messages, in nanoseconds.
    pub latency_ns: u64,
    /// The longest of them, in nanoseconds.
    pub longest_ns: u64,
}

impl Slot {
    /// Adds what another node delivered in the same slot.
    pub(in crate::library) fn add(&mut self, other: &Self) {
        self.messages += other.messages;
        self.bytes += other.bytes;
        self.latency_ns += other.latency_ns;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

/// The slots from the start of the load on.
#[derive(Clone, Debug)]
pub(super) struct Series {
    length_ns: u64,
    slots: Vec<Slot>,
}

impl Series {
    /// Slots of this length, in nanoseconds.
    pub(super) fn new(length_ns: u64) -> Self {
        Self {
            length_ns: length_ns.max(1),
            slots: Vec::new(),
        }
    }

    /// Notes a message that was delivered so long after the start of the load.
    pub(super) fn note(&mut self, after_ns: u64, bytes: usize, latency_ns: u64) {
        let at = (after_ns / self.length_ns) as usize;
        if self.slots.len() <= at {
            self.slots.resize(at + 1, Slot::default());
        }
        self.slots[at].add(&Slot {
            messages: 1,
            bytes: bytes as u64,
            latency_ns,
            longest_ns: latency_ns,
        });
    }

    pub(super) fn into_slots(self) -> Vec<Slot> {
        self.slots
    }
}

/// Adds up the slots of several nodes.
pub(in crate::library) fn merged<'a>(of: impl Iterator<Item = &'a Vec<Slot>>) -> Vec<Slot> {
    let mut all: Vec<Slot> = Vec::new();
    for slots in of {
        if all.len() < slots.len() {
            all.resize(slots.len(), Slot::default());
        }
        all.iter_mut()
            .zip(slots)
            .for_each(|(sum, slot)| sum.add(slot));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_is_in_the_slot_of_its_time_and_silence_has_slots_too() {
        let mut series = Series::new(100);
        series.note(20, 10, 5);
        series.note(99, 10, 9);
        series.note(310, 20, 2);
        let slots = series.into_slots();
        assert_eq!(slots.len(), 4);
        let first = Slot {
            messages: 2,
            bytes: 20,
            latency_ns: 14,
            longest_ns: 9,
        };
        assert_eq!((slots[0], slots[1]), (first, Slot::default()));
        let both = merged([&slots, &vec![first]].into_iter());
        assert_eq!(
            (both[0].messages, both[0].longest_ns, both[3].messages),
            (4, 9, 1)
        );
    }
}

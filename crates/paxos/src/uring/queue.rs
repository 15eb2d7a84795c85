//! Values on their way to the coordinator.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;

use crate::ValueId;
use rota_core::invariants::FEW;

/// The number of names of proposed values that may be left in a queue.
const IDLE_NAMES: usize = 64;

/// The names of values, in order.
#[derive(Debug, Default)]
pub struct Queue {
    ids: VecDeque<ValueId>,
    /// The number of names that were sent in this session.
    sent: usize,
}

impl Queue {
    /// A name that comes last.
    pub fn push(&mut self, id: ValueId) {
        self.ids.push_back(id);
    }

    /// The first one, sent or not.
    pub fn first(&self) -> Option<ValueId> {
        self.ids.front().copied()
    }

    /// The next one to send.
    pub fn unsent(&self) -> Option<ValueId> {
        self.ids.get(self.sent).copied()
    }

    /// The next one is sent.
    pub const fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// Whether none was sent.
    pub const fn is_unsent(&self) -> bool {
        self.sent == 0
    }

    /// All are sent once more.
    pub const fn send_again(&mut self) {
        self.sent = 0;
    }

    /// A name is sent, once more if it was sent: last, unless it waits already.
    pub fn push_again(&mut self, id: ValueId) {
        match self.ids.iter().position(|waiting| *waiting == id) {
            Some(at) if at >= self.sent => return,
            Some(at) => {
                self.ids.remove(at);
                self.sent -= 1;
            }
            None => {}
        }
        self.ids.push_back(id);
    }

    /// Forgets names whose values are gone, where they are first.
    pub fn clean(&mut self, carried: &InTransit) {
        let gone = |id: &mut ValueId| carried.get(*id).is_none();
        while self.ids.pop_front_if(gone).is_some() {
            self.sent = self.sent.saturating_sub(1);
        }
    }

    /// Forgets all names whose values are gone, when they are many.
    pub fn compact(&mut self, carried: &InTransit) {
        if self.ids.len() <= 2 * carried.values.len() + IDLE_NAMES {
            return;
        }
        let is_here = |id: &&ValueId| carried.get(**id).is_some();
        self.sent = self.ids.iter().take(self.sent).filter(is_here).count();
        self.ids.retain(|id| carried.get(*id).is_some());
    }
}

/// Values that came by and were not proposed yet.
#[derive(Debug)]
pub struct InTransit {
    values: BTreeMap<ValueId, Bytes>,
    /// By place in the ring: the bytes of its values.
    bytes: Vec<usize>,
    /// The most bytes of values of one place, beside one value.
    most_bytes: usize,
}

impl InTransit {
    /// No values, of `places` processes.
    pub fn new(places: usize, most_bytes: usize) -> Self {
        Self {
            values: BTreeMap::new(),
            bytes: vec![0; places],
            most_bytes,
        }
    }

    /// A value, by its name.
    pub fn get(&self, id: ValueId) -> Option<&Bytes> {
        self.values.get(&id)
    }

    /// The most bytes of values of one process, beside one value.
    pub const fn most_bytes(&self) -> usize {
        self.most_bytes
    }

    /// The bytes of all values.
    pub fn bytes(&self) -> usize {
        self.bytes.iter().sum()
    }

    /// Whether the process at this place has less under way than it may.
    pub fn has_room(&self, place: usize) -> bool {
        self.bytes[place] <= self.most_bytes
    }

    /// Whether there is room for a value of the process at this place. Values behind it are forgotten for that, the
    /// last first: each is asked for when it is the next.
    pub fn makes_room(&mut self, place: usize, id: ValueId) -> bool {
        let end = ValueId {
            counter: u64::MAX,
            ..id
        };
        while !self.has_room(place) {
            let last = self.values.range(id..=end).next_back();
            let Some(last) = last.map(|(last, _)| *last) else {
                return false;
            };
            self.take(place, last);
        }
        true
    }

    /// A new one, of the process at this place.
    pub fn put(&mut self, place: usize, id: ValueId, frame: Bytes) {
        self.bytes[place] += frame.len();
        self.values.insert(id, frame);
    }

    /// Takes one out, of the process at this place.
    pub fn take(&mut self, place: usize, id: ValueId) -> Option<Bytes> {
        let frame = self.values.remove(&id)?;
        self.bytes[place] -= frame.len();
        Some(frame)
    }

    /// Forgets those of a process, which is at this place, up to this one.
    pub fn forget_to(&mut self, place: usize, last: ValueId) {
        let first = ValueId { counter: 0, ..last };
        while let Some((&id, _)) = self.values.range(first..=last).next() {
            self.take(place, id);
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

impl Queue {
    /// Its invariants.
    pub fn check(&self) {
        assert!(self.sent <= self.ids.len(), "what was sent is in it");
    }
}

impl InTransit {
    /// Its invariants.
    pub fn check(&self) {
        if self.values.len() <= FEW {
            let bytes: usize = self.values.values().map(Bytes::len).sum();
            assert_eq!(self.bytes(), bytes, "bytes are counted");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_core::contract::{Incarnation, NodeId, Process};

    fn id(counter: u64) -> ValueId {
        let process = Process {
            node: NodeId::new(2).unwrap(),
            incarnation: Incarnation(1),
        };
        ValueId { process, counter }
    }

    fn puts(carried: &mut InTransit, counter: u64, bytes: usize) -> bool {
        let has_room = carried.makes_room(0, id(counter));
        if has_room {
            carried.put(0, id(counter), vec![0; bytes].into());
        }
        has_room
    }

    /// A process that sends small values with high counters, and then large ones with low counters, gets no more room
    /// by that.
    #[test]
    fn room_is_made_by_size_and_not_by_number() {
        let (most, large) = (1000, 900);
        let mut carried = InTransit::new(1, most);
        for counter in 1000..1200 {
            puts(&mut carried, counter, 10);
        }
        assert!(carried.bytes() > most);
        for counter in (1..=100).rev() {
            assert!(puts(&mut carried, counter, large));
            assert!(carried.bytes() <= most + large, "{}", carried.bytes());
        }
        assert!(carried.get(id(1)).is_some() && carried.get(id(1000)).is_none());
        assert!(!puts(&mut carried, 5000, 10));
    }
}

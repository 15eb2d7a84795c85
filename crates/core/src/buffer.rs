//! Packets by sequence number: from receipt until everybody has them and they are delivered.

use alloc::vec::Vec;

use crate::contract::Seq;
use crate::wire::{RequestRange, push_merged};

/// Slots to start with.
const FEW_SLOTS: usize = 512;

/// The packets above the discarded ones, in a ring of slots: as many as were ever needed, a power of
/// two. Slots that are seldom used would only drive others out of the processor's cache.
#[derive(Clone, Hash, Debug)]
pub struct Buffer<S> {
    slots: Vec<Option<S>>,
    capacity: usize,
    discarded: Seq,
    aru: Seq,
    high: Seq,
}

/// The result of an insertion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inserted {
    /// The packet was not here.
    New,
    /// The packet was here already, or is not wanted any more.
    Duplicate,
    /// The packet is further ahead than the buffer has room for.
    BeyondWindow,
}

impl<S> Buffer<S> {
    /// A buffer for packets above `base`, at least `packets` of them.
    pub fn new(base: Seq, packets: usize) -> Self {
        let capacity = packets.next_power_of_two();
        let mut slots = Vec::new();
        slots.resize_with(capacity.min(FEW_SLOTS), || None);
        Self {
            slots,
            capacity,
            discarded: base,
            aru: base,
            high: base,
        }
    }

    fn index(&self, seq: Seq) -> usize {
        seq as usize & (self.slots.len() - 1)
    }

    /// The number of packets above the discarded ones that the buffer can keep.
    pub const fn capacity(&self) -> u64 {
        self.capacity as u64
    }

    /// Makes room for `packets` above the discarded ones.
    fn grow(&mut self, packets: u64) {
        let mut slots = Vec::new();
        slots.resize_with((packets as usize).next_power_of_two(), || None);
        for seq in self.discarded + 1..=self.high {
            let (from, to) = (self.index(seq), seq as usize & (slots.len() - 1));
            slots[to] = self.slots[from].take();
        }
        self.slots = slots;
    }

    /// Everything up to here has been received.
    pub const fn aru(&self) -> Seq {
        self.aru
    }

    /// Everything up to here has been discarded.
    pub const fn discarded(&self) -> Seq {
        self.discarded
    }

    /// The highest packet received.
    pub const fn high(&self) -> Seq {
        self.high
    }

    /// The ranges of packets received above the aru, `most` ranges at most; and whether there are more.
    pub fn have(&self, most: usize) -> (Vec<RequestRange>, bool) {
        let mut ranges = Vec::new();
        for seq in self.aru + 1..=self.high {
            let first = seq;
            let range = RequestRange { first, count: 1 };
            if self.get(seq).is_some() && !push_merged(&mut ranges, range, most) {
                return (ranges, true);
            }
        }
        (ranges, false)
    }

    /// Keeps a packet.
    #[inline(always)]
    pub fn insert(&mut self, seq: Seq, slot: S) -> Inserted {
        if seq <= self.discarded {
            return Inserted::Duplicate;
        }
        let place = seq - self.discarded;
        if place > self.capacity() {
            return Inserted::BeyondWindow;
        }
        if place > self.slots.len() as u64 {
            self.grow(place);
        }
        let index = self.index(seq);
        if self.slots[index].is_some() {
            return Inserted::Duplicate;
        }
        self.slots[index] = Some(slot);
        self.high = self.high.max(seq);
        while self.aru < self.high && self.slots[self.index(self.aru + 1)].is_some() {
            self.aru += 1;
        }
        Inserted::New
    }

    /// The packet of this number, if it is kept.
    pub fn get(&self, seq: Seq) -> Option<&S> {
        if !self.holds_place(seq) {
            return None;
        }
        self.slots[self.index(seq)].as_ref()
    }

    /// The packet of this number, if it is kept.
    pub fn get_mut(&mut self, seq: Seq) -> Option<&mut S> {
        if !self.holds_place(seq) {
            return None;
        }
        let index = self.index(seq);
        self.slots[index].as_mut()
    }

    const fn holds_place(&self, seq: Seq) -> bool {
        seq > self.discarded && seq - self.discarded <= self.slots.len() as u64
    }

    /// Takes out the lowest packet that is not discarded, if it is here.
    pub fn take_first(&mut self) -> Option<S> {
        if self.discarded >= self.aru {
            return None;
        }
        let index = self.index(self.discarded + 1);
        self.discarded += 1;
        self.slots[index].take()
    }

    /// Forgets everything up to `seq`; never past the aru.
    pub fn discard_to(&mut self, seq: Seq) {
        let seq = seq.min(self.aru);
        while self.discarded < seq {
            let index = self.index(self.discarded + 1);
            self.slots[index] = None;
            self.discarded += 1;
        }
    }

    /// Appends the missing packets up to `bound` to `ranges`, at most `most` ranges; returns the number of those
    /// packets.
    pub fn missing(&self, bound: Seq, ranges: &mut Vec<RequestRange>, most: usize) -> u64 {
        let bound = bound.min(self.discarded.saturating_add(self.capacity()));
        let mut count = 0;
        let mut seq = self.aru + 1;
        while seq <= bound {
            if self.get(seq).is_none() {
                if !push_merged(
                    ranges,
                    RequestRange {
                        first: seq,
                        count: 1,
                    },
                    most,
                ) {
                    break;
                }
                count += 1;
            }
            seq += 1;
        }
        count
    }
}

impl<S> Buffer<S> {
    /// Its invariants.
    pub fn check(&self) {
        assert!(self.discarded <= self.aru, "what is discarded was there");
        assert!(self.aru <= self.high, "nothing is known above the highest");
        assert!(
            self.high - self.discarded <= self.capacity(),
            "no more is kept than there is room for"
        );
        assert!(self.slots.len().is_power_of_two(), "a number is its slot's");
        assert!(
            self.slots.len() <= self.capacity.max(FEW_SLOTS),
            "slots are bounded"
        );
        assert!(
            self.aru == self.high || self.get(self.aru + 1).is_none(),
            "the aru goes as far as it can"
        );
        assert!(
            self.high == self.discarded || self.get(self.high).is_some() || self.high == self.aru,
            "the highest is there"
        );
    }
}

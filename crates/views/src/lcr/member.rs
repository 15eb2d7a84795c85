//! The knowledge of one process of one member's packets.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use super::wire::Entry;
use crate::{Held, Load, Packet, PacketId};

/// The memory of a packet beside its frame, in bytes: counted in the window, so that small packets cannot outgrow it.
pub const PACKET_COST: usize = 256;

/// The bytes that a packet takes of its sender's window.
pub fn cost(entry: &Entry) -> usize {
    entry.frame_bytes() + PACKET_COST
}

/// The state of one member's packets, as numbers: a state holds for all packets up to its number.
#[derive(Clone, Hash, Debug)]
pub struct Member {
    /// Arrived here, or made here.
    pub received: u64,
    /// Passed on, or come to its end here: this process's entry in the vector clock.
    pub passed: u64,
    /// Held by all, as the predecessor has said; its word is taken in in its turn.
    pub heard: u64,
    /// Held by all.
    pub stable: u64,
    /// Delivered here.
    pub delivered: u64,
    /// Delivered by all from the one behind the member to this process's predecessor.
    pub behind: u64,
    /// The value of `stable` that the successor was told.
    pub told_stable: u64,
    /// The deliveries that the successor was told.
    pub told_delivered: u64,
    /// The bytes of the packets that are here and not delivered, by [`cost`].
    pub bytes: usize,
    /// Passed and not delivered.
    pub pending: VecDeque<Entry>,
    /// The place of the first of them; if there is none, of the last that was.
    head: Vec<u64>,
    /// The place of the last that was received.
    last: Vec<u64>,
}

impl Member {
    pub fn new(index: usize) -> Self {
        Self {
            received: 0,
            passed: 0,
            heard: 0,
            stable: 0,
            delivered: 0,
            behind: 0,
            told_stable: 0,
            told_delivered: 0,
            bytes: 0,
            pending: VecDeque::new(),
            head: vec![0; index + 1],
            last: vec![0; index + 1],
        }
    }

    /// The place of the last packet that was received.
    pub fn last(&self) -> &[u64] {
        &self.last
    }

    /// Takes the next packet, which arrived or was made.
    pub fn receive(&mut self, entry: &Entry) {
        self.received = entry.number;
        self.bytes += cost(entry);
        advance(&mut self.last, entry);
    }

    /// Passes the next packet, which has its turn.
    pub fn pass(&mut self, entry: Entry) {
        self.passed = entry.number;
        if self.pending.is_empty() {
            advance(&mut self.head, &entry);
        }
        self.pending.push_back(entry);
    }

    /// The place of the oldest packet that was passed and not delivered.
    pub fn head(&self) -> Option<&[u64]> {
        (!self.pending.is_empty()).then_some(&self.head[..])
    }

    /// A packet that was passed and not delivered.
    pub fn find(&self, number: u64) -> Option<&Entry> {
        let index = number.checked_sub(self.delivered + 1)?;
        self.pending.get(usize::try_from(index).ok()?)
    }

    /// Takes the oldest, which is delivered.
    pub fn deliver(&mut self) -> Option<Packet> {
        let entry = self.pending.pop_front()?;
        self.delivered = entry.number;
        self.bytes -= cost(&entry);
        if let Some(next) = self.pending.front() {
            advance(&mut self.head, next);
        }
        Some(packet(&entry))
    }

    /// Hands over all packets that were passed and not delivered, with places.
    pub fn hand_over(&mut self, held: &mut Vec<Held>) {
        let mut place = self.head.clone();
        for (index, entry) in self.pending.drain(..).enumerate() {
            if index > 0 {
                advance(&mut place, &entry);
            }
            held.push(Held {
                packet: packet(&entry),
                place: place.clone(),
            });
        }
        self.head = place;
    }
}

/// Turns the place of a packet into that of its sender's next. Packets that arrive are checked not to overflow.
fn advance(place: &mut [u64], entry: &Entry) {
    for (entry, gain) in place.iter_mut().zip(entry.gains()) {
        *entry = entry.saturating_add(gain);
    }
    if let Some(own) = place.last_mut() {
        *own = entry.number;
    }
}

fn packet(entry: &Entry) -> Packet {
    Packet {
        id: PacketId {
            sender: entry.sender,
            number: entry.number,
        },
        load: Load::Messages(entry.service),
        bytes: entry.frame(),
    }
}

impl Member {
    /// Its invariants.
    pub fn check(&self) {
        assert!(
            self.passed <= self.received,
            "what was passed on was received"
        );
        assert!(
            self.delivered <= self.passed,
            "what was delivered was passed on"
        );
        assert!(
            self.told_stable <= self.stable,
            "no more is told than is known"
        );
        assert_eq!(
            self.pending.len() as u64,
            self.passed - self.delivered,
            "what was passed on and not delivered is kept"
        );
        assert!(
            self.pending
                .front()
                .is_none_or(|entry| entry.number == self.delivered + 1),
            "the next is first"
        );
        assert!(
            self.stable <= self.received && self.behind <= self.received,
            "what others have was here"
        );
        assert!(
            self.told_delivered <= self.delivered,
            "no delivery is told before it is made"
        );
        assert_eq!(
            self.last.last(),
            Some(&self.received),
            "the last place is that of the last packet"
        );
        assert!(
            self.pending
                .front()
                .is_none_or(|entry| self.head.last() == Some(&entry.number)),
            "the first place is that of the first packet"
        );
        assert!(
            self.head.len() == self.last.len(),
            "places have as many numbers"
        );
    }
}

//! Which packet may be delivered next (thesis §3.1.2.4, §3.1.3).
//!
//! Agreed and causal packets are delivered in the order of their numbers, safe ones too, but not
//! above the safe line; nothing passes an undelivered safe packet. Reliable packets are delivered on
//! receipt; fifo packets as soon as everything their sender sent before them has been delivered.
//!
//! Packets are pulled. What is not pulled stays in the buffer.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use super::buffer::{Buffer, Slot};
use crate::contract::{Seq, Service};
use crate::wire::{Frame, FrameCursor};

/// What is delivered so far, and what may be delivered ahead of its turn.
#[derive(Debug)]
pub(super) struct Delivery {
    /// The lowest number not delivered in order.
    next: Seq,
    /// Ready ahead of their turn, marked `delivered` in the buffer.
    early: VecDeque<Seq>,
    /// Fifo packets that wait for an earlier one of their sender.
    waiting: Vec<Seq>,
    chains: Vec<Chain>,
}

/// What was delivered of one sender's stream.
#[derive(Debug)]
struct Chain {
    next: FrameCursor,
    /// Delivered on receipt, ahead of `next`: from where to where.
    ahead: BTreeMap<FrameCursor, FrameCursor>,
}

/// A packet to deliver now.
#[derive(Debug)]
pub(super) struct Due {
    pub seq: Seq,
    pub member: u16,
    pub service: Service,
    pub frame: Frame,
}

impl Delivery {
    pub fn new(base: Seq, members: usize) -> Self {
        let start = FrameCursor {
            counter: 1,
            fragment: 0,
        };
        let chain = || Chain {
            next: start,
            ahead: BTreeMap::new(),
        };
        let chains = core::iter::repeat_with(chain).take(members).collect();
        Self {
            next: base + 1,
            early: VecDeque::new(),
            waiting: Vec::new(),
            chains,
        }
    }

    /// Everything up to here has been delivered.
    pub const fn delivered(&self) -> Seq {
        self.next - 1
    }

    /// A packet came into the buffer.
    #[inline]
    pub fn on_packet(&mut self, buffer: &mut Buffer, seq: Seq, service: Service) {
        if matches!(service, Service::Causal | Service::Agreed | Service::Safe) {
            return;
        }
        let Some(slot) = buffer.get_mut(seq) else {
            return;
        };
        match slot.service {
            Service::Reliable => {
                slot.delivered = true;
                self.early.push_back(seq);
                let (start, end) = (slot.frame.start(), slot.frame.end());
                self.chains[usize::from(slot.member)].passed(start, end);
            }
            Service::Fifo => self.waiting.push(seq),
            Service::Causal | Service::Agreed | Service::Safe => return,
        }
        self.release_waiting(buffer);
    }

    /// The next packet to deliver, if one is due.
    pub fn next(&mut self, buffer: &mut Buffer, safe_line: Seq) -> Option<Due> {
        if let Some(seq) = self.early.pop_front() {
            return buffer.get(seq).map(|slot| due(seq, slot));
        }
        loop {
            let seq = self.next;
            let slot = buffer.get_mut(seq)?;
            if slot.service == Service::Safe && seq > safe_line {
                return None;
            }
            self.next += 1;
            if slot.delivered {
                continue;
            }
            slot.delivered = true;
            let due = due(seq, slot);
            self.chains[usize::from(due.member)].passed(due.frame.start(), due.frame.end());
            if !self.waiting.is_empty() {
                self.release_waiting(buffer);
            }
            return Some(due);
        }
    }

    /// Moves fifo packets whose turn in their sender's stream has come to the ready ones.
    fn release_waiting(&mut self, buffer: &mut Buffer) {
        let mut moved = true;
        while moved && !self.waiting.is_empty() {
            moved = false;
            let Self {
                waiting,
                chains,
                early,
                ..
            } = self;
            waiting.retain(|&seq| {
                let Some(slot) = buffer.get_mut(seq).filter(|slot| !slot.delivered) else {
                    return false;
                };
                let chain = &mut chains[usize::from(slot.member)];
                if chain.next != slot.frame.start() {
                    return true;
                }
                slot.delivered = true;
                chain.passed(slot.frame.start(), slot.frame.end());
                early.push_back(seq);
                moved = true;
                false
            });
        }
    }
}

impl Chain {
    #[inline]
    fn passed(&mut self, start: FrameCursor, end: FrameCursor) {
        if start == self.next && self.ahead.is_empty() {
            self.next = end;
        } else {
            self.passed_out_of_turn(start, end);
        }
    }

    fn passed_out_of_turn(&mut self, start: FrameCursor, end: FrameCursor) {
        if start > self.next {
            self.ahead.insert(start, end);
            return;
        }
        self.next = self.next.max(end);
        while let Some(end) = self.ahead.remove(&self.next) {
            self.next = end;
        }
    }
}

fn due(seq: Seq, slot: &Slot) -> Due {
    Due {
        seq,
        member: slot.member,
        service: slot.service,
        frame: slot.frame.clone(),
    }
}

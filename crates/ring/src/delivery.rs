//! The choice of the packet that may be delivered next (thesis §3.1.2.4, §3.1.3).
//!
//! Agreed and causal packets are delivered in the order of their numbers, safe ones too, but not above the safe line;
//! no agreed or causal packet passes an undelivered safe one. Reliable packets are delivered on receipt; fifo packets
//! as soon as all packets that their sender sent before them have been delivered.
//!
//! Packets are pulled. A packet that is not pulled stays in the buffer.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use super::slot::Slot;
use rota_core::buffer::Buffer;
use rota_core::contract::{Seq, Service};
use rota_core::mutants::{self, Mutant};
use rota_core::wire::{Frame, FrameCursor};

/// The packets delivered so far, and those that may be delivered ahead of their turn.
#[derive(Clone, Hash, Debug)]
pub(super) struct Delivery {
    /// The lowest number not delivered in order.
    next: Seq,
    /// Packets that are ready ahead of their turn, marked `delivered` in the buffer.
    early: VecDeque<Seq>,
    /// Fifo packets that wait for an earlier one of their sender.
    waiting: Vec<Seq>,
    chains: Vec<Chain>,
    /// The rules for packets behind a gap, set when the ring has ended.
    last_rules: Option<LastRules>,
}

/// Rule R3 of membership A9.
#[derive(Clone, Copy, Hash, Debug)]
struct LastRules {
    /// The highest packet that any member of the transitional configuration has.
    high: Seq,
    /// Members whose messages are delivered even behind a gap: bit `i` is member `i`.
    obliged: u128,
    /// A packet was missing.
    hole: bool,
}

/// The delivered part of one sender's stream.
#[derive(Clone, Hash, Debug)]
struct Chain {
    next: FrameCursor,
    /// The parts delivered on receipt, ahead of `next`: their starts and ends.
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
    /// Nothing delivered yet. `starts` has the counter of the first message of each member.
    pub fn new(base: Seq, starts: &[u64]) -> Self {
        let chain = |&counter: &u64| Chain {
            next: FrameCursor {
                counter,
                fragment: 0,
            },
            ahead: BTreeMap::new(),
        };
        let chains = starts.iter().map(chain).collect();
        Self {
            next: base + 1,
            early: VecDeque::new(),
            waiting: Vec::new(),
            chains,
            last_rules: None,
        }
    }

    /// Begins behind `base`, as the ring is installed: all packets up to `base` belonged to its recovery.
    pub const fn start_behind(&mut self, base: Seq) {
        self.next = base + 1;
    }

    /// Notes that the ring has ended and the transitional configuration was delivered (R3).
    pub const fn end(&mut self, high: Seq, obliged: u128) {
        let hole = false;
        self.last_rules = Some(LastRules {
            high,
            obliged,
            hole,
        });
    }

    /// The sequence number up to which all packets have been delivered.
    pub const fn delivered(&self) -> Seq {
        self.next - 1
    }

    /// Takes note of a packet that came into the buffer.
    #[inline]
    pub fn on_packet(&mut self, buffer: &mut Buffer<Slot>, seq: Seq, service: Service) {
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
    #[inline(always)]
    pub fn next(&mut self, buffer: &mut Buffer<Slot>, safe_line: Seq) -> Option<Due> {
        if let Some(seq) = self.early.pop_front() {
            return buffer.get(seq).map(|slot| due(seq, slot));
        }
        if self.last_rules.is_some() {
            return self.next_of_ended(buffer);
        }
        loop {
            if mutants::on(Mutant::M06)
                && buffer.get(self.next).is_none()
                && buffer.get(self.next + 1).is_some()
            {
                self.next += 1;
            }
            let seq = self.next;
            let slot = buffer.get_mut(seq)?;
            if slot.service == Service::Safe && seq > safe_line {
                return None;
            }
            self.next += 1;
            if let Some(due) = self.pass(buffer, seq) {
                return Some(due);
            }
        }
    }

    /// Delivers a packet in its turn, unless it was delivered before.
    #[inline(always)]
    fn pass(&mut self, buffer: &mut Buffer<Slot>, seq: Seq) -> Option<Due> {
        let slot = buffer.get_mut(seq)?;
        if slot.delivered || slot.encapsulated {
            return None;
        }
        slot.delivered = true;
        self.chains[usize::from(slot.member)].passed(slot.frame.start(), slot.frame.end());
        let due = due(seq, slot);
        if !self.waiting.is_empty() {
            self.release_waiting(buffer);
        }
        Some(due)
    }

    /// R3: all packets before the first gap; behind it only packets that do not depend on missing ones.
    fn next_of_ended(&mut self, buffer: &mut Buffer<Slot>) -> Option<Due> {
        let mut rules = self.last_rules?;
        // Behind the last packet in the buffer there is nothing to deliver, only more gaps.
        let last = rules.high.min(buffer.high());
        while self.next <= last {
            let seq = self.next;
            self.next += 1;
            let Some(slot) = buffer.get(seq) else {
                rules.hole = true;
                self.last_rules = Some(rules);
                continue;
            };
            if self.may_follow(rules, slot)
                && let Some(due) = self.pass(buffer, seq)
            {
                return Some(due);
            }
        }
        None
    }

    /// Whether a packet may be delivered although one before it may be missing. Services below causal do not depend on
    /// what the sender knew of the missing packet.
    fn may_follow(&self, rules: LastRules, slot: &Slot) -> bool {
        if !rules.hole || slot.delivered {
            return true;
        }
        match slot.service {
            Service::Reliable => true,
            Service::Fifo => self.chains[usize::from(slot.member)].next == slot.frame.start(),
            Service::Causal | Service::Agreed | Service::Safe => {
                let obliged = rules.obliged & (1 << slot.member) != 0;
                (obliged || mutants::on(Mutant::M18)) && !mutants::on(Mutant::M19)
            }
        }
    }

    /// Moves fifo packets whose turn in their sender's stream has come to the ready ones.
    fn release_waiting(&mut self, buffer: &mut Buffer<Slot>) {
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
    #[inline(always)]
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

#[inline(always)]
fn due(seq: Seq, slot: &Slot) -> Due {
    Due {
        seq,
        member: slot.member,
        service: slot.service,
        frame: slot.frame.clone(),
    }
}

impl Delivery {
    /// Its invariants.
    pub fn check(&self, buffer: &Buffer<Slot>) {
        assert!(self.next >= 1, "packets count from 1");
        assert!(
            buffer.discarded() < self.next || self.last_rules.is_some(),
            "what is discarded was delivered"
        );
        assert!(
            self.waiting.len() <= buffer.capacity() as usize,
            "those that wait are there"
        );
        assert!(
            self.early.len() <= buffer.capacity() as usize,
            "so are those that go ahead"
        );
    }
}

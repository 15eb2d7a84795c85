//! Own packets under way: those that are not known to be delivered by all.

use alloc::collections::VecDeque;

use super::member::PACKET_COST;
use rota_core::invariants::FEW;
use rota_core::mutants::{self, Mutant};

/// See the module's page.
#[derive(Clone, Hash, Debug)]
pub struct Flight {
    /// Their costs, in bytes, in their order.
    costs: VecDeque<usize>,
    bytes: usize,
    /// The most of these, in bytes.
    window: usize,
    /// The largest own frame, in bytes.
    frame_bytes: usize,
}

impl Flight {
    /// None is under way. `window`: the most bytes of them; `frame_bytes`: the largest frame of one.
    pub const fn new(window: usize, frame_bytes: usize) -> Self {
        Self {
            costs: VecDeque::new(),
            bytes: 0,
            window,
            frame_bytes,
        }
    }

    /// The most bytes that each member may have under way.
    pub const fn window(&self) -> usize {
        self.window
    }

    /// The largest own frame, in bytes.
    pub const fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    /// Whether another packet may be sent. One always may.
    pub fn is_open(&self) -> bool {
        let after = self.bytes + self.frame_bytes + PACKET_COST;
        self.costs.is_empty() || after <= self.window
    }

    /// A packet is sent that costs so many bytes.
    pub fn take_off(&mut self, cost: usize) {
        self.costs.push_back(cost);
        self.bytes += cost + usize::from(mutants::on(Mutant::I10));
    }

    /// All have delivered the packets up to number `done`, of `sent` that were sent. Returns whether that made room.
    pub fn land(&mut self, sent: u64, done: u64) -> bool {
        let first = sent + 1 - self.costs.len() as u64;
        for _ in first..=done {
            self.bytes -= self.costs.pop_front().unwrap_or(0);
        }
        first <= done
    }

    /// Its invariants.
    pub fn check(&self) {
        if self.costs.len() <= FEW {
            let bytes: usize = self.costs.iter().sum();
            assert_eq!(self.bytes, bytes, "what is on its way is counted");
        }
    }
}

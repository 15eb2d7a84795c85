//! A proposer: its own values, from their submission until their delivery here. The proposer proposes values again that
//! may have been lost on their way, under the same names, in their order.

use alloc::collections::VecDeque;
use bytes::Bytes;

use super::value::ValueId;
use rota_core::contract::Process;
use rota_core::invariants::FEW;
use rota_core::mutants::{self, Mutant};

/// The machine.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Proposer {
    me: Process,
    /// The values that were not delivered, in order; the first has the counter `delivered + 1`.
    waiting: VecDeque<Bytes>,
    delivered: u64,
    /// The number of waiting values that are on their way.
    sent: usize,
    bytes: usize,
}

impl Proposer {
    /// Without values.
    pub const fn new(me: Process) -> Self {
        Self {
            me,
            waiting: VecDeque::new(),
            delivered: 0,
            sent: 0,
            bytes: 0,
        }
    }

    /// Takes a value to propose, and returns its counter.
    pub fn submit(&mut self, frame: Bytes) -> u64 {
        self.bytes += frame.len() + usize::from(mutants::on(Mutant::I06));
        self.waiting.push_back(frame);
        self.delivered + self.waiting.len() as u64
    }

    /// The number of values that wait for delivery, and their bytes.
    pub fn waiting(&self) -> (usize, usize) {
        (self.waiting.len(), self.bytes)
    }

    /// The next value to put on its way, and its name.
    pub fn propose(&mut self) -> Option<(ValueId, Bytes)> {
        let frame = self.waiting.get(self.sent)?.clone();
        self.sent += 1;
        let id = ValueId {
            process: self.me,
            counter: self.delivered + self.sent as u64,
        };
        Some((id, frame))
    }

    /// Proposes again all values that may have been lost on their way.
    pub const fn propose_again(&mut self) {
        self.sent = 0;
    }

    /// The value with this counter, if it waits.
    pub fn value(&self, counter: u64) -> Option<Bytes> {
        let at = usize::try_from(counter.checked_sub(self.delivered + 1)?).ok()?;
        self.waiting.get(at).cloned()
    }

    /// The value with this counter was delivered, or has been while this process was away; so have those before it.
    pub fn on_delivered(&mut self, counter: u64) {
        while self.delivered < counter
            && let Some(frame) = self.waiting.pop_front()
        {
            self.delivered += 1;
            self.sent = self.sent.saturating_sub(1);
            self.bytes -= frame.len();
        }
    }
}

impl Proposer {
    /// Its invariants.
    pub fn check(&self) {
        assert!(self.sent <= self.waiting.len(), "what was sent waits");
        if self.waiting.len() <= FEW {
            let bytes: usize = self.waiting.iter().map(Bytes::len).sum();
            assert_eq!(self.bytes, bytes, "bytes are counted");
        }
    }
}

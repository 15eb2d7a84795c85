//! What this process has to send: its messages as values, until it learns that they count.

use alloc::collections::VecDeque;
use bytes::Bytes;

use crate::{Proposer, ValueId};
use rota_core::contract::{Process, Service, SubmitError};
use rota_core::invariants::FEW;
use rota_core::pack::Outbox;

/// See the module's page.
#[derive(Debug)]
pub struct Own {
    outbox: Outbox,
    values: Proposer,
    /// Values that were not handed out here: their counters, and up to which counter messages are delivered when they
    /// are.
    untold: VecDeque<(u64, u64)>,
    /// Messages up to this counter were handed out here, or are known to be missed.
    told: u64,
}

impl Own {
    /// Nothing but an empty outbox.
    pub const fn new(me: Process, outbox: Outbox) -> Self {
        Self {
            outbox,
            values: Proposer::new(me),
            untold: VecDeque::new(),
            told: 0,
        }
    }

    /// The process has begun.
    pub fn start(&mut self, me: Process) {
        self.values = Proposer::new(me);
    }

    /// Takes a message and says its counter.
    pub fn submit(&mut self, service: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        self.outbox.push(service, payload)
    }

    /// Whether everything that was submitted is known to be delivered.
    pub fn is_settled(&self) -> bool {
        self.outbox.is_empty() && self.values.waiting().0 == 0
    }

    /// Frames that wait to be sent.
    pub fn waiting(&self) -> usize {
        self.outbox.len()
    }

    /// The next value to send, if what is under way leaves room for it.
    pub fn next(&mut self, window: usize, frame_bytes: usize) -> Option<(ValueId, Bytes)> {
        if let Some(value) = self.values.propose() {
            return Some(value);
        }
        let (count, bytes) = self.values.waiting();
        if count > 0 && bytes + frame_bytes > window {
            return None;
        }
        let (frame, value) = self.outbox.take_led()?;
        let done = frame.end().counter - 1;
        // Kept as it is, a small one would keep all the memory that was there for a large one. A third more is worth a copy.
        let is_small = 4 * value.len() < 3 * frame_bytes;
        let value = if is_small {
            Bytes::copy_from_slice(&value)
        } else {
            value
        };
        let counter = self.values.submit(value);
        self.untold.push_back((counter, done));
        self.values.propose()
    }

    /// What was on its way may be lost: it is sent again.
    pub const fn again(&mut self) {
        self.values.propose_again();
    }

    /// The own value with this counter, if it has not counted.
    pub fn value(&self, counter: u64) -> Option<Bytes> {
        self.values.value(counter)
    }

    /// The value with this counter counts, and those before it.
    pub fn on_counted(&mut self, counter: u64) {
        self.values.on_delivered(counter);
    }

    /// The value with this counter was handed out, or is known to be missed, and those before it.
    pub fn on_told(&mut self, counter: u64) {
        while let Some((_, done)) = self.untold.pop_front_if(|(of, _)| *of <= counter) {
            self.told = done;
        }
    }

    /// Messages up to this counter were handed out, or are known to be missed.
    pub const fn told(&self) -> u64 {
        self.told
    }
}

impl Own {
    /// Its invariants.
    pub fn check(&self) {
        self.values.check();
        let counters = self.untold.iter();
        assert!(
            counters.clone().is_sorted_by(|one, next| one.0 < next.0) || self.untold.len() > FEW,
            "values are handed out in order"
        );
        assert!(
            self.untold
                .front()
                .is_none_or(|(_, done)| *done >= self.told),
            "messages are handed out in order"
        );
    }
}

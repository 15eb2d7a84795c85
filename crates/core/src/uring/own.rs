//! What this process has to send: its messages as values, until it learns that they count.

use alloc::collections::VecDeque;
use bytes::Bytes;

use crate::contract::{Process, Service, SubmitError};
use crate::pack::Outbox;
use crate::paxos::ValueId;

/// A value that is not known to count.
#[derive(Debug)]
struct Value {
    bytes: Bytes,
    /// Messages up to this counter are delivered when it is.
    done: u64,
}

/// See the module's page.
#[derive(Debug)]
pub struct Own {
    outbox: Outbox,
    waiting: VecDeque<Value>,
    bytes: usize,
    /// The counter of the last value that counted.
    counted: u64,
    /// Messages up to this counter are delivered.
    done: u64,
    /// Values that count and were not handed out here: their counters, and the messages that are done with them.
    untold: VecDeque<(u64, u64)>,
    /// Messages up to this counter were handed out here, or are known to be missed.
    told: u64,
    /// So many of those that wait are on their way.
    sent: usize,
}

impl Own {
    /// Nothing but an empty outbox.
    pub const fn new(outbox: Outbox) -> Self {
        Self {
            outbox,
            waiting: VecDeque::new(),
            bytes: 0,
            counted: 0,
            done: 0,
            untold: VecDeque::new(),
            told: 0,
            sent: 0,
        }
    }

    /// Takes a message and says its counter.
    pub fn submit(&mut self, service: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        self.outbox.push(service, payload)
    }

    /// Whether everything that was submitted is known to be delivered.
    pub fn is_settled(&self) -> bool {
        self.outbox.is_empty() && self.waiting.is_empty()
    }

    /// Frames that wait to be sent.
    pub fn waiting(&self) -> usize {
        self.outbox.len()
    }

    /// The next value to send, if what is under way leaves room for it.
    pub fn next(&mut self, me: Process, window: usize, frame: usize) -> Option<(ValueId, Bytes)> {
        if self.sent == self.waiting.len() {
            let is_open = self.waiting.is_empty() || self.bytes + frame <= window;
            let out = is_open.then(|| self.outbox.take()).flatten()?;
            let done = out.frame.end().counter - 1;
            let bytes = super::value::of(out);
            self.bytes += bytes.len();
            self.waiting.push_back(Value { bytes, done });
        }
        let bytes = self.waiting[self.sent].bytes.clone();
        self.sent += 1;
        let id = ValueId {
            process: me,
            counter: self.counted + self.sent as u64,
        };
        Some((id, bytes))
    }

    /// What was on its way may be lost: it is sent again.
    pub const fn again(&mut self) {
        self.sent = 0;
    }

    /// The value with this counter counts, and those before it.
    pub fn on_counted(&mut self, counter: u64) {
        while self.counted < counter
            && let Some(value) = self.waiting.pop_front()
        {
            self.counted += 1;
            self.sent = self.sent.saturating_sub(1);
            self.bytes -= value.bytes.len();
            self.done = value.done;
            self.untold.push_back((self.counted, value.done));
        }
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

//! The own messages of this process as values, from their submission until the process learns that they count.

use alloc::collections::VecDeque;
use bytes::Bytes;

use super::accounts::Command;
use crate::{Proposer, ValueId};
use rota_core::contract::{Process, Service, SubmitError};
use rota_core::invariants::FEW;
use rota_core::pack::Outbox;

/// The most commands on the accounts that wait here.
const MOST_ACCOUNTS: usize = 64;

/// See the module's page.
#[derive(Debug)]
pub struct InFlight {
    outbox: Outbox,
    values: Proposer,
    /// Values that were not handed out here: the counter of each, and the counter up to which messages are delivered
    /// when it is.
    untold: VecDeque<(u64, u64)>,
    /// Messages up to this counter were handed out here, or are known to be missed.
    told: u64,
    /// Commands on the accounts, as values.
    accounts: VecDeque<Bytes>,
    /// The last value ends within a message.
    is_cut: bool,
}

impl InFlight {
    /// Nothing but an empty outbox.
    pub const fn new(me: Process, outbox: Outbox) -> Self {
        Self {
            outbox,
            values: Proposer::new(me),
            untold: VecDeque::new(),
            told: 0,
            accounts: VecDeque::new(),
            is_cut: false,
        }
    }

    /// The process has begun.
    pub fn start(&mut self, me: Process) {
        self.values = Proposer::new(me);
    }

    /// Takes a message and returns its counter.
    pub fn submit(&mut self, service: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        self.outbox.push(service, payload)
    }

    /// Takes a command on the accounts. Returns whether there was room.
    pub fn submit_account(&mut self, command: &Command, time: u64) -> bool {
        let has_room = self.accounts.len() < MOST_ACCOUNTS;
        if has_room {
            let value = super::value::of_account(command, time);
            self.accounts.push_back(value);
        }
        has_room
    }

    /// Whether everything that was submitted is known to be delivered.
    pub fn is_settled(&self) -> bool {
        let is_empty = self.outbox.is_empty() && self.accounts.is_empty();
        is_empty && self.values.waiting().0 == 0
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
        // Commands do not leave between the parts of a message, whose values follow each other.
        if !self.is_cut
            && let Some(value) = self.accounts.pop_front()
        {
            let done = self.untold.back().map_or(self.told, |(_, done)| *done);
            let counter = self.values.submit(value);
            self.untold.push_back((counter, done));
            return self.values.propose();
        }
        let (frame, value) = self.outbox.take_led()?;
        self.is_cut = frame.end().fragment > 0;
        let done = frame.end().counter - 1;
        // A small value that is not copied would keep all the memory that was there for a large one. A third more is
        // worth a copy.
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

    /// Sends again all values that may have been lost on their way.
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

impl InFlight {
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

//! The return of credit to clients.

use rota_core::contract::Time;

use crate::keys::KeyQueue;
use crate::speech::Speech;

/// The time for which little credit may be kept back until another frame goes to its client.
const CREDIT_NANOS: u64 = 5_000_000;

/// Sessions whose clients get credit back: much goes back with the next turn, little can wait for another frame to the
/// client. A frame and a wake-up for each message would cost more than the message.
#[derive(Debug, Default)]
pub(super) struct Credit {
    /// Sessions that get it next.
    due: KeyQueue,
    /// Sessions that get a little, with what else they are told or when it is time.
    little: KeyQueue,
    /// That time.
    give_at: Time,
}

impl Credit {
    /// Notes that a session may have earned credit.
    pub fn owe(&mut self, key: usize, speech: &Speech, now: Time) {
        if speech.owes_much() {
            self.due.push(key);
        } else if speech.owes() {
            if self.little.is_empty() {
                self.give_at = now.after(CREDIT_NANOS);
            }
            self.little.push(key);
        }
    }

    /// Time has passed: the number of sessions that get credit back now, with [`Self::next`]. One frame returns the
    /// credit for all that a client sent at once.
    pub fn pass(&mut self, now: Time) -> usize {
        if now >= self.give_at {
            self.due.append(&mut self.little);
        }
        self.due.len()
    }

    /// A session that gets its credit back.
    pub fn next(&mut self) -> Option<usize> {
        self.due.pop()
    }

    /// Whether a session gets credit back without waiting.
    pub fn has_work(&self) -> bool {
        !self.due.is_empty()
    }

    /// The time at which little credit is given back.
    pub fn next_wake(&self) -> Option<Time> {
        (!self.little.is_empty()).then_some(self.give_at)
    }

    /// What holds between inputs.
    pub fn check(&self) {
        self.due.check();
        self.little.check();
    }
}

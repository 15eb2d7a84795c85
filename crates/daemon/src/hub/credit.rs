//! The return of credit to clients.

use rota_core::contract::Time;

use super::Hub;

/// The time for which little credit may be kept back until another frame goes to its client.
const CREDIT_NANOS: u64 = 5_000_000;

impl Hub {
    /// Notes that the session has earned credit: much goes back with the next turn, little can wait for another frame
    /// to the client. A frame and a wake-up for each message would cost more than the message.
    pub(super) fn owe(&mut self, key: usize, now: Time) {
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        if session.speech.owes_much() {
            self.owing.push(key);
        } else if session.speech.owes() && !std::mem::replace(&mut session.owed, true) {
            if self.owing_little.is_empty() {
                self.credit_at = now.after(CREDIT_NANOS);
            }
            self.owing_little.push(key);
        }
    }

    /// Gives credit back that was earned before this turn: one frame returns the credit for all that a client sent at
    /// once.
    pub(super) fn give_credit(&mut self, now: Time) {
        if now >= self.credit_at {
            self.owing.append(&mut self.owing_little);
        }
        for key in std::mem::take(&mut self.owing) {
            if let Some(session) = self.sessions.get_mut(key) {
                session.owed = false;
                session.speech.give_credit();
                self.offer(key);
            }
        }
    }
}

//! Resuming on a ring of links: the part that LCR and U-Ring Paxos have in common.
//!
//! A process gets everything that goes round the ring from its predecessor, over one link. When that link breaks, or
//! something came that it cannot take, it says from where on it wants to be sent; whatever was on its way before does
//! not count. So each such *resume message* has an **epoch**, which all batches that answer it repeat, and a batch of
//! another epoch is dropped. Where the wanted place is, and what is kept to be sent again, differs between engines.
//!
//! ```text
//!                  the link to the predecessor has changed, or something has to be brought again
//!   RetryAt(t) ──────────────────────────────┬──────────────────────────────── Sent
//!       │  ▲                                 ▼                                 ▲  │
//!       │  │            t has come ───▶  Pending  ───  the message leaves ─────┘  │
//!       └──┼────────────────────────────────▲                                     │
//!          └──────────────────── a batch was refused ─────────────────────────────┘
//! ```
//!
//! A refused batch is asked for again only after a while, lest two processes that do not understand each other do
//! nothing else.
//!
//! [`Resume`] is the side of the process that asks, [`Resumed`] that of its predecessor.

use crate::contract::{Session, Time};

/// Where a process is with its resume message to the predecessor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum State {
    /// The message is due, as soon as there is a link with room.
    Pending,
    /// The message was sent.
    Sent,
    /// A batch of the predecessor was refused: the next message is due at this time.
    RetryAt(Time),
}

/// The side of the process that wants to be sent something. See the [module's page](self).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Resume {
    /// The epoch of the last message; 0 before the first.
    epoch: u32,
    state: State,
}

impl Default for Resume {
    fn default() -> Self {
        Self::new()
    }
}

impl Resume {
    /// A message is due, and none was sent yet.
    pub const fn new() -> Self {
        Self {
            epoch: 0,
            state: State::Pending,
        }
    }

    /// The predecessor has to be told: its link has changed, or it is to bring something again.
    pub const fn restart(&mut self) {
        self.state = State::Pending;
    }

    /// A batch was refused: the predecessor is told again at this time.
    pub const fn refuse(&mut self, until: Time) {
        self.state = State::RetryAt(until);
    }

    /// Whether a message is due.
    pub const fn is_due(&self) -> bool {
        matches!(self.state, State::Pending)
    }

    /// The epoch that the next message will have.
    pub const fn next_epoch(&self) -> u32 {
        self.epoch.wrapping_add(1)
    }

    /// The message is sent. Returns its epoch.
    pub const fn say(&mut self) -> u32 {
        self.epoch = self.next_epoch();
        self.state = State::Sent;
        self.epoch
    }

    /// The epoch of the last message; 0 before the first.
    pub const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Whether a batch of this epoch answers the last message, and nothing has come in between.
    pub const fn is_answered_by(&self, epoch: u32) -> bool {
        epoch == self.epoch && matches!(self.state, State::Sent)
    }

    /// The time at which a message is due that was put off.
    pub const fn next_time(&self) -> Option<Time> {
        match self.state {
            State::RetryAt(at) => Some(at),
            State::Pending | State::Sent => None,
        }
    }

    /// It is this time: a message that was put off until now is due.
    pub fn on_time(&mut self, now: Time) {
        if self.next_time().is_some_and(|at| at <= now) {
            self.state = State::Pending;
        }
    }
}

/// The side of the predecessor: the last resume message of the process behind it. Batches leave in the same session,
/// and repeat its epoch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Resumed {
    session: Session,
    epoch: u32,
}

impl Resumed {
    /// A message of this epoch has come in this session.
    pub const fn new(session: Session, epoch: u32) -> Self {
        Self { session, epoch }
    }

    /// The session in which the message has come.
    pub const fn session(&self) -> Session {
        self.session
    }

    /// The epoch that batches repeat.
    pub const fn epoch(&self) -> u32 {
        self.epoch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_batches_of_the_last_message_count_and_only_until_the_next_is_due() {
        let mut resume = Resume::new();
        assert!(resume.is_due() && !resume.is_answered_by(0));
        let first = resume.say();
        assert!(!resume.is_due() && resume.is_answered_by(first));
        resume.restart();
        assert!(resume.is_due() && !resume.is_answered_by(first));
        let second = resume.say();
        assert!(resume.is_answered_by(second) && !resume.is_answered_by(first));
    }

    #[test]
    fn after_a_refused_batch_a_message_is_due_at_its_time_and_not_before() {
        let mut resume = Resume::new();
        let epoch = resume.say();
        resume.refuse(Time(10));
        assert!(!resume.is_due() && !resume.is_answered_by(epoch));
        assert_eq!(resume.next_time(), Some(Time(10)));
        resume.on_time(Time(9));
        assert!(!resume.is_due());
        resume.on_time(Time(10));
        assert!(resume.is_due() && resume.next_time().is_none());
    }
}

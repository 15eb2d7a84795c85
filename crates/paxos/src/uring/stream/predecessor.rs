//! The predecessor in the ring: the place from which on it is to send, and the last sign of its life.

use super::super::word::Head;
use crate::Round;
use rota_core::contract::Time;
use rota_core::mutants::{self, Mutant};
use rota_core::resume::Resume;

/// See the module's page.
#[derive(Debug)]
pub struct Predecessor {
    resume: Resume,
    /// The time at which it was last heard.
    heard: Time,
    /// The time at which it last sent something beside the ring, or messages left from a configuration before: it
    /// lives.
    alive: Time,
}

impl Predecessor {
    /// A predecessor that has to be told from where on to send.
    pub const fn new(now: Time) -> Self {
        Self {
            resume: Resume::new(),
            heard: now,
            alive: now,
        }
    }

    /// It was heard in this ring.
    pub const fn on_heard(&mut self, now: Time) {
        self.heard = now;
    }

    /// It has said something that is not of this ring.
    pub const fn on_aside(&mut self, now: Time) {
        self.alive = now;
    }

    /// The time since which it is silent. Its messages of this ring may wait behind other messages, but not for ever:
    /// those count for `most_aside` nanoseconds at most.
    pub fn silent_since(&self, most_aside: u64) -> Time {
        let most = self.heard.after(most_aside);
        match mutants::on(Mutant::U99) {
            true => self.heard,
            false => self.heard.max(self.alive.min(most)),
        }
    }

    /// It is to be told from where on to send, as soon as that can be.
    pub const fn ask(&mut self) {
        self.resume.restart();
    }

    /// Likewise, but not before this time.
    pub const fn ask_at(&mut self, at: Time) {
        self.resume.refuse(at);
    }

    /// Whether it is to be told now.
    pub const fn is_to_be_told(&self) -> bool {
        self.resume.is_due()
    }

    /// It is told now: the epoch of that.
    pub const fn tell(&mut self) -> u32 {
        self.resume.say()
    }

    /// Whether a batch of this round answers what it was told last.
    pub fn is_current(&self, round: Round, head: &Head) -> bool {
        let epoch = match mutants::on(Mutant::U19) {
            true => self.resume.epoch(),
            false => head.epoch,
        };
        head.round == round && self.resume.is_answered_by(epoch)
    }

    /// The time at which it is to be told again.
    pub const fn next_time(&self) -> Option<Time> {
        self.resume.next_time()
    }

    /// What was put off until now is due.
    pub fn on_time(&mut self, now: Time) {
        self.resume.on_time(now);
    }
}

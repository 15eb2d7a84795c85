//! What a merge of several rings needs of this one: that everything before an instance is known, with messages or without. Whoever needs it says so
//! to the coordinator, in a word that may be lost and is said again, and the coordinator of the next configuration hears it as well.

use super::codec::MOST_NUMBER;
use super::engine::URing;
use super::word::Word;
use crate::contract::Time;
use crate::mutants::{self, Mutant};
use crate::paxos::Instance;

/// What is needed of this ring.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// Everything before this one is waited for here.
    own: Instance,
    /// When the coordinator is told so next.
    at: Time,
    /// Everything before this one is waited for elsewhere, as this process was told since it was asked last; 1: nothing.
    heard: Instance,
}

impl Default for Needs {
    fn default() -> Self {
        Self {
            own: 1,
            at: Time(0),
            heard: 1,
        }
    }
}

impl URing {
    /// Something here waits until everything before an instance is known. To be said once: the coordinator is told until it is so.
    pub fn need(&mut self, now: Time, next: Instance) {
        if next <= self.needs.own || next > MOST_NUMBER {
            return;
        }
        self.now = now;
        (self.needs.own, self.needs.at) = (next, now);
        self.submitted = true;
    }

    /// Everything before this instance is waited for: here, until it is known, or elsewhere, as this process was told since it was asked
    /// last. Whoever still waits says so again, so one that cannot be granted hides no other.
    pub fn take_needed(&mut self) -> Option<Instance> {
        let heard = core::mem::replace(&mut self.needs.heard, 1);
        let own = self.needs.own;
        let own = (own > self.learner.next()).then_some(own);
        own.max((heard > 1).then_some(heard))
    }

    pub(super) fn on_need(&mut self, next: Instance) {
        self.counters.uring_needs_heard += 1;
        self.needs.heard = self.needs.heard.max(next);
    }

    /// Tells the coordinator what is needed here, if it is time.
    pub(super) fn tell_needs(&mut self) {
        if self.needs_at().is_none_or(|at| at > self.now) {
            return;
        }
        self.needs.at = match mutants::on(Mutant::U94) {
            true => Time(u64::MAX),
            false => self.now.after(self.settings.patience.heartbeat),
        };
        let coordinator = self.config.as_ref().map(|config| config.coordinator);
        if let Some(coordinator) = coordinator.filter(|who| *who != self.me) {
            self.counters.uring_needs_said += 1;
            self.peers
                .say(coordinator.node, &Word::Need(self.needs.own));
        }
    }

    /// When that is.
    pub(super) fn needs_at(&self) -> Option<Time> {
        let leads = self.leading.is_some();
        let waits = self.needs.own > self.learner.next() && !leads;
        waits.then_some(self.needs.at)
    }
}

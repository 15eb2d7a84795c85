//! What a merge of several rings needs of this one: that everything before an instance is known, with messages or without. Whoever needs it says so
//! to the coordinator, in a word that may be lost and is said again, and the coordinator of the next configuration hears it as well.

use super::codec::MOST_NUMBER;
use super::context::Context;
use crate::Instance;
use rota_core::contract::Time;
use rota_core::mutants::{self, Mutant};

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

impl Needs {
    /// Something here waits until everything before an instance is known. Whether that is news.
    pub fn need(&mut self, now: Time, next: Instance) -> bool {
        let is_news = next > self.own && next <= MOST_NUMBER;
        if is_news {
            (self.own, self.at) = (next, now);
        }
        is_news
    }

    /// Everything before this instance is waited for: here, until it is known (`next`: what is not), or elsewhere, as this process
    /// was told since it was asked last. Whoever still waits says so again, so one that cannot be granted hides no other.
    pub fn take(&mut self, next: Instance) -> Option<Instance> {
        let heard = core::mem::replace(&mut self.heard, 1);
        let own = (self.own > next).then_some(self.own);
        own.max((heard > 1).then_some(heard))
    }

    /// Somebody waits for that.
    pub fn on_need(&mut self, next: Instance) {
        self.heard = self.heard.max(next);
    }

    /// What the coordinator is to be told, if it is time.
    pub fn next_word(&mut self, cx: &Context, next: Instance, leads: bool) -> Option<Instance> {
        self.next_time(next, leads).filter(|at| *at <= cx.now)?;
        self.at = match mutants::on(Mutant::U94) {
            true => Time(u64::MAX),
            false => cx.now.after(cx.settings.patience.heartbeat),
        };
        Some(self.own)
    }

    /// When that is.
    pub fn next_time(&self, next: Instance, leads: bool) -> Option<Time> {
        let waits = self.own > next && !leads;
        waits.then_some(self.at)
    }
}

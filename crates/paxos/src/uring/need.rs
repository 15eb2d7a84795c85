//! The needs of a merge of several rings: that everything before an instance of this ring is known, with messages or
//! without. A process with a need tells the coordinator, in a message that may be lost and is sent again, so that the
//! coordinator of the next configuration hears it as well.

use super::codec::MOST_NUMBER;
use super::context::Context;
use crate::Instance;
use rota_core::contract::Time;
use rota_core::mutants::{self, Mutant};

/// The needs of this ring.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// Everything before this instance is waited for here.
    own: Instance,
    /// The time at which the coordinator is told so next.
    at: Time,
    /// Everything before this instance is waited for elsewhere, as this process was told since the last call of
    /// `take`; 1: nothing.
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
    /// A merge here waits until everything before an instance is known. Returns whether that is news.
    pub fn need(&mut self, now: Time, next: Instance) -> bool {
        let is_news = next > self.own && next <= MOST_NUMBER;
        if is_news {
            (self.own, self.at) = (next, now);
        }
        is_news
    }

    /// The instance before which everything is waited for: here, until it is known (`next`: the first that is not), or
    /// elsewhere, as this process was told since the last call. A process that still waits says so again, so a need
    /// that cannot be granted hides no other.
    pub fn take(&mut self, next: Instance) -> Option<Instance> {
        let heard = core::mem::replace(&mut self.heard, 1);
        let own = (self.own > next).then_some(self.own);
        own.max((heard > 1).then_some(heard))
    }

    /// Another process waits for everything before this instance.
    pub fn on_need(&mut self, next: Instance) {
        self.heard = self.heard.max(next);
    }

    /// The need that the coordinator is to be told, if it is time.
    pub fn next_word(&mut self, cx: &Context, next: Instance, leads: bool) -> Option<Instance> {
        self.next_time(next, leads).filter(|at| *at <= cx.now)?;
        self.at = match mutants::on(Mutant::U94) {
            true => Time(u64::MAX),
            false => cx.now.after(cx.settings.patience.heartbeat),
        };
        Some(self.own)
    }

    /// The time at which that is.
    pub fn next_time(&self, next: Instance, leads: bool) -> Option<Time> {
        let waits = self.own > next && !leads;
        waits.then_some(self.at)
    }
}

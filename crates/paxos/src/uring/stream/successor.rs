//! The successor in the ring: the place from which on it is sent something, and the time at which it is.

use alloc::vec::Vec;

use super::super::word::{Head, ResumeFrom};
use super::following::Following;
use crate::Instance;
use rota_core::contract::{Session, Time};

/// Whether there is something to say to the successor that brings no values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PendingControl {
    /// There is not.
    None,
    /// There is, since then. A driver hands in all other input before this time's timer, and so records that come
    /// together leave together, and one that comes alone leaves at once.
    Waits(Time),
    /// It is said as soon as the link has room.
    Due,
}

/// See the module's page.
#[derive(Debug)]
pub struct Successor {
    /// Its last resume message, and what it was told since; `None` before that.
    following: Option<Following>,
    /// The time since which it has not said from where on to send.
    apart: Time,
    /// The time at which it was last sent something, or should have been.
    spoken: Time,
    /// It is to hear something even if there is nothing to say.
    beat: bool,
    /// The control records that it has not been told, if batches gather them.
    news: PendingControl,
}

impl Successor {
    /// A successor that has said nothing.
    pub const fn new(now: Time) -> Self {
        Self {
            following: None,
            apart: now,
            spoken: now,
            beat: false,
            news: PendingControl::None,
        }
    }

    /// A link to it has come up or gone down: it has to say anew from where on to send.
    pub fn on_link(&mut self, now: Time) {
        if self.following.take().is_some() {
            self.apart = now;
        }
    }

    /// It says from where on to send. `sizes`: the numbers of acceptors and processes; `next`: the next proposal here.
    pub fn on_resume_from(
        &mut self,
        session: Session,
        follow: (&ResumeFrom, Vec<Instance>),
        sizes: (usize, usize),
        next: Instance,
    ) {
        self.following = Some(Following::new(session, follow, sizes, next));
    }

    /// What it was told, if it has said what it wants.
    pub const fn following(&mut self) -> Option<&mut Following> {
        self.following.as_mut()
    }

    /// The session in which it has said what it wants; `None` if it has not.
    pub fn session(&self) -> Option<Session> {
        self.following.as_ref().map(Following::session)
    }

    /// The time since which it has not said from where on to send; `None` if it has.
    pub fn apart(&self) -> Option<Time> {
        self.following.is_none().then_some(self.apart)
    }

    /// The first proposal that it may lack, as far as it was sent.
    pub fn sent(&self) -> Instance {
        self.following.as_ref().map_or(Instance::MAX, Following::at)
    }

    /// Whether it is to hear something even if there is nothing to say.
    pub const fn is_to_hear(&self) -> bool {
        self.beat
    }

    /// Whether the next batch waits until all other input has come: it brings no values that the successor lacks, and
    /// many such batches are small. `has_more`: there are proposals from `next` on, or values.
    pub fn puts_off(
        &mut self,
        now: Time,
        head: &Head,
        voted: (&[Instance], &impl Fn(usize) -> bool),
        has_more: impl FnOnce(Instance) -> bool,
    ) -> bool {
        let Some(following) = &self.following else {
            return false;
        };
        if following.is_urgent(head) || self.news == PendingControl::Due {
            return false;
        }
        let has_news = following.has_votes(voted) || has_more(following.at());
        self.news = match self.news {
            _ if !has_news => PendingControl::None,
            PendingControl::Waits(since) => PendingControl::Waits(since),
            PendingControl::None | PendingControl::Due => PendingControl::Waits(now),
        };
        true
    }

    /// A batch is sent.
    pub const fn on_sent(&mut self, now: Time) {
        (self.spoken, self.beat, self.news) = (now, false, PendingControl::None);
    }

    /// The time at which it is to hear something.
    pub fn next_time(&self, heartbeat: u64) -> Option<Time> {
        let beat = self.session().map(|_| self.spoken.after(heartbeat));
        let news = match self.news {
            PendingControl::Waits(since) => Some(since),
            PendingControl::None | PendingControl::Due => None,
        };
        beat.into_iter().chain(news).min()
    }

    /// Everything that was put off until now is due.
    pub fn on_time(&mut self, now: Time, heartbeat: u64) {
        if matches!(self.news, PendingControl::Waits(since) if since <= now) {
            self.news = PendingControl::Due;
        }
        if self.following.is_some() && self.spoken.after(heartbeat) <= now {
            self.spoken = now;
            self.beat = true;
        }
    }

    /// Its invariants, in a ring of `places`.
    pub fn check(&self, places: usize) {
        assert!(
            self.following.is_none() || places > 1,
            "nobody follows who is alone"
        );
    }
}

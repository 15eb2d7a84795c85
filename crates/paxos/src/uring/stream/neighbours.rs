//! The predecessor and the successor in the ring, and the places from which on the one sends and the other is sent.

use alloc::vec::Vec;

use super::super::successor::Successor;
use super::super::word::{Head, ResumeFrom};
use super::Stream;
use crate::Instance;
use rota_core::contract::{Process, Session, Time};
use rota_core::mutants::{self, Mutant};

/// The knowledge of the predecessor from where on to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hail {
    /// The predecessor is to be told as soon as there is a link.
    Due,
    /// The predecessor was told.
    Said,
    /// A batch of the predecessor was refused: it is told again at this time.
    At(Time),
}

/// Whether there is something to say to the successor that brings no values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PendingControl {
    /// There is not.
    None,
    /// There is, since then. A driver hands in all other input before this time's timer, and so records that come
    /// together leave together, and one that comes alone leaves at once.
    Waits(Time),
    /// It is said as soon as the link has room.
    Due,
}

impl Stream {
    /// A link to a neighbour has come up or gone down: both begin again.
    pub fn on_link(&mut self, now: Time, who: Process) {
        if self.predecessor() == Some(who) {
            self.hail = Hail::Due;
        }
        if self.successor() == Some(who) && self.out.take().is_some() {
            self.apart = now;
        }
    }

    /// The successor, and the time since which it has not said from where on to send; `None` if it has, or there is
    /// none.
    pub fn apart(&self) -> Option<(Process, Time)> {
        let successor = self.successor().filter(|_| self.out.is_none())?;
        Some((successor, self.apart))
    }

    /// The resume message for the predecessor, and the instances in which it is to bring the values.
    pub fn follow(&mut self) -> (ResumeFrom, Vec<Instance>) {
        let mut lacks = self.lacks();
        lacks.extend(self.forgotten());
        // Proposals that wait are named again.
        if let Some(cast) = &mut self.cast {
            cast.held.clear();
            cast.lack = None;
        }
        self.epoch = self.epoch.wrapping_add(1);
        self.hail = Hail::Said;
        let follow = ResumeFrom {
            round: self.round,
            epoch: self.epoch,
            next: self.window.next(),
        };
        (follow, lacks)
    }

    /// Takes the resume message of the successor.
    pub fn on_resume_from(
        &mut self,
        session: Session,
        (follow, lacks): (ResumeFrom, Vec<Instance>),
        acceptors: usize,
    ) {
        let sizes = (acceptors, self.ring.len());
        let mut out = Successor::new(session, (&follow, lacks), sizes);
        if mutants::on(Mutant::U03) {
            out.at = self.window.next();
        }
        self.out = Some(out);
        if !mutants::on(Mutant::U04) {
            self.through.sent = 0;
            if self.cast.is_none() {
                self.own.sent = 0;
            }
        }
    }

    /// Whether a batch answers the last [`ResumeFrom`].
    pub fn is_current(&self, head: &Head) -> bool {
        let answers = head.epoch == self.epoch || mutants::on(Mutant::U19);
        head.round == self.round && answers && self.hail == Hail::Said
    }

    /// The session with the successor, if it has said what it wants.
    pub fn session(&self) -> Option<Session> {
        self.out.as_ref().map(|out| out.session)
    }

    /// The time at which the predecessor is to be told again, or the successor is to hear something.
    pub fn next_time(&self, heartbeat: u64) -> Option<Time> {
        let hail = match self.hail {
            Hail::At(at) => Some(at),
            Hail::Due | Hail::Said => None,
        };
        let beat = self.session().map(|_| self.spoken.after(heartbeat));
        let news = match self.news {
            PendingControl::Waits(since) => Some(since),
            PendingControl::None | PendingControl::Due => None,
        };
        hail.into_iter().chain(beat).chain(news).min()
    }

    /// Everything that was put off until now is due.
    pub fn on_time(&mut self, now: Time, heartbeat: u64) {
        if matches!(self.hail, Hail::At(at) if at <= now) {
            self.hail = Hail::Due;
        }
        if matches!(self.news, PendingControl::Waits(since) if since <= now) {
            self.news = PendingControl::Due;
        }
        if self.out.is_some() && self.spoken.after(heartbeat) <= now {
            self.spoken = now;
            self.beat = true;
        }
    }
}

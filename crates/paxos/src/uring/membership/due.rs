//! The times at which another configuration is due: for a suspected neighbour, for a process that wants to come in, or
//! for a round that takes too long.

use alloc::sync::Arc;

use super::super::config::Arbiter;
use super::super::context::Context;
use super::super::lead::RoundCoordinator;
use super::super::stream::Stream;
use super::campaign::MOST_BEHIND;
use super::{Around, MOST_WAITS, Membership};
use crate::{Config, Round};
use rota_core::contract::{Process, Time};
use rota_core::mutants::{self, Mutant};

/// A predecessor that says nothing of the ring counts as heard by its other messages for this many times the silence at
/// most.
const MOST_ASIDE: u64 = 7;

/// The step that is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Due {
    /// A neighbour is suspected.
    Suspects(Option<Process>),
    /// Another process has to coordinate: the round takes too long to begin, or the coordinator is not there.
    Leads,
    /// Processes are to be taken in, or members are to be named, or another round is to begin.
    Again,
}

fn is_due(at: Option<Time>, now: Time) -> bool {
    at.is_some_and(|at| at <= now)
}

impl Membership {
    /// The time at which the predecessor is suspected.
    fn suspect_at(&self, around: &Around<'_>) -> Option<Time> {
        let stream = around.ring?;
        let before = stream.predecessor()?;
        let election = &self.election;
        let patience = around.cx.settings.patience;
        let alive = stream.silent_since(MOST_ASIDE * patience.silence);
        let silent = alive.after(election.silence(around.cx));
        if self.absent.has_left(before) {
            return Some(election.known());
        }
        if around.links.has(before) {
            return Some(silent);
        }
        let (since, known) = (self.absent.down_since(before), election.known());
        let since = since.unwrap_or(known).max(known);
        Some(silent.min(since.after(patience.link)))
    }

    /// The time at which the successor is left out as it does not follow. A successor that could would have stood
    /// first: it may see too few processes itself.
    fn apart_at(&self, around: &Around<'_>) -> Option<Time> {
        let (after, since) = around.ring?.apart()?;
        let silence = self.election.silence(around.cx);
        // On a slow link its message may wait behind others.
        let times = match around.links.has(after) {
            true => MOST_ASIDE + 2,
            false => 2,
        };
        let at = since.max(self.election.known()).after(times * silence);
        (!mutants::on(Mutant::U107)).then_some(at)
    }

    /// The time at which the round has taken too long to begin.
    fn stalled_at(&self, around: &Around<'_>) -> Option<Time> {
        let stream = around.ring?;
        let begun = around.learning.learner.round() == stream.round();
        if begun || !around.voter.votes() {
            return None;
        }
        let patience = around.cx.settings.patience;
        let wait = 2 * patience.silence + self.place_among_acceptors(around.cx) * patience.retry;
        // A link on which a part of a promise takes longer than that needs more.
        let since = match mutants::on(Mutant::U53) {
            true => self.election.known(),
            false => self.election.nearer(),
        };
        Some(since.after(self.election.wait_to_begin(wait)))
    }

    /// The time at which another round is to begin, since this one cannot go on: this acceptor has not voted for some
    /// instances, and has learnt them since; or this coordinator sees that no majority votes. Each wait is longer,
    /// until a configuration has lasted.
    fn round_at(&self, around: &Around<'_>) -> Option<Time> {
        around.ring?;
        let patience = around.cx.settings.patience;
        let (known, later) = (self.election.known(), |wait| {
            self.election.wait_for_round(wait)
        });
        let is_behind = around.learning.learner.is_behind(MOST_BEHIND);
        let me = around.cx.me.node;
        // Of others nobody waits for the votes.
        let votes = |config: &Arc<Config>| config.has_acceptor_of(me) || mutants::on(Mutant::U75);
        let early = around.voter.is_early() && around.voter.is_well() && !is_behind;
        let early = early && self.config.as_ref().is_some_and(votes);
        let early = early.then(|| known.after(later(patience.retry)));
        let waits = around.leading.and_then(RoundCoordinator::waits_since);
        let waits = waits.filter(|_| !mutants::on(Mutant::U54));
        let waits = waits.map(|since| since.max(known));
        let waits = waits.map(|since| since.after(later(patience.disk + patience.silence)));
        early.into_iter().chain(waits).min()
    }

    /// The time at which a process outside the ring stands itself: not while the coordinator is there.
    fn stand_at(&self, around: &Around<'_>) -> Option<Time> {
        let (cx, links) = (around.cx, around.links);
        let config = self.config.as_ref()?;
        let stands = around.ring.is_none() && around.voter.votes();
        if !stands || self.is_there(cx, links, config.coordinator) {
            return None;
        }
        let down = self.absent.down_since(config.coordinator);
        let patience = cx.settings.patience;
        let gone = down.map_or(Time(0), |at| at.after(patience.link));
        let at = self.outside.stands_at().max(gone);
        // A service asks no acceptor: the members of the ring come first.
        let mut ring = config.ring.iter();
        let others = ring.any(|process| self.is_there(cx, links, *process));
        let is_asked = cx.settings.arbiter == Arbiter::Service;
        let is_put_off = is_asked && others && !mutants::on(Mutant::U88);
        Some(at.after(if is_put_off {
            MOST_WAITS * patience.retry
        } else {
            0
        }))
    }

    /// The time at which processes that want it are taken in: not while a round still gets nearer to its beginning, as
    /// the next one would have to be told everything from the start.
    fn admit_at(&self, around: &Around<'_>) -> Option<Time> {
        let at = self.election.admits_at()?;
        let begun: Round = around.learning.learner.round();
        if begun == self.number() || mutants::on(Mutant::U65) {
            return Some(at);
        }
        let patience = around.cx.settings.patience;
        Some(at.max(self.election.nearer().after(patience.silence)))
    }

    /// The time at which members are to be named once more, for an application that has missed their messages so far.
    /// Each wait is longer than the last: an application may miss the members again if little is kept and much is under
    /// way.
    fn view_at(&self, around: &Around<'_>) -> Option<Time> {
        let lacks = around.learning.hand_out.lacks_view() && around.ring.is_some();
        let retry = around.cx.settings.patience.retry;
        let wait = self.election.wait_for_view(retry);
        lacks.then(|| self.election.known().after(wait))
    }

    /// The time of the next step if nothing happens before.
    pub fn next_time(&self, around: &Around<'_>) -> Option<Time> {
        let may_join = around.ring.is_none() && !around.cx.observes();
        let join = may_join.then_some(self.outside.joins_at());
        if let Some(again) = self.candidacy.again_at() {
            return join.into_iter().chain([again]).min();
        }
        let times = [
            join,
            self.stand_at(around),
            self.suspect_at(around),
            self.apart_at(around),
            self.stalled_at(around),
            self.view_at(around),
            self.admit_at(around),
            self.round_at(around),
        ];
        times.into_iter().flatten().min()
    }

    /// Whether it is time to ask to be taken in.
    pub fn asks_to_join(&self, around: &Around<'_>) -> bool {
        let may_join = around.ring.is_none() && !around.cx.observes();
        may_join && self.outside.joins_at() <= around.cx.now
    }

    /// Whether this process stands; if so, whether it is time to try again.
    pub fn candidacy_is_due(&self, now: Time) -> Option<bool> {
        self.candidacy.again_at().map(|again| again <= now)
    }

    /// The step that is due, if this process does not stand.
    pub fn due(&mut self, around: &Around<'_>) -> Option<Due> {
        let now = around.cx.now;
        if is_due(self.suspect_at(around), now) {
            let suspect = around.ring.and_then(Stream::predecessor);
            Some(Due::Suspects(suspect))
        } else if is_due(self.apart_at(around), now) {
            let apart = around.ring.and_then(Stream::apart);
            Some(Due::Suspects(apart.map(|(process, _)| process)))
        } else if is_due(self.stalled_at(around), now) || is_due(self.stand_at(around), now) {
            Some(Due::Leads)
        } else if is_due(self.admit_at(around), now) {
            Some(Due::Again)
        } else if is_due(self.view_at(around), now) {
            self.election.wants_view();
            Some(Due::Again)
        } else if is_due(self.round_at(around), now) {
            self.election.wants_round();
            Some(Due::Again)
        } else {
            None
        }
    }

    /// The step that was due was tried. A step that could not be done, as too few processes are there, is tried again
    /// later. Returns that time if the predecessor is not to be suspected until then.
    pub fn put_off(&mut self, around: &Around<'_>) -> Option<Time> {
        let now = around.cx.now;
        if is_due(self.admit_at(around), now) {
            self.election.stop_admitting();
        }
        if self.candidacy.stands() {
            return None;
        }
        let later = now.after(around.cx.settings.patience.retry);
        let suspects = is_due(self.suspect_at(around), now);
        if suspects {
            self.election.put_off_suspicion(later);
        }
        let put_off = [
            self.apart_at(around),
            self.stalled_at(around),
            self.view_at(around),
            self.round_at(around),
        ];
        if put_off.into_iter().any(|at| is_due(at, now)) {
            self.election.put_off(later);
        }
        if is_due(self.stand_at(around), now) {
            self.outside.stand_at(later);
        }
        suspects.then_some(later)
    }

    /// This process is not in the ring: it asks to be taken in, and stands itself if nobody is there to ask.
    pub fn on_outside(&mut self, cx: &Context, was_in: bool) {
        let place = self.place_among_acceptors(cx);
        let random = self.random.below(cx.settings.patience.retry);
        self.outside.begin(cx, was_in, (place, random));
    }

    fn place_among_acceptors(&self, cx: &Context) -> u64 {
        let config = self.config.as_ref();
        let place = config.and_then(|config| {
            let mut nodes = config.acceptors.iter().map(|who| who.node);
            nodes.position(|node| node == cx.me.node)
        });
        place.unwrap_or(0) as u64
    }
}

//! Which configuration follows: who is suspected, who wants to come in, and who stands for it.
//!
//! Nothing here decides anything: the register does, and of all who stand for a number one gets its way. A mistake
//! costs time and no more.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;

use super::config::Arbiter;
use super::engine::URing;
use super::known::{MOST_PUT_OFF, MOST_WAITS};
use super::lead::Leading;
use super::stand::MOST_BEHIND;
use super::stream::{Hail, News, Stream};
use super::word::Word;
use crate::contract::{NodeId, Process, Time};
use crate::mutants::{self, Mutant};
use crate::paxos::{Candidate, Config};

/// Waits double so often.
const MOST_DOUBLED: u32 = 6;

/// A configuration lasts that is not over in so many times the silence after which a predecessor is suspected,
const LASTS: u64 = 10;
/// and so many in succession that do not last are nothing strange.
const FEW_SHORT: u32 = 3;
/// Then the silence doubles with each, so often.
const MOST_LONGER: u32 = 3;

/// What this process wants to follow.
#[derive(Debug)]
pub enum Candidacy {
    /// The acceptors are asked.
    Register(Candidate<Arc<Config>>),
    /// The service is.
    Service(Arc<Config>),
}

/// Why a process stands.
#[derive(Clone, Copy, Debug, Default)]
pub struct Why {
    /// Whom it leaves out though there is a link.
    pub suspect: Option<Process>,
    /// The coordinator is to be another one.
    pub lead: bool,
    /// Where it might coordinate itself, it lets the next one.
    pub yields: bool,
}

/// What a process knows of those around it.
#[derive(Debug, Default)]
pub struct Election {
    pub(super) candidate: Option<Candidacy>,
    pub(super) why: Why,
    /// It let another one coordinate when it wanted another coordinator last.
    pub(super) yielded: bool,
    /// When the candidate tries again.
    pub(super) again: Time,
    /// When the configuration became known.
    pub(super) known: Time,
    /// When something was told last that the round needs to begin.
    pub(super) moved: Time,
    /// How much of that the coordinator has had, as far as is known.
    pub(super) told: u64,
    /// How often the candidate has tried.
    pub(super) tries: u32,
    /// So many configurations in succession had no round that has begun here.
    pub(super) unbegun: u32,
    /// How often another round was wanted, for votes that nobody could cast, since the last one that has lasted.
    pub(super) rounds: u32,
    /// How often members were to be named once more since then.
    pub(super) views: u32,
    /// So many configurations did not last and ended as somebody else was left out than the last time, less those that lasted.
    pub(super) short: u32,
    /// Who was left out last.
    pub(super) left_out: Option<NodeId>,
    /// Since when there is no link.
    pub down: BTreeMap<Process, Time>,
    /// Who has said that it leaves.
    pub gone: BTreeSet<Process>,
    /// Who is not in the ring asks to be taken in at this time.
    pub(super) join: Time,
    /// How often the wait for that has doubled.
    pub(super) waits: u64,
    /// Who is not in the ring stands itself at this time, if nobody coordinates.
    pub(super) stand: Time,
    /// The coordinator takes those in who want it at this time.
    pub(super) admit: Option<Time>,
}

/// A wait that doubles each time.
const fn doubled(wait: u64, times: u32) -> u64 {
    let times = if times < MOST_DOUBLED {
        times
    } else {
        MOST_DOUBLED
    };
    wait << times
}

impl Election {
    pub fn start(&mut self, now: Time) {
        self.known = now;
    }

    /// When the round got nearer to its beginning last.
    fn nearer(&self) -> Time {
        self.known.max(self.moved)
    }
}

impl URing {
    /// How long the predecessor may be silent. Who is busy answers late: where configurations follow each other in no time, and
    /// now one is suspected and now another, it gets longer, and less again as they last.
    fn silence(&self) -> u64 {
        let silence = self.settings.patience.silence;
        let short = self.election.short.saturating_sub(self.lasted());
        let longer = short.saturating_sub(FEW_SHORT).min(MOST_LONGER);
        match mutants::on(Mutant::U84) {
            true => silence,
            false => silence << longer,
        }
    }

    /// A configuration is over, and this one follows. Whether it has lasted.
    pub(super) fn has_lasted(&mut self, before: Option<&Config>, next: &Config) -> bool {
        let lasted = self.lasted();
        self.election.short = self.election.short.saturating_sub(lasted);
        let is_out = |process: &&Process| !next.ring.contains(process);
        let left_out = before.and_then(|config| config.ring.iter().find(is_out));
        if let Some(left_out) = left_out.filter(|_| lasted == 0) {
            // Where it is the same one again and again, that one is silent, and is taken in ever less often.
            let last = self.election.left_out.replace(left_out.node);
            self.election.short += u32::from(last != Some(left_out.node));
        }
        lasted > 0
    }

    /// How many times as long as a configuration has to last the newest one has.
    fn lasted(&self) -> u32 {
        let took = self.now.since(self.election.known);
        u32::try_from(took / (LASTS * self.settings.patience.silence)).unwrap_or(u32::MAX)
    }

    /// When the predecessor is suspected.
    fn suspect_at(&self) -> Option<Time> {
        let stream = self.stream.as_ref()?;
        let before = stream.predecessor()?;
        let patience = self.settings.patience;
        let silent = stream.heard.after(self.silence());
        if self.election.gone.contains(&before) {
            return Some(self.election.known);
        }
        if self.peers.has(before) {
            return Some(silent);
        }
        let since = self.election.down.get(&before).copied();
        let since = since
            .unwrap_or(self.election.known)
            .max(self.election.known);
        Some(silent.min(since.after(patience.link)))
    }

    /// When the round has taken too long to begin.
    fn stalled_at(&self) -> Option<Time> {
        let stream = self.stream.as_ref()?;
        if self.learner.round() == stream.round || !self.votes() {
            return None;
        }
        let patience = self.settings.patience;
        let wait = 2 * patience.silence + self.place_among_acceptors() * patience.retry;
        // A link on which a part of a promise takes longer than that needs more.
        let since = match mutants::on(Mutant::U53) {
            true => self.election.known,
            false => self.election.nearer(),
        };
        Some(since.after(doubled(wait, self.election.unbegun)))
    }

    /// When another round is to begin, since this one cannot go on: this acceptor has not voted for something, and has
    /// learnt it since; or this coordinator sees that no majority votes. Each time later, until one has lasted.
    fn round_at(&self) -> Option<Time> {
        self.stream.as_ref()?;
        let patience = self.settings.patience;
        let later = |wait: u64| doubled(wait, self.election.rounds);
        let well = self.votes() && !self.disk.is_behind() && !self.learner.is_behind(MOST_BEHIND);
        let early = self.early && well;
        let early = early.then(|| self.election.known.after(later(patience.retry)));
        let waits = self.leading.as_ref().and_then(Leading::waits_since);
        let waits = waits.filter(|_| !mutants::on(Mutant::U54));
        let waits = waits.map(|since| since.max(self.election.known));
        let waits = waits.map(|since| since.after(later(patience.disk + patience.silence)));
        early.into_iter().chain(waits).min()
    }

    /// When who is outside stands itself: not while the coordinator is there.
    fn stand_at(&self) -> Option<Time> {
        let config = self.config.as_ref()?;
        let stands = self.stream.is_none() && self.votes();
        if !stands || self.is_there(config.coordinator) {
            return None;
        }
        let down = self.election.down.get(&config.coordinator).copied();
        let patience = self.settings.patience;
        let gone = down.map_or(Time(0), |at| at.after(patience.link));
        let at = self.election.stand.max(gone);
        // A service asks no acceptor: those who are in the ring come first.
        let others = config.ring.iter().any(|process| self.is_there(*process));
        let is_asked = self.settings.arbiter == Arbiter::Service;
        let is_put_off = is_asked && others && !mutants::on(Mutant::U88);
        Some(at.after(if is_put_off {
            MOST_WAITS * patience.retry
        } else {
            0
        }))
    }

    /// When those are taken in who want it: not while a round that is to begin still gets nearer to that, as the next one
    /// would have to be told everything from the start.
    fn admit_at(&self) -> Option<Time> {
        let at = self.election.admit?;
        if self.learner.round() == self.number() || mutants::on(Mutant::U65) {
            return Some(at);
        }
        let patience = self.settings.patience;
        Some(at.max(self.election.nearer().after(patience.silence)))
    }

    /// When members are to be named once more, for an application that has missed what they have said so far. Each time
    /// later than the last: where little is kept, and much is under way, it may miss that again.
    fn view_at(&self) -> Option<Time> {
        let lacks = self.hand_out.lacks_view() && self.stream.is_some();
        let times = match mutants::on(Mutant::U67) {
            true => 0,
            false => self.election.views,
        };
        let wait = doubled(self.settings.patience.retry, times);
        lacks.then(|| self.election.known.after(wait))
    }

    /// When something is to be done if nothing happens before.
    pub(super) fn election_at(&self) -> Option<Time> {
        let standing = self.election.candidate.is_some();
        let again = standing.then_some(self.election.again);
        let join = self.stream.is_none().then_some(self.election.join);
        let stand = if standing { None } else { self.stand_at() };
        let suspect = if standing { None } else { self.suspect_at() };
        let stalled = if standing { None } else { self.stalled_at() };
        let view = if standing { None } else { self.view_at() };
        let admit = if standing { None } else { self.admit_at() };
        let round = if standing { None } else { self.round_at() };
        let times = [again, join, stand, suspect, stalled, view, admit, round];
        times.into_iter().flatten().min()
    }

    /// Does what is due.
    pub(super) fn on_election_timer(&mut self) {
        let now = self.now;
        let is_due = |at: Option<Time>| at.is_some_and(|at| at <= now);
        if self.stream.is_none() && is_due(Some(self.election.join)) {
            self.ask_to_join();
        }
        if self.election.candidate.is_some() {
            if is_due(Some(self.election.again)) {
                self.stand_again();
            }
            return;
        }
        if is_due(self.suspect_at()) {
            self.counters.uring_suspicions += 1;
            let suspect = self.stream.as_ref().and_then(Stream::predecessor);
            self.stand(suspect, false);
        } else if is_due(self.stalled_at()) || is_due(self.stand_at()) {
            self.stand(None, true);
        } else if is_due(self.admit_at()) {
            self.stand(None, false);
        } else if is_due(self.view_at()) {
            self.election.views += 1;
            self.stand(None, false);
        } else if is_due(self.round_at()) {
            self.election.rounds += 1;
            self.stand(None, false);
        }
        if is_due(self.admit_at()) {
            self.election.admit = None;
        }
        self.put_off();
    }

    /// What could not be done now, as too few are there, is tried again later.
    fn put_off(&mut self) {
        if self.election.candidate.is_some() {
            return;
        }
        let later = self.now.after(self.settings.patience.retry);
        if self.suspect_at().is_some_and(|at| at <= self.now)
            && let Some(stream) = &mut self.stream
        {
            stream.heard = later;
            self.election.known = later;
        }
        let put_off = [self.stalled_at(), self.view_at(), self.round_at()];
        if put_off.into_iter().flatten().any(|at| at <= self.now) {
            (self.election.known, self.election.moved) = (later, later);
        }
        if self.stand_at().is_some_and(|at| at <= self.now) {
            self.election.stand = later;
        }
    }

    /// The register has not answered: with a higher ballot, and for what is wanted now.
    fn stand_again(&mut self) {
        let wanted = self.wanted(self.election.why);
        let Some(mut candidate) = self.election.candidate.take() else {
            return;
        };
        match (&mut candidate, wanted) {
            (Candidacy::Register(candidate), wanted) => candidate.again(wanted),
            (Candidacy::Service(old), Some(wanted)) => *old = wanted,
            (Candidacy::Service(_), None) => {}
        }
        self.election.candidate = Some(candidate);
        self.try_later();
        self.say_candidacy(None);
    }

    /// When the candidate tries again: each time later, until disks that take long have answered.
    pub(super) fn try_later(&mut self) {
        let retry = self.settings.patience.retry;
        let tries = match mutants::on(Mutant::U55) {
            true => 0,
            false => self.election.tries,
        };
        // Twice for each ballot, and once more for the ring's thread.
        let most = (4 * self.settings.patience.disk).max(retry << MOST_DOUBLED);
        let wait = match mutants::on(Mutant::U78) {
            true => doubled(retry, tries),
            false => (retry << tries.min(2 * MOST_DOUBLED)).min(most),
        };
        let random = self.random.below(retry + wait);
        self.election.again = self.now.after(wait / 2 + random);
        self.election.tries += 1;
    }

    fn ask_to_join(&mut self) {
        let here = Word::Here(self.here());
        let pause = (self.election.waits.min(MOST_PUT_OFF) + 1) * self.settings.patience.retry;
        self.election.join = self.now.after(pause);
        self.peers.say_to_all(&here);
    }

    /// When the predecessor is to be told again, and the successor is to hear something.
    pub(super) fn ring_at(&self) -> Option<Time> {
        let stream = self.stream.as_ref()?;
        let hail = match stream.hail {
            Hail::At(at) => Some(at),
            Hail::Due | Hail::Said => None,
        };
        let heartbeat = self.settings.patience.heartbeat;
        let beat = stream.session().map(|_| stream.spoken.after(heartbeat));
        let news = match stream.news {
            News::Waits(since) => Some(since),
            News::None | News::Due => None,
        };
        hail.into_iter().chain(beat).chain(news).min()
    }
}

//! Rate leveling: a ring with little to order keeps up with the others by skipping instances.
//!
//! Each ring has a mode, which its coordinator asks behind everything that it has to propose:
//!
//! * `pull` (the default): a merge that waits says up to which round, and the coordinator skips to the end of that. No
//!   rate, no clock, and nothing while all are idle. A process that coordinates another ring of the same merge as well
//!   announces the rounds of its values when they are proposed: the skip is decided meanwhile, and goes on so far that
//!   the next values of a busy ring wait for no skip at all. Values of a `horizon` ring are not announced.
//! * `paper`: each `delta` the coordinator makes up for what is missing from `lambda` instances a second (Benz et al. 2014, §4).
//! * `horizon`, for rings that seldom speak: behind values, unless they come often, the ring skips so far ahead that the others, at their rate, do not come there
//!   while it decides something. Else each of its decisions would delay them.
//!
//! A skip is proposed, voted for and as durable as a value: a skip that is forgotten would let a value into an instance
//! that learners have passed. Skips are absolute, up to an instance: a repeated skip is the same.

mod pace;

use crate::mutants::{self, Mutant};
use crate::order::{Constants, Instance, Rank, Round};
use pace::Pace;

/// The most instances that are skipped at once.
const AT_ONCE: Instance = 1 << 30;
/// Nobody gets further: positions have 48 bits for an instance.
const TOO_FAR: Instance = 1 << 47;
/// The most rounds of a horizon.
const MOST_HORIZON: Round = 1 << 20;
/// With `pull` a ring goes ahead of busy ones by the time of this many of its decisions, at most by this many rounds: a
/// skip for every other decision.
const PULL_AHEAD: (u64, Round) = (4, 1 << 12);
/// With `horizon`: more than one decision, as that is what they must not wait for.
const HORIZON_AHEAD: (u64, Round) = (2, MOST_HORIZON);
/// With `horizon`: a value is followed by no skip where so many came, each by itself, in the time of a decision. Each of those skips has
/// the rounds of two decisions, so the ring's rounds go on some sixteen times as fast as those of the fastest other one
/// at most.
const OFTEN: usize = 8;
const SECOND: u128 = 1_000_000_000;

/// The leveling mode of a ring.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Mode {
    /// See the module's page. `delta` in nanoseconds, `lambda` in instances a second.
    Paper {
        /// The time between two skips.
        delta: u64,
        /// The rate that the ring keeps up.
        lambda: u64,
    },
    /// See the module's page.
    #[default]
    Pull,
    /// See the module's page.
    Horizon,
}

/// The state of a ring, as its coordinator knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// Monotonic time, in nanoseconds.
    pub now: u64,
    /// The first instance that is not proposed.
    pub next: Instance,
    /// The first one that is not decided.
    pub decided: Instance,
}

/// The counters of the leveling.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LevelCounters {
    /// Skips, as values.
    pub skips: u64,
    /// Instances that carry nothing.
    pub skipped: u64,
    /// Needs that were heard.
    pub needs: u64,
    /// Needs that were granted step by step, as they are far ahead.
    pub far: u64,
    /// Needs and announcements that were refused.
    pub refused: u64,
}

impl LevelCounters {
    /// The sum of two counts.
    pub(crate) const fn and(self, other: &Self) -> Self {
        Self {
            skips: self.skips + other.skips,
            skipped: self.skipped + other.skipped,
            needs: self.needs + other.needs,
            far: self.far + other.far,
            refused: self.refused + other.refused,
        }
    }
}

/// The leveling of one ring, at its coordinator. Another coordinator begins anew, and is told of needs again.
#[derive(Clone, Debug)]
pub struct Leveler {
    of: Constants,
    mode: Mode,
    /// The round up to whose end the ring is needed.
    needed: Option<Round>,
    /// The first instance behind the last skip.
    skipped_to: Instance,
    /// The greatest round in which another ring was heard to have proposed a value.
    heard: Round,
    began: Option<(u64, Instance)>,
    due: u64,
    pace: Pace,
    ahead: Ahead,
    counters: LevelCounters,
}

/// The last skip ahead of the others, and the state that decides on the next one.
#[derive(Clone, Copy, Default, Debug)]
struct Ahead {
    /// When the last values of this ring were proposed, and the place of the oldest, which the next one takes.
    values: [Option<u64>; OFTEN],
    oldest: usize,
    /// A value was proposed that a skip is to follow, and no skip behind it.
    is_due: bool,
    /// The first instance of the last skip ahead, and the one behind its last.
    from: Instance,
    to: Instance,
}

impl Leveler {
    /// The leveler of a ring that is beginning a round of proposals.
    pub fn new(of: Constants, mode: Mode) -> Self {
        Self {
            of,
            mode,
            needed: None,
            skipped_to: 0,
            heard: 0,
            began: None,
            due: 0,
            pace: Pace::default(),
            ahead: Ahead::default(),
            counters: LevelCounters::default(),
        }
    }

    /// The counters of the leveling.
    pub const fn counters(&self) -> &LevelCounters {
        &self.counters
    }

    /// A merge waits for this ring up to the end of a round. Returns whether that is taken.
    pub fn on_need(&mut self, round: Round) -> bool {
        self.counters.needs += 1;
        let far = round > self.heard.saturating_add(AT_ONCE) && mutants::on(Mutant::A29);
        if far || !self.is_near(round) {
            return false;
        }
        self.needed = self.needed.max(Some(round));
        true
    }

    /// The coordinator of another ring proposes values: the last one in `round`, and in `rounds` rounds since it said
    /// so before. Some merge has both rings: this one may as well skip while the values are being decided. Only values
    /// are announced, never skips: two rings would drive each other. `round` is the one up to which a merge then waits
    /// for this ring: for a ring that stands behind the other one in each round, the round before.
    pub fn on_announced(&mut self, from: Rank, round: Round, rounds: Round) {
        if !self.is_near(round) {
            return;
        }
        let rounds = match mutants::on(Mutant::A28) {
            true => round.saturating_sub(self.heard),
            false => rounds,
        };
        self.pace.on_others(from, rounds);
        self.heard = self.heard.max(round);
        if !matches!(self.mode, Mode::Paper { .. }) {
            self.needed = self.needed.max(Some(round));
        }
    }

    fn is_near(&mut self, round: Round) -> bool {
        let is_near = self.of.first_of(round.saturating_add(1)) <= TOO_FAR;
        self.counters.refused += u64::from(!is_near);
        is_near
    }

    /// Values of this ring are proposed, up to this instance, which is one.
    pub fn on_value(&mut self, instance: Instance, now: u64) {
        let ahead = &mut self.ahead;
        let oldest = ahead.values[ahead.oldest].replace(now);
        ahead.oldest = (ahead.oldest + 1) % OFTEN;
        let soon = self.pace.decision();
        ahead.is_due = oldest.is_none_or(|then| now.saturating_sub(then) >= soon);
        self.pace.on_proposed(instance, now);
    }

    /// The instance up to which to skip now; `None` if nothing is to be skipped. To be called behind each proposal and
    /// decision, and at [`Self::due`]. The result is to be told with [`Self::on_skipped`].
    pub fn skip_to(&mut self, standing: Standing) -> Option<Instance> {
        self.pace.on_decided(standing.decided, standing.now);
        let to = match self.mode {
            Mode::Paper { delta, lambda } => self.by_rate(standing, delta, lambda),
            Mode::Pull | Mode::Horizon => self.by_need(standing).max(self.ahead(standing)),
        };
        let most = standing.next.saturating_add(AT_ONCE).min(TOO_FAR);
        to.map(|to| to.min(most)).filter(|to| *to > standing.next)
    }

    /// A skip that [`Self::skip_to`] wanted was proposed: the instances from `from` on, before `next`.
    pub fn on_skipped(&mut self, from: Instance, next: Instance, now: u64) {
        if next > from {
            self.pace.on_proposed(next - 1, now);
            self.skipped_to = next;
            self.counters.skips += 1;
            self.counters.skipped += next - from;
        }
    }

    /// The time of the next call if nothing happens before, by the monotonic clock.
    pub const fn due(&self) -> Option<u64> {
        match self.mode {
            Mode::Paper { .. } => Some(self.due),
            Mode::Pull | Mode::Horizon => None,
        }
    }

    /// Skips to the end of the round that is needed: one skip for each decision, however many merges wait.
    fn by_need(&mut self, standing: Standing) -> Option<Instance> {
        let next = self.of.first_of(self.needed? + 1);
        if standing.next >= next {
            self.needed = None;
            return None;
        }
        if standing.decided < self.skipped_to {
            return None;
        }
        self.counters.far += u64::from(next - standing.next > AT_ONCE);
        Some(next)
    }

    /// Skips the instances that are missing from the rate, each `delta`.
    fn by_rate(&mut self, standing: Standing, delta: u64, lambda: u64) -> Option<Instance> {
        let now = standing.now;
        let (began, first) = *self.began.get_or_insert((now, standing.next));
        if now < self.due {
            return None;
        }
        self.due = now.saturating_add(delta);
        let expected = u128::from(lambda) * u128::from(now - began) / SECOND;
        Some(first.saturating_add(u64::try_from(expected).unwrap_or(u64::MAX)))
    }

    /// Skips so far that others do not come there while this ring decides.
    fn ahead(&mut self, standing: Standing) -> Option<Instance> {
        let (decisions, most) = match self.mode {
            Mode::Horizon => HORIZON_AHEAD,
            Mode::Pull | Mode::Paper { .. } => PULL_AHEAD,
        };
        let rounds = self.pace.rounds_in(decisions).min(most);
        if rounds == 0 || !self.is_due(standing) {
            return None;
        }
        let base = match self.mode {
            Mode::Horizon => self.of.round_of(standing.next).max(self.heard),
            Mode::Pull | Mode::Paper { .. } => self.heard,
        };
        let to = self.of.first_of(base + rounds + 1);
        (self.ahead.is_due, self.ahead.from, self.ahead.to) = (false, standing.next, to);
        Some(to)
    }

    /// Whether to go ahead now: when half of the last skip ahead is used, or others have come further; with `pull` not
    /// while values come often, as their instances move the ring. One skip for each decision; but with `horizon` a value
    /// is followed by a skip at once, or else the others, which go to that value as soon as it is decided, would wait
    /// there.
    fn is_due(&self, standing: Standing) -> bool {
        if self.mode == Mode::Horizon && self.ahead.is_due {
            return true;
        }
        if standing.decided < self.skipped_to {
            return false;
        }
        let heard = self.of.first_of(self.heard);
        let Ahead { from, to, .. } = self.ahead;
        let is_half_used = to > from && heard > from + (to - from) / 2;
        let is_passed = heard >= standing.next;
        match self.mode {
            Mode::Horizon => is_half_used || is_passed,
            Mode::Pull => (is_half_used || is_passed) && !self.is_busy(standing.now),
            Mode::Paper { .. } => false,
        }
    }

    /// A value came within two decisions.
    fn is_busy(&self, now: u64) -> bool {
        let soon = 2 * self.pace.decision();
        let Ahead { values, oldest, .. } = self.ahead;
        let newest = values[(oldest + OFTEN - 1) % OFTEN];
        newest.is_some_and(|then| now.saturating_sub(then) < soon)
    }
}

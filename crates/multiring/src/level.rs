//! Rate leveling: how a ring with little to order keeps up with the others, by skipping instances.
//!
//! A mode for each ring, asked by its coordinator behind everything that it has to propose:
//!
//! * `pull` (the default): a merge that waits says up to which round, and the coordinator skips to the end of that. No rate, no clock, and nothing
//!   while all are idle. Who coordinates another ring of the same merge as well announces the rounds of its values when they are proposed: the
//!   skip is decided meanwhile.
//! * `paper`: each `delta` the coordinator makes up for what is missing from `lambda` instances a second (Benz et al. 2014, §4).
//! * `horizon`, for rings that seldom speak: behind each value the ring skips so far ahead that the others, at their rate, do not come there
//!   while it decides something. Else each of its decisions would delay them.
//!
//! What is skipped is proposed, voted for and as durable as a value: a skip that is forgotten would let a value into an instance that learners have
//! passed. Skips are absolute, up to an instance: said twice they are the same.

use crate::mutants::{self, Mutant};
use crate::order::{Constants, Instance, Round};

/// So many instances are skipped at once.
const AT_ONCE: Instance = 1 << 30;
/// Nobody gets further: positions have 48 bits for an instance.
const TOO_FAR: Instance = 1 << 47;
/// A horizon is at most so many rounds.
const MOST_HORIZON: Round = 1 << 20;
/// What is smoothed follows what is seen by an eighth.
const SMOOTH: u64 = 8;
const SECOND: u128 = 1_000_000_000;

/// Which way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// See the module's page. `delta` in nanoseconds, `lambda` in instances a second.
    Paper {
        /// So often.
        delta: u64,
        /// So many.
        lambda: u64,
    },
    /// See the module's page.
    #[default]
    Pull,
    /// See the module's page.
    Horizon,
}

/// What the coordinator knows of its ring when it is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// Monotonic time, in nanoseconds.
    pub now: u64,
    /// The first instance that is not proposed.
    pub next: Instance,
    /// The first one that is not decided.
    pub decided: Instance,
}

/// What has been counted.
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
    /// What has been counted at two times.
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
    /// It is needed up to the end of this round.
    needed: Option<Round>,
    /// What was skipped last goes up to here.
    skipped_to: Instance,
    /// The greatest round in which another ring was heard to have proposed a value.
    heard: Round,
    began: Option<(u64, Instance)>,
    due: u64,
    horizon: Horizon,
    counters: LevelCounters,
}

/// What a horizon goes by.
#[derive(Clone, Copy, Default, Debug)]
struct Horizon {
    /// Rounds with values that the fastest of the others had while this ring decided something, eight times.
    eighths: u64,
    /// How long this ring takes for a decision, in nanoseconds.
    decision: u64,
    /// The last value of this ring, and when it was proposed.
    value: Option<(Instance, u64)>,
    /// Its decision was seen.
    is_decided: bool,
    /// It came less than two decisions behind the one before.
    is_often: bool,
    /// A value was proposed, and no skip behind it.
    is_due: bool,
    /// What was skipped ahead last: from here, to there.
    from: Instance,
    to: Instance,
}

impl Leveler {
    /// Of a ring that is beginning a round of proposals.
    pub fn new(of: Constants, mode: Mode) -> Self {
        Self {
            of,
            mode,
            needed: None,
            skipped_to: 0,
            heard: 0,
            began: None,
            due: 0,
            horizon: Horizon::default(),
            counters: LevelCounters::default(),
        }
    }

    /// What has been counted.
    pub const fn counters(&self) -> &LevelCounters {
        &self.counters
    }

    /// A merge waits for this ring up to the end of a round. Whether that is taken.
    pub fn on_need(&mut self, round: Round) -> bool {
        self.counters.needs += 1;
        let far = round > self.heard.saturating_add(AT_ONCE) && mutants::on(Mutant::A29);
        if far || !self.is_near(round) {
            return false;
        }
        self.needed = self.needed.max(Some(round));
        true
    }

    /// Another ring's coordinator proposes a value in this round, and some merge has both rings: this one may as well skip while that is being
    /// decided. Only values are announced, never skips: two rings would drive each other. To be said of the round up to which a merge then waits for
    /// this ring: of a ring that stands behind the other one in each round, the one before.
    pub fn on_announced(&mut self, round: Round) {
        if !self.is_near(round) {
            return;
        }
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
        let horizon = &mut self.horizon;
        let before = horizon.value.replace((instance, now));
        horizon.is_often = before.is_some_and(|(_, then)| {
            !horizon.is_decided || now.saturating_sub(then) < 2 * horizon.decision
        });
        (horizon.is_decided, horizon.is_due) = (false, true);
    }

    /// While this ring decided something the fastest other one proposed values in so many rounds; `skipped`: and skipped so many.
    pub fn on_others(&mut self, rounds: Round, skipped: Round) {
        let seen = match mutants::on(Mutant::A28) {
            true => rounds.saturating_add(skipped),
            false => rounds,
        };
        let eighths = self.horizon.eighths;
        self.horizon.eighths = (eighths - eighths / SMOOTH).saturating_add(seen.min(MOST_HORIZON));
    }

    /// Up to which instance to skip now; `None` if nothing is to be skipped. To be asked behind each proposal and decision, and at
    /// [`Self::due`]. What comes of it is to be said with [`Self::on_skipped`].
    pub fn skip_to(&mut self, standing: Standing) -> Option<Instance> {
        self.see_decision(standing);
        let to = match self.mode {
            Mode::Paper { delta, lambda } => self.by_rate(standing, delta, lambda),
            Mode::Pull => self.by_need(standing),
            Mode::Horizon => self.by_need(standing).max(self.ahead(standing)),
        };
        let most = standing.next.saturating_add(AT_ONCE).min(TOO_FAR);
        to.map(|to| to.min(most)).filter(|to| *to > standing.next)
    }

    /// What was proposed of what [`Self::skip_to`] said: from here, and everything before that.
    pub fn on_skipped(&mut self, from: Instance, next: Instance) {
        if next > from {
            self.skipped_to = next;
            self.counters.skips += 1;
            self.counters.skipped += next - from;
        }
    }

    /// When to ask next if nothing happens before, by the monotonic clock.
    pub const fn due(&self) -> Option<u64> {
        match self.mode {
            Mode::Paper { .. } => Some(self.due),
            Mode::Pull | Mode::Horizon => None,
        }
    }

    fn see_decision(&mut self, standing: Standing) {
        let horizon = &mut self.horizon;
        if let Some((instance, then)) = horizon.value.filter(|_| !horizon.is_decided)
            && standing.decided > instance
        {
            let took = standing.now.saturating_sub(then);
            horizon.decision = match horizon.decision {
                0 => took,
                known => known - known / SMOOTH + took / SMOOTH,
            };
            horizon.is_decided = true;
        }
    }

    /// To the end of the round that is needed: one skip for each decision, however many wait.
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

    /// What is missing from the rate, each `delta`.
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

    /// Behind a value, and when half of what was skipped ahead is used: so far that others do not come there while this ring decides. Not while
    /// values come often: their instances move the ring.
    fn ahead(&mut self, standing: Standing) -> Option<Instance> {
        let rounds = (2 * self.horizon.eighths / SMOOTH).min(MOST_HORIZON);
        let heard = self.of.first_of(self.heard);
        let Horizon { from, to, .. } = self.horizon;
        let is_half_used = to > from && heard > from + (to - from) / 2;
        let is_due = self.horizon.is_due && !self.horizon.is_often || is_half_used;
        if !is_due || rounds == 0 || standing.decided < self.skipped_to {
            return None;
        }
        let base = self.of.round_of(standing.next).max(self.heard);
        let to = self.of.first_of(base + rounds + 1);
        (self.horizon.is_due, self.horizon.from, self.horizon.to) = (false, standing.next, to);
        Some(to)
    }
}

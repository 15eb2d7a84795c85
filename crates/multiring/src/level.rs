//! Rate leveling: how a ring with little to order keeps up with the others, by skipping instances.
//!
//! A mode for each ring, asked by its coordinator behind everything that it has to propose:
//!
//! * `pull` (the default): a merge that waits says up to which round, and the coordinator skips to the end of that. No rate, no clock, and nothing
//!   while all are idle.
//! * `paper`: each `delta` the coordinator makes up for what is missing from `lambda` instances a second (Benz et al. 2014, §4).
//! * `horizon`, for rings that seldom speak: behind each value the ring skips so far ahead that the others, at their rate, do not come there
//!   while it decides something. Else each of its decisions would delay them.
//!
//! What is skipped is proposed, voted for and as durable as a value: a skip that is forgotten would let a value into an instance that learners have
//! passed. Skips are absolute, up to an instance: said twice they are the same.

use crate::mutants::{self, Mutant};
use crate::order::{Constants, Instance, Round};

/// Granted at once to who needs a round that is far ahead.
const AT_ONCE: Round = 1 << 30;
/// Refused: positions have 48 bits for an instance.
const TOO_FAR: Round = 1 << 47;
/// A horizon is at most so many rounds.
const MOST_HORIZON: Round = 1 << 20;
/// A horizon follows what is seen by an eighth.
const SMOOTH: u64 = 8;
const SECOND: u128 = 1_000_000_000;

/// Which way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// See the module's page. `delta` in nanoseconds, `lambda` in instances a second.
    Paper {
        /// So often.
        delta: u64,
        /// So many.
        lambda: u64,
    },
    /// See the module's page.
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
    /// Needs that were refused.
    pub refused: u64,
}

/// The leveling of one ring, at its coordinator. Another coordinator begins anew, and is told of needs again.
#[derive(Clone, Debug)]
pub struct Leveler {
    of: Constants,
    mode: Mode,
    /// It is needed up to the end of this round.
    needed: Option<Round>,
    /// The skip that was proposed last goes up to here.
    skipped_to: Instance,
    /// The greatest round that anybody was heard to have proposed a value in.
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
    /// A value was proposed, and no skip behind it.
    is_due: bool,
    /// What was skipped ahead last: from here, to there.
    from: Instance,
    to: Instance,
}

impl Leveler {
    /// Of a ring that is beginning a round of proposals.
    pub const fn new(of: Constants, mode: Mode) -> Self {
        Self {
            of,
            mode,
            needed: None,
            skipped_to: 0,
            heard: 0,
            began: None,
            due: 0,
            horizon: Horizon {
                eighths: 0,
                is_due: false,
                from: 0,
                to: 0,
            },
            counters: LevelCounters {
                skips: 0,
                skipped: 0,
                needs: 0,
                far: 0,
                refused: 0,
            },
        }
    }

    /// What has been counted.
    pub const fn counters(&self) -> &LevelCounters {
        &self.counters
    }

    /// A merge waits for this ring up to the end of a round. Whether that is taken.
    pub fn on_need(&mut self, round: Round) -> bool {
        self.counters.needs += 1;
        let far = round > self.heard.saturating_add(AT_ONCE);
        if round >= TOO_FAR || far && mutants::on(Mutant::A29) {
            self.counters.refused += 1;
            return false;
        }
        let further = match self.needed {
            Some(needed) => round > needed,
            None => true,
        };
        if further {
            self.needed = Some(round);
        }
        true
    }

    /// Another ring's coordinator proposes a value in this round: this one may as well skip while that is being decided. Only values are
    /// announced, never skips: two rings would drive each other.
    pub const fn on_announced(&mut self, round: Round) {
        if round > self.heard {
            self.heard = round;
        }
    }

    /// A value of this ring is proposed.
    pub const fn on_value(&mut self, instance: Instance) {
        self.on_announced(self.of.round_of(instance));
        self.horizon.is_due = true;
    }

    /// While this ring decided something the fastest other one proposed values in so many rounds; `skipped`: and skipped so many.
    pub fn on_others(&mut self, rounds: Round, skipped: Round) {
        let seen = match mutants::on(Mutant::A28) {
            true => rounds.saturating_add(skipped),
            false => rounds,
        };
        let eighths = self.horizon.eighths;
        self.horizon.eighths = (eighths - eighths / SMOOTH).saturating_add(seen);
    }

    /// Up to which instance to skip now; `None` if nothing is to be skipped. To be asked behind each proposal and decision, and at
    /// [`Self::due`].
    pub fn skip_to(&mut self, standing: Standing) -> Option<Instance> {
        let to = match self.mode {
            Mode::Paper { delta, lambda } => self.by_rate(standing, delta, lambda),
            Mode::Pull => self.by_need(standing),
            Mode::Horizon => self.by_need(standing).max(self.ahead(standing)),
        };
        let to = to.filter(|to| *to > standing.next)?;
        self.skipped_to = to;
        self.counters.skips += 1;
        self.counters.skipped += to - standing.next;
        Some(to)
    }

    /// When to ask next if nothing happens before, by the monotonic clock.
    pub const fn due(&self) -> Option<u64> {
        match self.mode {
            Mode::Paper { .. } => Some(self.due),
            Mode::Pull | Mode::Horizon => None,
        }
    }

    /// To the end of the round that is needed: one skip for each decision, however many wait.
    fn by_need(&mut self, standing: Standing) -> Option<Instance> {
        let round = self.needed?;
        if standing.next >= self.of.first_of(round + 1) {
            self.needed = None;
            return None;
        }
        if standing.decided < self.skipped_to {
            return None;
        }
        let reached = self.heard.max(self.of.round_of(standing.next));
        let most = reached.saturating_add(AT_ONCE);
        self.counters.far += u64::from(round > most);
        Some(self.of.first_of(round.min(most) + 1))
    }

    /// What is missing from the rate, each `delta`.
    fn by_rate(&mut self, standing: Standing, delta: u64, lambda: u64) -> Option<Instance> {
        let now = standing.now;
        let (began, first) = *self.began.get_or_insert((now, standing.next));
        if now < self.due {
            return None;
        }
        self.due = now + delta;
        let expected = u128::from(lambda) * u128::from(now - began) / SECOND;
        Some(first.saturating_add(u64::try_from(expected).unwrap_or(u64::MAX)))
    }

    /// Behind a value, and when half of what was skipped ahead is used: so far that others do not come there while this ring decides.
    fn ahead(&mut self, standing: Standing) -> Option<Instance> {
        let rounds = (2 * self.horizon.eighths / SMOOTH).min(MOST_HORIZON);
        let heard = self.of.first_of(self.heard);
        let Horizon { from, to, .. } = self.horizon;
        let is_half_used = to > from && heard > from + (to - from) / 2;
        let is_due = self.horizon.is_due || is_half_used;
        if !is_due || rounds == 0 || standing.decided < self.skipped_to {
            return None;
        }
        let base = self.of.round_of(standing.next).max(self.heard);
        let to = self.of.first_of(base + rounds + 1);
        (self.horizon.is_due, self.horizon.from, self.horizon.to) = (false, standing.next, to);
        Some(to)
    }
}

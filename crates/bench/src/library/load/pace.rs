//! When a sender's messages are due, and how many of its own are under way.

use rota_core::contract::Time;
use serde::{Deserialize, Serialize};

use crate::clock::wake_for;

/// While the ring is busy, tokens come often enough to submit at; no extra wake-up is made sooner
/// than this after the last chance to submit.
const WAKE_GAP_NS: u64 = 200_000;

/// The times at which a node submits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::library) enum Plan {
    /// Never.
    Silent,
    /// Whenever the ring takes more.
    Max,
    /// At start + offset + k intervals, in nanoseconds.
    Fixed {
        /// Of this node.
        offset: f64,
        /// Between two messages of this node.
        interval: f64,
    },
    /// At random times, independent of each other: a Poisson process.
    Random {
        /// The same seed gives the same times.
        seed: u64,
        /// The mean time between two messages of this node, in nanoseconds.
        mean: f64,
    },
    /// When one of its own is delivered, so that so many are under way.
    UnderWay(u32),
}

impl Plan {
    /// Messages are due at times of their own, whatever the ring does.
    const fn has_times(&self) -> bool {
        matches!(self, Self::Fixed { .. } | Self::Random { .. })
    }

    /// The part of this plan for one of so many rings.
    pub(in crate::library) fn part(&self, at: usize, rings: usize) -> Self {
        match self {
            Self::Silent | Self::Max => self.clone(),
            Self::Fixed { offset, interval } => Self::Fixed {
                offset: offset + interval * at as f64,
                interval: interval * rings as f64,
            },
            Self::Random { seed, mean } => Self::Random {
                seed: seed.wrapping_add(at as u64 + 1),
                mean: mean * rings as f64,
            },
            Self::UnderWay(count) => Self::UnderWay(crate::options::share(*count, at, rings)),
        }
    }
}

/// The measured part of a run, on the common clock.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::library) struct Span {
    pub start: u64,
    pub from: u64,
    pub until: u64,
}

impl Span {
    /// Whether a message that was due then is measured.
    pub(super) fn measures(&self, at: u64) -> bool {
        (self.from..self.until).contains(&at)
    }
}

/// See the module page.
#[derive(Debug)]
pub(super) struct Pace {
    plan: Plan,
    span: Option<Span>,
    /// Number of the next message.
    next: u32,
    /// With random times: when the next message is due, in nanoseconds after the start.
    arrival: f64,
    random: fastrand::Rng,
    /// The next message has been due at a chance to submit.
    is_late_known: bool,
    last_fill: u64,
    /// Own messages that were submitted and not delivered here.
    under_way: u32,
    /// One was delivered since the last chance to submit.
    freed: bool,
}

impl Pace {
    pub(super) fn new(plan: Plan) -> Self {
        let seed = match plan {
            Plan::Random { seed, .. } => seed,
            _ => 0,
        };
        let mut pace = Self {
            plan,
            span: None,
            next: 0,
            arrival: 0.0,
            random: fastrand::Rng::with_seed(seed),
            is_late_known: false,
            last_fill: 0,
            under_way: 0,
            freed: false,
        };
        pace.draw();
        pace
    }

    /// Starts the plan.
    pub(super) fn begin(&mut self, span: Span) {
        self.span = Some(span);
    }

    pub(super) const fn span(&self) -> Option<Span> {
        self.span
    }

    /// The number that the next message gets.
    pub(super) const fn next(&self) -> u32 {
        self.next
    }

    /// Draws the time between a message and the one before it.
    fn draw(&mut self) {
        if let Plan::Random { mean, .. } = self.plan {
            // f64() is below 1, so the logarithm is finite.
            self.arrival -= mean * (1.0 - self.random.f64()).ln();
        }
    }

    /// When the next message is due; `None` if there is none any more.
    fn due(&self) -> Option<u64> {
        let span = self.span?;
        let at = match self.plan {
            Plan::Silent => return None,
            Plan::Max | Plan::UnderWay(_) => span.start,
            Plan::Fixed { offset, interval } => {
                span.start + (offset + interval * f64::from(self.next)) as u64
            }
            Plan::Random { .. } => span.start + self.arrival as u64,
        };
        (at < span.until).then_some(at)
    }

    /// As many own messages are under way as the plan wants.
    fn has_enough(&self) -> bool {
        matches!(self.plan, Plan::UnderWay(most) if self.under_way >= most)
    }

    /// A chance to submit has come.
    pub(super) fn look(&mut self, now: Time) {
        self.last_fill = now.0;
        self.freed = false;
    }

    /// When the message was due that is to be submitted now; `None` if none is.
    pub(super) fn wanted(&self, now: Time) -> Option<u64> {
        let due = self.due().filter(|due| *due <= now.0)?;
        if self.plan.has_times() {
            return Some(due);
        }
        let over = self.span.is_some_and(|span| now.0 >= span.until);
        // Without a plan of times, a message is due when the ring would take it.
        (!over && !self.has_enough()).then_some(now.0)
    }

    /// How late the sender itself is with a message that has times of its own, in nanoseconds, however long the ring
    /// makes it wait after that; once for each message.
    pub(super) fn lateness(&mut self, now: Time, at: u64) -> Option<u64> {
        if !self.plan.has_times() || std::mem::replace(&mut self.is_late_known, true) {
            return None;
        }
        Some(now.0.saturating_sub(at))
    }

    /// The ring has taken the next message.
    pub(super) fn submitted(&mut self) {
        self.next = self.next.wrapping_add(1);
        self.under_way = self.under_way.saturating_add(1);
        self.is_late_known = false;
        self.draw();
    }

    /// A message of this node's own was delivered to it.
    pub(super) fn delivered_own(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
        self.freed = true;
    }

    /// Nothing is to be submitted before the ring turns again.
    pub(super) fn may_sleep(&self) -> bool {
        !(self.freed && matches!(self.plan, Plan::UnderWay(_)))
    }

    /// When a chance to submit is needed.
    pub(super) fn next_wake(&self) -> Option<Time> {
        let due = self.due()?;
        match self.plan {
            // The backlog is full, or the start is still to come.
            Plan::Max | Plan::UnderWay(_) if self.next > 0 => None,
            Plan::Silent => None,
            _ => {
                let wake = wake_for(self.last_fill, due);
                Some(Time(wake.max(self.last_fill + WAKE_GAP_NS)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Span = Span {
        start: 1_000_000,
        from: 2_000_000,
        until: 1_001_000_000,
    };

    /// The times at which a plan's messages are due, where the ring takes each at once.
    fn times(plan: Plan) -> Vec<u64> {
        let mut pace = Pace::new(plan);
        pace.begin(SPAN);
        let mut times = Vec::new();
        while let Some(due) = pace.due() {
            times.push(due);
            pace.submitted();
        }
        times
    }

    #[test]
    fn random_times_have_the_mean_and_the_spread_of_a_poisson_process() {
        let mean = 100_000.0;
        let times = times(Plan::Random { seed: 7, mean });
        // 10,000 are expected, with a standard deviation of 100.
        assert!((9_600..10_400).contains(&times.len()), "{}", times.len());
        let gaps = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64);
        let above = gaps.filter(|gap| *gap > mean).count() as f64 / times.len() as f64;
        assert!(
            (above - (-1.0_f64).exp()).abs() < 0.02,
            "{above} of the gaps"
        );
    }

    #[test]
    fn the_same_seed_gives_the_same_times_and_another_gives_others() {
        let of = |seed| times(Plan::Random { seed, mean: 1e6 });
        assert_eq!(of(3), of(3));
        assert_ne!(of(3), of(4));
        let plan = Plan::Random { seed: 3, mean: 1e6 };
        assert_ne!(times(plan.part(0, 2)), times(plan.part(1, 2)));
    }

    #[test]
    fn lateness_is_the_senders_own_and_counted_once() {
        let mut pace = Pace::new(Plan::Fixed {
            offset: 0.0,
            interval: 1000.0,
        });
        pace.begin(SPAN);
        let now = Time(SPAN.start + 300);
        let at = pace.wanted(now).expect("one is due");
        assert_eq!(pace.lateness(now, at), Some(300));
        // The ring takes nothing for a while: not the sender's fault.
        assert_eq!(pace.lateness(Time(now.0 + 500), at), None);
        pace.submitted();
        let later = Time(SPAN.start + 1100);
        let at = pace.wanted(later).expect("the next one is due");
        assert_eq!(pace.lateness(later, at), Some(100));
        let mut open = Pace::new(Plan::Max);
        open.begin(SPAN);
        assert_eq!(open.lateness(now, now.0), None);
    }
}

//! Round trips as they are measured here, and the waits before messages are repeated.

use rota_core::contract::Time;
use rota_core::mutants::{self, Mutant};

const MICROS: u64 = 1_000;
const MILLIS: u64 = 1_000_000;

/// The time-out before the first measurement, in nanoseconds.
const FIRST_TIMEOUT: u64 = 10 * MILLIS;
/// The least time-out: a shorter one tells nothing on a machine that runs other programs, too.
const LEAST_TIMEOUT: u64 = 5 * MILLIS;
/// The longest time-out: a member repeats a message that was in vain at least this often.
const MOST_TIMEOUT: u64 = 200 * MILLIS;

/// Packets of one sender seldom pass each other on the way.
const HOLE_GRACE: u64 = 200 * MICROS;
/// Packets that others have may wait in a socket here.
const LEAST_HEARSAY_GRACE: u64 = 2 * MILLIS;
const MOST_HEARSAY_GRACE: u64 = 50 * MILLIS;

/// Measured round trips: of own packets, or of acknowledgements, until all have acknowledged.
#[derive(Clone, Debug)]
pub(super) struct RoundTrip {
    /// Smoothed, with their mean deviation, as for TCP (RFC 6298).
    round_trip: Option<(u64, u64)>,
    /// The present measurement: a number of this member's, and the time at which it was told.
    sample: Option<(u64, Time)>,
    /// The time to wait for packets that only others are known to have, in nanoseconds.
    hearsay_grace: u64,
}

impl RoundTrip {
    pub const fn new() -> Self {
        Self {
            round_trip: None,
            sample: None,
            hearsay_grace: LEAST_HEARSAY_GRACE,
        }
    }

    /// The time to wait for an answer, in nanoseconds.
    pub fn timeout(&self) -> u64 {
        let timeout = self
            .round_trip
            .map_or(FIRST_TIMEOUT, |(smoothed, deviation)| {
                smoothed + 4 * deviation
            });
        timeout.clamp(LEAST_TIMEOUT, MOST_TIMEOUT)
    }

    /// The time that an answer takes, in nanoseconds.
    pub fn round_trip(&self) -> u64 {
        self.round_trip.map_or(MILLIS, |(smoothed, _)| smoothed)
    }

    /// The time to wait for an answer after `tries` times in vain, in nanoseconds: longer after each.
    pub fn backed_off(&self, tries: u32) -> u64 {
        (self.timeout() << tries.min(10)).min(MOST_TIMEOUT)
    }

    /// Begins to time the answer to a message up to `seq`, unless another one is timed already.
    pub fn begin(&mut self, now: Time, seq: u64) {
        if self.sample.is_none() {
            self.sample = Some((seq, now));
        }
    }

    /// Gives the measurement up, as a message was repeated: the answer may be to either copy (Karn).
    pub const fn spoil(&mut self) {
        self.sample = None;
    }

    /// Notes that everything up to `seq` was answered.
    pub fn answered(&mut self, now: Time, seq: u64) {
        let Some((waited, since)) = self.sample else {
            return;
        };
        if seq < waited {
            return;
        }
        self.sample = None;
        let took = now.since(since);
        self.round_trip = Some(match self.round_trip {
            None => (took, took / 2),
            Some((smoothed, deviation)) => {
                let off = smoothed.abs_diff(took);
                ((7 * smoothed + took) / 8, (3 * deviation + off) / 4)
            }
        });
    }

    /// Its invariants.
    pub fn check(&self) {
        let hearsay = LEAST_HEARSAY_GRACE..=MOST_HEARSAY_GRACE;
        assert!(
            hearsay.contains(&self.hearsay_grace),
            "hearsay is waited for, but not for ever"
        );
    }

    /// The time that a packet may be missing before it is requested, in nanoseconds; `hole`: packets sent later are
    /// here.
    pub const fn grace(&self, hole: bool) -> u64 {
        if hole { HOLE_GRACE } else { self.hearsay_grace }
    }

    /// Notes that a requested packet came twice: it was only late.
    pub fn on_asked_too_early(&mut self) {
        self.hearsay_grace = (2 * self.hearsay_grace).min(MOST_HEARSAY_GRACE);
    }

    /// Notes that a requested packet came.
    pub fn on_repaired(&mut self) {
        self.hearsay_grace = (self.hearsay_grace / 8 * 7).max(LEAST_HEARSAY_GRACE);
    }
}

/// The repetition of a message until its subject moves.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch {
    since: Option<Time>,
    seen: u64,
    tries: u32,
}

impl Watch {
    /// Its invariants.
    pub fn check(&self) {
        assert!(
            self.is_on() || self.tries == 0,
            "nothing is repeated in vain if nothing is open"
        );
    }

    /// Whether something is open.
    pub const fn is_on(&self) -> bool {
        self.since.is_some()
    }

    /// Takes note whether something is open now, and of its progress.
    pub fn update(&mut self, now: Time, open: bool, progress: u64) {
        if !open {
            let tries = if mutants::on(Mutant::I14) {
                self.tries
            } else {
                0
            };
            *self = Self {
                tries,
                ..Self::default()
            };
        } else if self.since.is_none() || progress != self.seen {
            (self.since, self.seen, self.tries) = (Some(now), progress, 0);
        }
    }

    pub fn due_at(&self, patience: &RoundTrip) -> Option<Time> {
        Some(self.since?.after(patience.backed_off(self.tries)))
    }

    /// Notes that the message was repeated.
    pub const fn again(&mut self, now: Time) {
        self.since = Some(now);
        self.tries = self.tries.saturating_add(1);
    }
}

//! What the application's load requires: more at once, less after a while.

use crate::contract::Time;

const MILLIS: u64 = 1_000_000;

/// What arrives is counted in pieces of this length, in nanoseconds.
const SLOT: u64 = MILLIS;

/// So many of them are remembered.
const SLOTS: usize = 32;

/// Over so long at least it is counted how fast something arrives, in nanoseconds: at first, and later.
const SPAN: (u64, u64) = (2 * MILLIS, 5 * MILLIS);

/// What has to wait longer than this for the rate, waits too long, in nanoseconds.
const LATE: u64 = MILLIS / 2;

/// For so long something has to wait too long before more is required, in nanoseconds: if nothing is required yet, and
/// otherwise.
const PATIENCE: (u64, u64) = (MILLIS, 4 * MILLIS);

/// What waits at the rate that is required for less than this is no reason to require more, in nanoseconds: a busy
/// processor lets a load come in lumps of that length.
const LUMP: u64 = 8 * MILLIS;

/// What has to wait too long for so long, all the time, needs all that is required, in nanoseconds. A load that comes in
/// lumps waits now and then, and needs no more than what comes on average.
const LASTING: u64 = 12 * MILLIS;

/// What waits is to be gone after so long, in nanoseconds.
const DRAIN: u64 = 10 * MILLIS;

/// Over so long the load is averaged before less is required, in nanoseconds.
const INTERVAL: u64 = 20 * MILLIS;

/// So long it has to have been less, in nanoseconds, at least and at most.
const HOLD: core::ops::RangeInclusive<u64> = 100 * MILLIS..=3_200 * MILLIS;

/// No more is required for less than one part in so many.
const NOTABLE: u64 = 8;

/// Requirements are multiples of so small a part of all there is.
const STEPS: u64 = 256;

/// What a sender has to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waiting {
    /// All that has ever left of it, in bytes.
    pub sent: u64,
    /// What has not left yet, in bytes.
    pub waiting: u64,
    /// Whether it is the rate that it waits for, and nothing else (a window that is full, say).
    pub for_rate: bool,
    /// Whether there is so much that the application was told to wait.
    pub full: bool,
}

/// Requirements that follow a load by themselves.
///
/// More is required when something waits too long: as much as arrives, and what waits besides. What comes at once after
/// nothing has come for a while counts as having come all that while: on a busy processor a steady load comes in lumps. A
/// sender that always has something requires all there is. Less is required when for a while much less would have
/// been enough; and when that turns out to have been wrong soon afterwards, the next time only after twice as
/// long a while, so that a load that comes and goes is not followed up and down.
#[derive(Clone, Debug)]
pub struct Demand {
    /// What there ever may be, and what there is, in bits per second.
    most: u64,
    all: u64,
    /// What is required, in bits per second.
    asked: u64,
    seen: Waiting,
    /// Bytes that arrived in each slot; `slot` is the number of the newest.
    slots: [u64; SLOTS],
    slot: u64,
    /// Since when something waits too long, without a break.
    late_since: Option<Time>,
    /// When to see whether it needs more.
    look: Option<Time>,
    /// Of the interval that goes on: when it began, what arrived, whether something waited too long for long.
    interval: (Time, u64, bool),
    /// The largest load of an interval since `since`, in bits per second.
    peak: u64,
    since: Time,
    hold: u64,
    lowered: Option<Time>,
}

impl Demand {
    /// For a sender that can have up to `all`, in bits per second, and has nothing to send.
    pub fn new(now: Time, all: u64) -> Self {
        Self {
            most: all,
            all,
            asked: 0,
            seen: Waiting::default(),
            slots: [0; SLOTS],
            slot: now.0 / SLOT,
            late_since: None,
            look: None,
            interval: (now, 0, false),
            peak: 0,
            since: now,
            hold: *HOLD.start(),
            lowered: None,
        }
    }

    /// From now on there is `all`, in bits per second. Who requires as much as that requires all that there ever may be,
    /// so that nothing has to be said when there is more.
    pub fn limit(&mut self, all: u64) {
        self.all = all.min(self.most);
    }

    /// Says what is required, in bits per second, now that `load` waits and may leave at `rate`, in bits per
    /// second. To be asked whenever something was submitted or has left, and at [`Self::next_time`].
    pub fn observe(&mut self, now: Time, load: Waiting, rate: u64) -> u64 {
        let before = self.seen.sent + self.seen.waiting;
        let arrived = (load.sent + load.waiting).saturating_sub(before);
        self.seen = load;
        self.end_interval(now);
        self.count(now, arrived);
        let late = load.for_rate && (load.full || is_late(load.waiting, rate));
        self.interval.1 += arrived;
        self.interval.2 |= self.has_waited(now, late);
        self.look = self.look.filter(|_| late && self.asked < self.all);
        if late && self.asked < self.all {
            let look = *self.look.get_or_insert(now.after(self.patience()));
            if load.full {
                self.raise(now, self.most);
            } else if now >= look {
                self.look = Some(now.after(PATIENCE.0));
                // Who has less than it requires already would get no more.
                if rate >= self.asked {
                    self.raise(now, self.wanted(now, load.waiting));
                }
            }
        }
        self.asked
    }

    fn patience(&self) -> u64 {
        if self.asked == 0 {
            PATIENCE.0
        } else {
            PATIENCE.1
        }
    }

    fn has_waited(&mut self, now: Time, late: bool) -> bool {
        self.late_since = self.late_since.or(Some(now)).filter(|_| late);
        self.late_since
            .is_some_and(|since| now.since(since) >= LASTING)
    }

    /// When to call [`Self::observe`] at the latest; `None` while nothing is required or waits.
    pub fn next_time(&self) -> Option<Time> {
        let interval = self.interval.0.after(INTERVAL);
        let interval = (self.asked > 0).then_some(interval);
        self.look.into_iter().chain(interval).min()
    }

    fn count(&mut self, now: Time, arrived: u64) {
        let slot = now.0 / SLOT;
        if slot >= self.slot + SLOTS as u64 {
            self.slots = [0; SLOTS];
            self.slot = slot;
        }
        while self.slot < slot {
            self.slot += 1;
            self.slots[self.slot as usize % SLOTS] = 0;
        }
        self.slots[self.slot as usize % SLOTS] += arrived;
    }

    /// As fast as it arrives, and as is needed to be rid of what waits beyond a lump; a sixteenth more, as loads vary.
    fn wanted(&self, now: Time, waiting: u64) -> u64 {
        let lump = bytes(self.asked, LUMP);
        let load = self.arrives(now);
        let load = load.saturating_add(per_second(waiting.saturating_sub(lump), DRAIN));
        self.with_some_more(load)
    }

    /// The fastest that anything has arrived lately, in bits per second: since any slot in which something did. What came
    /// then had been coming since the slot before in which something did.
    fn arrives(&self, now: Time) -> u64 {
        let mut fastest = 0;
        // What arrived in slots looked at so far, and when the oldest of them began.
        let mut sum = 0u64;
        let mut oldest = None;
        for back in 0..SLOTS as u64 {
            let Some(slot) = self.slot.checked_sub(back) else {
                break;
            };
            let arrived = self.slots[slot as usize % SLOTS];
            if arrived == 0 {
                continue;
            }
            if sum > 0 {
                let since = Time((slot + 1).saturating_mul(SLOT));
                fastest = fastest.max(per_second(sum, now.since(since).max(SPAN.1)));
            }
            sum = sum.saturating_add(arrived);
            oldest = Some(slot);
        }
        let since = Time(oldest.unwrap_or(self.slot).saturating_mul(SLOT));
        fastest.max(per_second(sum, now.since(since).max(SPAN.0)))
    }

    fn with_some_more(&self, load: u64) -> u64 {
        let step = (self.all / STEPS).max(1);
        let more = load.saturating_add(load / 16);
        let more = more.div_ceil(step).saturating_mul(step);
        if more < self.all { more } else { self.most }
    }

    fn raise(&mut self, now: Time, wanted: u64) {
        if wanted <= self.asked.saturating_add(self.asked / NOTABLE) && wanted < self.most {
            return;
        }
        let soon = |lowered: Time| now.since(lowered) < 4 * self.hold;
        if let Some(lowered) = self.lowered.take() {
            let hold = if soon(lowered) { 2 * self.hold } else { 0 };
            self.hold = hold.clamp(*HOLD.start(), *HOLD.end());
        }
        self.asked = wanted;
        self.begin_hold(now);
    }

    fn begin_hold(&mut self, now: Time) {
        self.since = now;
        self.peak = 0;
    }

    fn end_interval(&mut self, now: Time) {
        let (began, arrived, late) = self.interval;
        let length = now.since(began);
        if length < INTERVAL {
            return;
        }
        self.interval = (now, 0, false);
        let load = per_second(arrived, length);
        self.peak = self.peak.max(if late { self.asked } else { load });
        if now.since(self.since) < self.hold {
            return;
        }
        let enough = self.with_some_more(self.peak);
        if enough < self.asked - self.asked / 8 {
            self.asked = enough;
            self.lowered = Some(now);
        }
        self.begin_hold(now);
    }
}

fn is_late(waiting: u64, rate: u64) -> bool {
    u128::from(waiting) * 8_000_000_000 > u128::from(rate) * u128::from(LATE)
}

/// In bits per second.
fn per_second(bytes: u64, nanos: u64) -> u64 {
    let bits = u128::from(bytes) * 8_000_000_000 / u128::from(nanos.max(1));
    u64::try_from(bits).unwrap_or(u64::MAX)
}

/// What passes at a rate in so many nanoseconds.
fn bytes(rate: u64, nanos: u64) -> u64 {
    let bytes = u128::from(rate) * u128::from(nanos) / 8_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

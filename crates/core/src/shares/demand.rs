//! The rate that the application's load requires: more at once, less after a while.

use crate::contract::Time;

const MILLIS: u64 = 1_000_000;

/// The length of the slots in which arriving bytes are counted, in nanoseconds.
const SLOT: u64 = MILLIS;

/// The number of slots that are remembered.
const SLOTS: usize = 32;

/// The least time over which the rate of arrival is computed, in nanoseconds: at first, and later.
const SPAN: (u64, u64) = (2 * MILLIS, 5 * MILLIS);

/// The wait for the rate beyond which a load waits too long, in nanoseconds.
const LATE: u64 = MILLIS / 2;

/// The time for which a load has to wait too long before more is required, in nanoseconds: if nothing is required yet,
/// and otherwise.
const PATIENCE: (u64, u64) = (MILLIS, 4 * MILLIS);

/// A load whose wait at the required rate is shorter than this is no reason to require more, in nanoseconds: a busy
/// processor lets a load come in lumps of that length.
const LUMP: u64 = 8 * MILLIS;

/// A load that waits too long for this time, without a break, needs all that is required, in nanoseconds. A load that
/// comes in lumps waits now and then, and needs no more than its average.
const LASTING: u64 = 12 * MILLIS;

/// The time in which a waiting load is to leave, in nanoseconds.
const DRAIN: u64 = 10 * MILLIS;

/// The time over which the load is averaged before less is required, in nanoseconds.
const INTERVAL: u64 = 20 * MILLIS;

/// The time for which the load has to be smaller before less is required, in nanoseconds: at least and at most.
const HOLD: core::ops::RangeInclusive<u64> = 100 * MILLIS..=3_200 * MILLIS;

/// More is required only if it is at least one part of this number more.
const NOTABLE: u64 = 8;

/// Requirements are multiples of all there is, divided by this number.
const STEPS: u64 = 256;

/// The load of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waiting {
    /// All bytes of it that have ever left.
    pub sent: u64,
    /// The bytes that have not left yet.
    pub waiting: u64,
    /// Whether it waits for the rate alone, and not for anything else (a full window, say).
    pub for_rate: bool,
    /// Whether so much waits that the application was told to wait.
    pub full: bool,
}

/// Requirements that follow a load by themselves.
///
/// More is required when a load waits too long: the rate of its arrival, and the rate at which the waiting bytes can
/// leave in time. Bytes that come at once after a pause count as having come during the pause: on a busy processor a
/// steady load comes in lumps. A sender that always has something to send requires all there is. Less is required when
/// for a while much less would have been enough; when that turns out to have been wrong soon afterwards, the next while
/// is twice as long, so that a load that comes and goes is not followed up and down.
#[derive(Clone, Debug)]
pub struct Demand {
    /// The most that there ever may be, and what there is now, in bits per second.
    most: u64,
    all: u64,
    /// The requirement, in bits per second.
    asked: u64,
    seen: Waiting,
    /// Bytes that arrived in each slot; `slot` is the number of the newest.
    slots: [u64; SLOTS],
    slot: u64,
    /// The time since which the load has waited too long, without a break.
    late_since: Option<Time>,
    /// The time at which to see whether the load needs more.
    look: Option<Time>,
    /// The current interval: its beginning, the bytes that arrived, and whether the load waited too long for a lasting
    /// time.
    interval: (Time, u64, bool),
    /// The largest load of an interval since `since`, in bits per second.
    peak: u64,
    since: Time,
    hold: u64,
    lowered: Option<Time>,
}

impl Demand {
    /// The demand of a sender that can have up to `all`, in bits per second, and has nothing to send.
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

    /// From now on there is `all`, in bits per second. A sender that requires as much requires all that there ever may
    /// be, so that nothing has to be said when there is more.
    pub fn limit(&mut self, all: u64) {
        self.all = all.min(self.most);
    }

    /// Returns the requirement, in bits per second, now that `load` waits and may leave at `rate`, in bits per second.
    /// To be called whenever something was submitted or has left, and at [`Self::next_time`].
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
                // A sender that already gets less than it requires would get no more.
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

    /// The time at which to call [`Self::observe`] at the latest; `None` while nothing is required or waits.
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

    /// The rate of arrival, and the rate that sends the waiting bytes beyond a lump in time; a sixteenth more, as loads
    /// vary.
    fn wanted(&self, now: Time, waiting: u64) -> u64 {
        let lump = bytes(self.asked, LUMP);
        let load = self.arrives(now);
        let load = load.saturating_add(per_second(waiting.saturating_sub(lump), DRAIN));
        self.with_some_more(load)
    }

    /// The fastest arrival lately, in bits per second: over all times that begin with a slot in which something
    /// arrived. Bytes count as having come since the end of the slot before in which something did.
    fn arrives(&self, now: Time) -> u64 {
        let mut fastest = 0;
        // The bytes that arrived in the slots looked at so far, and the oldest of those slots.
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

/// The bytes that pass at a rate in `nanos` nanoseconds.
fn bytes(rate: u64, nanos: u64) -> u64 {
    let bytes = u128::from(rate) * u128::from(nanos) / 8_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

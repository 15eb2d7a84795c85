//! The obstacles that keep a view from going on though all members are on the ring: an application that hangs, and a
//! standstill of unknown cause.

use rota_core::contract::Time;
use rota_core::mutants::{self, Mutant};

/// Nanoseconds after which an application that asks for nothing hangs: all have waited for it.
const HUNG: u64 = 4_000_000_000;
/// Nanoseconds after which a view in which nothing moves, though something is on its way, may not have the right members.
const STUCK: u64 = 4_000_000_000;
/// The most nanoseconds that count between two calls: this process may have stood still itself.
const AT_ONCE: u64 = 1_500_000_000;
/// The least time between two looks at the progress, in nanoseconds, as a look takes time.
const LOOKS: u64 = 100_000_000;
/// The most doublings of the time after which members are found anew.
const MOST_DOUBLED: u32 = 4;

/// The appetite of the application for deliveries.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Appetite {
    /// The time for which the application has asked for none, in nanoseconds.
    unasked: u64,
    /// Whether the ring was told that the application hangs.
    hangs: bool,
}

/// The progress of the data path, and the time for which it has been the same.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standstill {
    /// The time of the last look at the progress.
    looked_at: Time,
    progress: Option<u64>,
    /// The time for which the progress has been the same, in nanoseconds.
    lasts: u64,
    /// The number of times that members were found anew since something moved.
    times: u32,
}

impl Appetite {
    /// Its invariants.
    pub fn check(&self) {
        assert!(
            !self.hangs || self.unasked >= HUNG,
            "an application hangs that has asked for nothing for long"
        );
    }

    /// So much time has passed since the last call. Returns whether the application hangs, as was not known yet.
    /// Deliveries that it does not take throttle all members. The members do not wait for one that hangs: the ring
    /// beside goes on without this process, and so does the next view.
    pub fn wait(&mut self, passed: u64) -> bool {
        self.unasked += passed.min(AT_ONCE);
        // A change of views waits for it as well.
        let is_new = self.unasked >= HUNG && !self.hangs && !mutants::on(Mutant::V13);
        self.hangs |= is_new;
        is_new
    }

    /// The application asks for a delivery. Returns whether it had hung.
    pub fn on_asked(&mut self) -> bool {
        core::mem::take(self).hangs
    }
}

impl Standstill {
    /// Looks at the progress in the view, if it is time; `None` if there is nothing to wait for, or no view. Returns
    /// whether the members have to be found anew, as nothing moves. A member that some other does not hear may be well
    /// on the ring beside, on which each hears its predecessor only, and keep the view from going on for ever. When
    /// members are found anew, each hears each. Each further time comes later, as it may not help.
    pub fn look(&mut self, now: Time, progress: impl FnOnce() -> Option<u64>) -> bool {
        let passed = now.since(self.looked_at);
        if passed < LOOKS {
            return false;
        }
        self.looked_at = now;
        let progress = progress();
        if progress != self.progress {
            // From one view to the next the progress says nothing.
            if progress.is_some() && self.progress.is_some() {
                self.times = 0;
            }
            (self.progress, self.lasts) = (progress, 0);
            return false;
        }
        self.lasts += passed.min(AT_ONCE);
        let is_late = self.lasts >= STUCK << self.times.min(MOST_DOUBLED);
        // It hides the latter two, which then cost no more than time.
        let is_off = [Mutant::V14, Mutant::F02, Mutant::L05].map(mutants::on);
        let is_stuck = progress.is_some() && is_late && !is_off.contains(&true);
        if is_stuck {
            (self.lasts, self.times) = (0, self.times + 1);
        }
        is_stuck
    }
}

//! The obstacles that keep a view from going on though all members are on the ring: an application that hangs, and a
//! standstill of unknown cause.

use super::engine::{Phase, ViewEngine};
use super::path::DataPath;
use rota_core::contract::{Engine, Time};
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

impl<P: DataPath, E: Engine> ViewEngine<P, E> {
    /// Looks whether the application hangs. Deliveries that it does not take throttle all members. The members do not
    /// wait for one that hangs: the ring beside goes on without this process, and so does the next view.
    pub(super) fn mind_application(&mut self, now: Time) {
        let appetite = &mut self.appetite;
        appetite.unasked += now.since(self.now).min(AT_ONCE);
        // A change of views waits for it as well.
        if appetite.unasked >= HUNG && !appetite.hangs && !mutants::on(Mutant::V13) {
            appetite.hangs = true;
            self.ring.application_hangs(now, true);
        }
    }

    /// Notes that the application asks for a delivery.
    pub(super) fn on_asked(&mut self) {
        if core::mem::take(&mut self.appetite).hangs {
            self.ring.application_hangs(self.now, false);
        }
    }

    /// Has the members found anew if nothing moves in the view. A member that some other does not hear may be well on
    /// the ring beside, on which each hears its predecessor only, and keep the view from going on for ever. When
    /// members are found anew, each hears each. Each further time comes later, as it may not help.
    pub(super) fn mind_progress(&mut self, now: Time) {
        let still = &mut self.standstill;
        let passed = now.since(still.looked_at);
        if passed < LOOKS {
            return;
        }
        still.looked_at = now;
        let operating = matches!(self.phase, Phase::Operating(_));
        let progress = self.path.progress().filter(|_| operating);
        if progress != still.progress {
            // From one view to the next the progress says nothing.
            if progress.is_some() && still.progress.is_some() {
                still.times = 0;
            }
            (still.progress, still.lasts) = (progress, 0);
            return;
        }
        still.lasts += passed.min(AT_ONCE);
        let is_late = still.lasts >= STUCK << still.times.min(MOST_DOUBLED);
        if progress.is_some() && is_late && !mutants::on(Mutant::V14) {
            (still.lasts, still.times) = (0, still.times + 1);
            self.counters.stuck += 1;
            self.ring.look_again(now);
        }
    }
}

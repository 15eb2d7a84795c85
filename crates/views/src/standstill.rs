//! What keeps a view from going on though all members are on the ring: an application that hangs, and a standstill of which nobody
//! knows why.

use super::engine::{Phase, ViewEngine};
use super::path::DataPath;
use rota_core::contract::{Engine, Time};
use rota_core::mutants::{self, Mutant};

/// Nanoseconds after which an application that asks for nothing hangs: all have waited for it.
const HUNG: u64 = 4_000_000_000;
/// Nanoseconds after which a view in which nothing moves, though something is on its way, may not have the right members.
const STUCK: u64 = 4_000_000_000;
/// Between two calls no more of them count: this process may have stood still itself.
const AT_ONCE: u64 = 1_500_000_000;
/// How far everything is is looked for no more often than this, in nanoseconds, as it takes time.
const LOOKS: u64 = 100_000_000;
/// The time after which members are found anew doubles so often.
const MOST_DOUBLED: u32 = 4;

/// Whether the application asks for deliveries.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Appetite {
    /// For how long it has not, in nanoseconds.
    unasked: u64,
    /// The ring was told that it hangs.
    hangs: bool,
}

/// How far the data path is, and since when.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standstill {
    /// When that was looked for.
    looked_at: Time,
    progress: Option<u64>,
    /// For how long it has been there, in nanoseconds.
    lasts: u64,
    /// How often members were found anew since something moved.
    times: u32,
}

impl<P: DataPath, E: Engine> ViewEngine<P, E> {
    /// What the application does not take throttles all members. One that hangs is not waited for: the ring beside goes on without this
    /// process, and so does the next view.
    pub(super) fn mind_application(&mut self, now: Time) {
        let appetite = &mut self.appetite;
        appetite.unasked += now.since(self.now).min(AT_ONCE);
        // A change of views waits for it as well.
        if appetite.unasked >= HUNG && !appetite.hangs && !mutants::on(Mutant::V13) {
            appetite.hangs = true;
            self.ring.application_hangs(now, true);
        }
    }

    /// The application asks for a delivery.
    pub(super) fn on_asked(&mut self) {
        if core::mem::take(&mut self.appetite).hangs {
            self.ring.application_hangs(self.now, false);
        }
    }

    /// A member that some other does not hear may be well on the ring beside, on which each hears its predecessor only, and keep the view
    /// from going on for ever. When members are found anew each hears each. The next time later, as it may help nothing.
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
            // From one view to the next it says nothing.
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

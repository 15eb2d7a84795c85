//! Values that are late with multicast: the first that is missing here, and the first own one that was not proposed.

use super::super::config::Timeouts;
use super::super::context::Context;
use crate::Instance;
use rota_core::contract::Time;
use rota_core::mutants::{self, Mutant};

/// A value that was sent before something that has come is waited for a heartbeat divided by this.
const SHORT: u64 = 64;
/// Likewise a value behind which nothing has come.
const LONG: u64 = 6;

/// The time for a value behind which nothing has come, if it takes so long on its way.
pub fn long_wait(patience: &Timeouts, takes: u64) -> u64 {
    patience.heartbeat / LONG + takes.min(patience.silence)
}

/// The time for a value that was sent before something that has come.
pub const fn short_wait(patience: &Timeouts) -> u64 {
    patience.heartbeat / SHORT
}

/// The time in which losses may be the same one.
pub const fn same_loss(patience: &Timeouts) -> u64 {
    patience.heartbeat / LONG
}

/// A value that has not come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lack {
    /// The value of a proposal.
    Of(Instance),
    /// The next value of the process at this place, at the coordinator: its counter.
    Next(usize, u64),
}

/// The first missing value.
#[derive(Clone, Copy, Debug)]
struct Lacking {
    lack: Lack,
    /// The time at which it is asked for.
    at: Time,
    /// The time that the last question is given, in nanoseconds; 0 if there was none.
    pause: u64,
}

/// The first own value that was not proposed.
#[derive(Clone, Copy, Debug)]
struct Unproposed {
    counter: u64,
    /// The time at which it is sent to the coordinator alone.
    at: Time,
    /// The last pause, in nanoseconds, which doubles each time.
    pause: u64,
}

/// See the module's page.
#[derive(Debug, Default)]
pub struct LateValues {
    lack: Option<Lacking>,
    own: Option<Unproposed>,
}

impl LateValues {
    /// Takes the first missing value, if there is one, and the time for which it is waited for.
    pub fn watch_lack(&mut self, now: Time, lack: Option<(Lack, u64)>) {
        self.lack = match (self.lack, lack) {
            (Some(old), Some((new, wait))) if old.lack == new => {
                let sooner = old.at.min(now.after(wait));
                let at = if old.pause > 0 { old.at } else { sooner };
                Some(Lacking { at, ..old })
            }
            (_, Some((lack, wait))) if !mutants::on(Mutant::U28) => Some(Lacking {
                lack,
                at: now.after(wait),
                pause: 0,
            }),
            _ => None,
        };
    }

    /// Takes the counter of the first own value, if one waits for its proposal, and the time for which that is waited
    /// for.
    pub fn watch_own(&mut self, now: Time, first: Option<u64>, wait: u64) {
        self.own = match (self.own, first) {
            (Some(old), Some(first)) if old.counter == first => Some(old),
            (_, Some(counter)) => Some(Unproposed {
                counter,
                at: now.after(wait),
                pause: wait,
            }),
            (_, None) => None,
        };
    }

    /// What was missing is named again.
    pub const fn forget_lack(&mut self) {
        self.lack = None;
    }

    /// The time of the next step.
    pub fn next_time(&self) -> Option<Time> {
        let lack = self.lack.map(|lacking| lacking.at);
        let own = self.own.map(|own| own.at);
        lack.into_iter().chain(own).min()
    }

    /// The missing value that is to be asked for by now; it is asked for again after twice as long.
    pub fn ask(&mut self, cx: &Context) -> Option<Lack> {
        let patience = cx.settings.patience;
        let lacking = self.lack.as_mut().filter(|lacking| lacking.at <= cx.now)?;
        let least = patience.heartbeat / LONG;
        lacking.pause = (2 * lacking.pause).clamp(least, patience.heartbeat);
        lacking.at = cx.now.after(lacking.pause);
        Some(lacking.lack)
    }

    /// Whether the first own value is to go to the coordinator alone by now.
    pub fn is_own_due(&self, now: Time) -> bool {
        self.own.is_some_and(|own| own.at <= now)
    }

    /// The own value with this counter goes there; and again after twice as long.
    pub fn on_own_sent(&mut self, cx: &Context, counter: u64) {
        let before = self.own.map_or(0, |own| own.pause);
        let pause = (2 * before).min(cx.settings.patience.silence);
        self.own = Some(Unproposed {
            counter,
            at: cx.now.after(pause),
            pause,
        });
    }
}

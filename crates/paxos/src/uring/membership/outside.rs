//! The waits of a process outside the ring: until it asks to be taken in, and until it stands itself.

use super::super::context::Context;
use super::{MOST_PUT_OFF, MOST_WAITS};
use rota_core::contract::Time;
use rota_core::mutants::{self, Mutant};

/// See the module's page.
#[derive(Debug, Default)]
pub struct Outside {
    /// The time at which it asks to be taken in.
    join: Time,
    /// The wait for that, as a multiple of the retry time: 0 at first, then 1, and doubled each time.
    waits: u64,
    /// The time at which it stands itself, if nobody coordinates.
    stand: Time,
}

impl Outside {
    /// The time at which it asks to be taken in.
    pub const fn joins_at(&self) -> Time {
        self.join
    }

    /// The time at which it stands itself, if nobody coordinates.
    pub const fn stands_at(&self) -> Time {
        self.stand
    }

    /// Puts that off until this time.
    pub const fn stand_at(&mut self, at: Time) {
        self.stand = at;
    }

    /// It is not in the newest configuration. `was_in`: it was in the one before; `place`: among the acceptors;
    /// `random`: a number below the retry time.
    pub fn begin(&mut self, cx: &Context, was_in: bool, (place, random): (u64, u64)) {
        let patience = cx.settings.patience;
        let join = cx.now.after(self.waits * patience.retry);
        // A process that waits already does not begin anew with each configuration of the others.
        self.join = match was_in || mutants::on(Mutant::U103) {
            true => join,
            false => join.min(self.join),
        };
        let waits = self.waits.min(MOST_PUT_OFF) * patience.retry;
        let wait = patience.silence / 2 + place * patience.retry / 2 + waits + random;
        self.stand = cx.now.after(wait);
    }

    /// Sets the wait of this process until it is taken in: longer each time that it is left out soon, and as at first
    /// when it was in for long. The time that others were together without it says nothing.
    pub fn wait_longer(&mut self, was_in: bool, is_out: bool, stays: bool) {
        let forgets = (stays && was_in) || mutants::on(Mutant::U85);
        if forgets {
            self.waits = 0;
        } else if was_in && is_out {
            self.waits = (2 * self.waits).clamp(1, MOST_WAITS);
        }
    }

    /// It has asked to be taken in: sets the time at which it asks again.
    pub fn asked_to_join(&mut self, cx: &Context) {
        let pause = (self.waits.min(MOST_PUT_OFF) + 1) * cx.settings.patience.retry;
        self.join = cx.now.after(pause);
    }

    /// Its invariants.
    pub fn check(&self) {
        assert!(self.waits <= MOST_WAITS, "no process waits for ever");
    }
}

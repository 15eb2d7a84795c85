//! The reasons why a process says nothing for a while, so that no other waits for it: its application is too far behind
//! or hangs, or nobody hears it or it loses what it is sent. The others give a silent process up and go on without it;
//! if it went on agreeing with them, they would wait for its part of each commit token.

use core::hash::Hasher;

use rota_core::contract::Time;
use rota_core::fingerprint::Fingerprint;
use rota_core::mutants::{self, Mutant};

/// Rings and configurations that an application may be behind: a process whose application takes nothing stays outside
/// rather than keep more of them, and says nothing. If it went on agreeing with others, they would wait for its part of
/// each commit token, and have no ring either.
const MAX_STAGES: usize = 64;
/// Rings and configurations with which such a process comes back: it takes more than one ring to be with the others
/// again.
const FEW_STAGES: usize = MAX_STAGES / 2;

/// The longest silence of a process that is mute, in token-loss times, as a power of two.
const MOST_MUTE: u32 = 6;

/// Token-loss times after which an application hangs that has taken nothing while all waited for it. An application
/// that is only slow slows the others down, and they wait for it.
const HUNG: u64 = 16;

/// The reasons of one process for silence.
#[derive(Clone, Debug, Default)]
pub(super) struct Silence {
    /// The application is so far behind that there is no room for more rings.
    lags: bool,
    /// The time since which the ring has waited for the application, which has taken nothing since.
    held_since: Option<Time>,
    /// Set while the application hangs. True: this process was told; false: it found out itself.
    hangs: Option<bool>,
    /// This process is mute, or loses much, until this time.
    mute_until: Time,
    /// The number of times in succession that this was so.
    times_mute: u32,
}

impl Silence {
    /// Whether the process says nothing.
    pub fn is_on(&self, now: Time) -> bool {
        let lags = self.lags && !mutants::on(Mutant::M43);
        lags || self.hangs.is_some() || now < self.mute_until
    }

    /// Whether the process may agree to a ring.
    pub fn allows_a_ring(&self, now: Time) -> bool {
        !self.lags && self.hangs.is_none() && now >= self.mute_until
    }

    /// Takes note of the number of rings and configurations that the application is behind. Returns whether it has
    /// caught up with this.
    pub const fn on_stages(&mut self, stages: usize) -> bool {
        if stages >= MAX_STAGES {
            self.lags = true;
            return false;
        }
        let caught_up = self.lags && stages <= FEW_STAGES;
        self.lags &= !caught_up;
        caught_up
    }

    /// Takes note of whether the ring waits for the application. Returns whether it has waited so long that the
    /// application hangs.
    pub fn on_held(&mut self, now: Time, is_held: bool, token_loss: u64) -> bool {
        if !is_held {
            self.held_since = None;
            return false;
        }
        let since = *self.held_since.get_or_insert(now);
        now.since(since) >= HUNG * token_loss && !mutants::on(Mutant::M51)
    }

    /// Whether the application hangs.
    pub const fn hangs(&self) -> bool {
        self.hangs.is_some()
    }

    /// Begins a silence, as the application hangs. `told`: this process was told, and has not found out itself.
    pub const fn begin_as_hung(&mut self, told: bool) {
        self.hangs = Some(told);
        self.held_since = None;
    }

    /// Takes note that the application has taken a delivery, or (`told`) that the layer above, which told that it
    /// hangs, tells that it does not. Returns whether a silence ends with this.
    pub fn on_taken(&mut self, told: bool) -> bool {
        self.held_since = None;
        self.hangs.take_if(|by| *by == told).is_some()
    }

    /// Begins a silence of a process that is mute or loses much, longer each time, so that the others can go on.
    pub fn begin_as_mute(&mut self, now: Time, token_loss: u64) {
        let shift = (3 + 2 * self.times_mute).min(MOST_MUTE);
        self.times_mute = self.times_mute.saturating_add(1);
        self.mute_until = now.after(token_loss << shift);
    }

    /// Whether the process was mute, or lost much, lately.
    pub const fn was_mute(&self) -> bool {
        self.times_mute > 0
    }

    /// Forgets that it was.
    pub const fn forget_mute(&mut self) {
        self.times_mute = 0;
    }

    /// The time until which the process is mute, if it is.
    pub fn mute_until(&self, now: Time) -> Option<Time> {
        Some(self.mute_until).filter(|until| *until > now)
    }

    /// Feeds `print` with all reasons.
    pub fn fingerprint(&self, print: &mut Fingerprint<'_, impl Hasher>) {
        let Self {
            lags,
            held_since,
            hangs,
            mute_until,
            times_mute,
        } = self;
        print.add((lags, hangs, times_mute));
        print.past(*held_since);
        print.due(*mute_until);
    }

    /// Its invariants.
    pub fn check(&self, now: Time) {
        assert!(
            self.held_since.is_none_or(|since| since <= now),
            "waits begin in the past"
        );
        assert!(
            self.mute_until == Time(0) || self.times_mute > 0 || now >= self.mute_until,
            "a mute process knows that it is"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOSS: u64 = 1000;

    #[test]
    fn an_application_that_lags_is_waited_for_until_it_has_caught_up_by_half() {
        let mut silence = Silence::default();
        assert!(!silence.on_stages(MAX_STAGES - 1) && silence.allows_a_ring(Time(0)));
        assert!(!silence.on_stages(MAX_STAGES) && silence.is_on(Time(0)));
        assert!(!silence.on_stages(FEW_STAGES + 1) && silence.is_on(Time(0)));
        assert!(silence.on_stages(FEW_STAGES) && !silence.is_on(Time(0)));
        assert!(!silence.on_stages(0), "only once");
    }

    #[test]
    fn an_application_hangs_that_has_held_the_ring_for_long() {
        let mut silence = Silence::default();
        let late = Time(5 + HUNG * LOSS);
        assert!(!silence.on_held(Time(5), true, LOSS));
        assert!(!silence.on_held(Time(4 + HUNG * LOSS), true, LOSS));
        assert!(silence.on_held(late, true, LOSS));
        assert!(!silence.on_taken(false), "it was not silent yet");
        assert!(!silence.on_held(late, true, LOSS), "it has taken something");
        silence.check(late);
    }

    #[test]
    fn a_silence_for_the_application_ends_by_the_word_of_the_layer_that_began_it() {
        let mut silence = Silence::default();
        silence.begin_as_hung(true);
        assert!(!silence.on_taken(false) && silence.hangs());
        assert!(silence.on_taken(true) && !silence.hangs());
    }

    #[test]
    fn a_mute_process_is_silent_for_longer_each_time() {
        let mut silence = Silence::default();
        let mut lengths = [0; 4];
        for length in &mut lengths {
            silence.begin_as_mute(Time(0), LOSS);
            let until = silence.mute_until(Time(0)).expect("silent");
            *length = until.since(Time(0)) / LOSS;
        }
        assert_eq!(lengths, [8, 32, 64, 64]);
        silence.forget_mute();
        silence.begin_as_mute(Time(0), LOSS);
        assert_eq!(silence.mute_until(Time(0)), Some(Time(8 * LOSS)));
        assert_eq!(silence.mute_until(Time(8 * LOSS)), None);
    }
}

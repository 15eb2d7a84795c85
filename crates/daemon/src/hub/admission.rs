//! The admission of clients: how fast they come in, and how long they may take to come in or to go.

use std::collections::VecDeque;

use rota_core::contract::Time;

use super::pace::Pace;
use crate::config::DaemonConfig;

pub(super) use super::pace::AT_ONCE;

/// The time between two sweeps for clients that take too long to come in or to go.
const SWEEP_NANOS: u64 = 500_000_000;

/// The pause before another attempt to let clients in, after one that could not be let in.
const AGAIN_NANOS: u64 = 50_000_000;

/// The bounds of the admission.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// The most sessions whose clients have not said who they are.
    handshakes: usize,
    /// The time that one of them may take, in nanoseconds.
    patience: u64,
}

impl Limits {
    const fn of(config: &DaemonConfig) -> Self {
        Self {
            handshakes: config.handshakes,
            patience: config.handshake_ms.saturating_mul(1_000_000),
        }
    }
}

/// When clients are let in, and the sessions of those that have not come in or not gone yet.
#[derive(Debug)]
pub(super) struct Admission {
    limits: Limits,
    pace: Pace,
    accept_at: Time,
    /// No client is let in just now, though some may wait.
    is_held: bool,
    /// Sessions whose clients have not said who they are, or that are going, by key and number; oldest first. Some may
    /// have come in or ended since.
    unsettled: VecDeque<(usize, u64)>,
    sweep_at: Time,
}

impl Admission {
    pub fn new(config: &DaemonConfig) -> Self {
        Self {
            limits: Limits::of(config),
            pace: Pace::default(),
            accept_at: Time(0),
            is_held: false,
            unsettled: VecDeque::new(),
            sweep_at: Time(0),
        }
    }

    /// Other settings are in force from now on.
    pub const fn reconfigure(&mut self, config: &DaemonConfig) {
        self.limits = Limits::of(config);
    }

    /// Whether clients are let in now: at most [`AT_ONCE`], and then [`Self::came`] or [`Self::try_later`].
    pub fn begins(&mut self, now: Time) -> bool {
        let begins = now >= self.accept_at;
        self.is_held &= !begins;
        begins
    }

    /// So many clients have come in: the next ones wait if that was much.
    pub fn came(&mut self, count: u64, now: Time) {
        self.accept_at = self.pace.take(now, count);
        self.is_held = self.accept_at > now;
    }

    /// A client may wait that cannot be let in just now.
    pub const fn try_later(&mut self, now: Time) {
        self.accept_at = now.after(AGAIN_NANOS);
        self.is_held = true;
    }

    /// No client is let in just now, though some may wait.
    pub const fn is_held(&self) -> bool {
        self.is_held
    }

    /// The session that has to go for another client to come in, if any has to: the one that has been unsettled for
    /// longest.
    pub fn make_room(&mut self, is_unsettled: impl Fn((usize, u64)) -> bool) -> Option<usize> {
        if self.unsettled.len() >= self.limits.handshakes {
            self.unsettled.retain(|session| is_unsettled(*session));
        }
        let is_full = self.unsettled.len() >= self.limits.handshakes;
        let oldest = self.unsettled.pop_front_if(|_| is_full);
        oldest.map(|(key, _)| key)
    }

    /// A session has begun, and its client has to say who it is.
    pub fn begin(&mut self, session: (usize, u64), now: Time) {
        if self.unsettled.is_empty() {
            self.sweep_at = now.after(SWEEP_NANOS);
        }
        self.unsettled.push_back(session);
    }

    /// A session is going: its client may take what it is sent before it is gone.
    pub fn end(&mut self, session: (usize, u64)) {
        self.unsettled.push_back(session);
    }

    /// The sessions that have taken too long to come in or to go; a session may be named twice. `since` is the time at
    /// which an unsettled session began to come or to go.
    pub fn sweep(
        &mut self,
        now: Time,
        since: impl Fn((usize, u64)) -> Option<Time>,
    ) -> Vec<(usize, u64)> {
        let mut late = Vec::new();
        if now < self.sweep_at {
            return late;
        }
        self.sweep_at = now.after(SWEEP_NANOS);
        let patience = self.limits.patience;
        self.unsettled.retain(|session| match since(*session) {
            None => false,
            Some(since) if now.since(since) < patience => true,
            Some(_) => {
                late.push(*session);
                false
            }
        });
        late
    }

    /// The next time at which clients are let in, or swept.
    pub fn next_wake(&self) -> Option<Time> {
        let sweep = (!self.unsettled.is_empty()).then_some(self.sweep_at);
        let accept = self.is_held.then_some(self.accept_at);
        sweep.into_iter().chain(accept).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: u64 = 1_000_000;

    fn admission(handshakes: usize) -> Admission {
        let config = DaemonConfig {
            handshakes,
            handshake_ms: 1000,
            ..DaemonConfig::default()
        };
        Admission::new(&config)
    }

    #[test]
    fn the_oldest_goes_when_there_are_too_many_that_have_not_come_in() {
        let mut admission = admission(2);
        admission.begin((1, 1), Time(0));
        assert_eq!(admission.make_room(|_| true), None);
        admission.begin((2, 2), Time(0));
        // One of them has come in since.
        assert_eq!(admission.make_room(|session| session != (1, 1)), None);
        admission.begin((3, 3), Time(0));
        assert_eq!(admission.make_room(|_| true), Some(2));
    }

    #[test]
    fn a_session_has_its_time_from_when_it_began_to_come_or_to_go() {
        let mut admission = admission(8);
        for key in 1..4 {
            admission.begin((key, key as u64), Time(0));
        }
        let since = |(key, _): (usize, u64)| match key {
            1 => None,
            2 => Some(Time(0)),
            _ => Some(Time(600 * MILLI)),
        };
        assert_eq!(admission.next_wake(), Some(Time(500 * MILLI)));
        assert_eq!(admission.sweep(Time(499 * MILLI), since), []);
        assert_eq!(admission.sweep(Time(999 * MILLI), since), []);
        assert_eq!(admission.sweep(Time(1499 * MILLI), since), [(2, 2)]);
        assert_eq!(admission.sweep(Time(2000 * MILLI), since), [(3, 3)]);
        assert_eq!(admission.next_wake(), None);
    }

    #[test]
    fn after_a_client_that_could_not_come_in_the_next_ones_wait_a_while() {
        let mut admission = admission(8);
        assert!(admission.begins(Time(7)));
        admission.try_later(Time(7));
        assert!(admission.is_held() && !admission.begins(Time(8)));
        assert_eq!(admission.next_wake(), Some(Time(7 + AGAIN_NANOS)));
        assert!(admission.begins(Time(7 + AGAIN_NANOS)));
        assert!(!admission.is_held());
        admission.came(1, Time(7 + AGAIN_NANOS));
        assert!(!admission.is_held());
    }
}

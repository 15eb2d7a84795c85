//! What daemons have done in the last minutes, and what is looked at.

use std::collections::VecDeque;

use rota_daemon::explain::Seen;

use super::table::{Interval, lost, sent};

/// Intervals that are kept: five minutes at one a second.
const KEPT: usize = 300;

/// What a daemon has done in one interval. What is not known is 0.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Sample {
    /// Messages a second that its clients were told.
    pub told: f64,
    /// Messages a second that it gave its engine.
    pub sent: f64,
    /// How long the token was away, on average, in microseconds.
    pub round_us: f64,
    /// Packets a second that came only when asked for.
    pub lost: f64,
    /// Bytes that wait for its clients.
    pub waiting: f64,
}

impl Sample {
    fn of(seen: &Seen) -> Self {
        let seconds = seen.micros() as f64 / 1e6;
        let told = seen.after.told().saturating_sub(seen.before.told());
        Self {
            told: told as f64 / seconds,
            sent: sent(seen) as f64 / seconds,
            round_us: seen.rotations().1,
            lost: lost(seen) as f64 / seconds,
            waiting: seen.after.queues.client_bytes as f64,
        }
    }
}

/// A key that means something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key {
    /// The daemon above is looked at, or the one below.
    Up,
    Down,
    /// Nothing moves, or all does again.
    Pause,
    /// Intervals are half as long, or twice.
    Faster,
    Slower,
    /// What was kept is forgotten.
    Clear,
}

/// All that the screen shows.
pub struct History {
    /// The newest interval.
    pub newest: Option<Interval>,
    samples: Vec<VecDeque<Sample>>,
    /// The daemon that is looked at, by its place.
    pub selected: usize,
    /// Nothing moves.
    pub paused: bool,
    /// The length of an interval, in milliseconds.
    pub interval_ms: u64,
}

impl History {
    /// Of so many daemons.
    pub fn new(daemons: usize, interval_ms: u64) -> Self {
        Self {
            newest: None,
            samples: vec![VecDeque::new(); daemons],
            selected: 0,
            paused: false,
            interval_ms,
        }
    }

    /// Takes an interval in, unless nothing is to move.
    pub fn take(&mut self, interval: Interval) {
        if self.paused {
            return;
        }
        for (samples, seen) in self.samples.iter_mut().zip(&interval.seen) {
            if samples.len() == KEPT {
                samples.pop_front();
            }
            // One that did not answer has a gap.
            samples.push_back(seen.as_ref().map(Sample::of).unwrap_or_default());
        }
        self.newest = Some(interval);
    }

    /// Does what a key says.
    pub fn press(&mut self, key: Key) {
        let last = self.samples.len().saturating_sub(1);
        match key {
            Key::Up => self.selected = self.selected.saturating_sub(1),
            Key::Down => self.selected = (self.selected + 1).min(last),
            Key::Pause => self.paused = !self.paused,
            Key::Faster => self.interval_ms = (self.interval_ms / 2).max(100),
            Key::Slower => self.interval_ms = (self.interval_ms * 2).min(60_000),
            Key::Clear => self.samples.iter_mut().for_each(VecDeque::clear),
        }
    }

    /// One number of the selected daemon, over time: the newest last, at most `width` of them.
    pub fn line(&self, of: impl Fn(&Sample) -> f64, width: usize) -> Vec<f64> {
        let samples = self.samples.get(self.selected);
        let newest = samples.into_iter().flatten().rev().take(width).map(of);
        let mut line: Vec<f64> = newest.collect();
        line.reverse();
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(told: u64) -> Interval {
        let mut seen = Seen::default();
        seen.after.uptime_us = 500_000;
        seen.after.clients = vec![rota_daemon::ClientStatus {
            messages: told,
            ..rota_daemon::ClientStatus::default()
        }];
        Interval::of(Vec::new(), vec![Some(seen), None])
    }

    #[test]
    fn the_last_minutes_are_kept_and_a_silent_daemon_has_a_gap() {
        let mut history = History::new(2, 1000);
        for told in 0..400 {
            history.take(interval(told));
        }
        let line = history.line(|sample| sample.told, 1000);
        assert_eq!((line.len(), line[0], line[KEPT - 1]), (KEPT, 200.0, 798.0));
        assert_eq!(history.line(|sample| sample.told, 2), [796.0, 798.0]);
        history.press(Key::Down);
        assert_eq!(history.line(|sample| sample.told, 2), [0.0, 0.0]);
    }

    #[test]
    fn keys_move_pause_and_change_the_pace_within_bounds() {
        let mut history = History::new(2, 1000);
        for _ in 0..3 {
            history.press(Key::Down);
        }
        assert_eq!(history.selected, 1);
        for _ in 0..3 {
            history.press(Key::Up);
        }
        assert_eq!(history.selected, 0);
        history.press(Key::Pause);
        history.take(interval(5));
        assert!(history.newest.is_none() && history.line(|sample| sample.told, 9).is_empty());
        history.press(Key::Pause);
        history.take(interval(5));
        assert_eq!(history.line(|sample| sample.told, 9), [10.0]);
        history.press(Key::Clear);
        assert!(history.line(|sample| sample.told, 9).is_empty());
        for (key, end) in [(Key::Faster, 100), (Key::Slower, 60_000)] {
            for _ in 0..20 {
                history.press(key);
            }
            assert_eq!(history.interval_ms, end);
        }
    }
}

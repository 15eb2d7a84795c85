//! The measurements of one kind of work.

use std::time::Duration;

use serde::Serialize;

/// See the module's page.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Figures {
    /// The number of operations.
    pub count: u64,
    /// A second.
    pub rate: u64,
    /// Half took no longer, in microseconds.
    pub p50: u64,
    /// Ninety-nine of a hundred did not.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

impl Figures {
    /// Of what took so long each, in so many seconds.
    pub fn of(took: impl Iterator<Item = Duration>, seconds: f64) -> Self {
        let mut all: Vec<u64> = took.map(|took| took.as_micros() as u64).collect();
        all.sort_unstable();
        let at = |part: f64| {
            let at = (all.len() as f64 * part) as usize;
            all.get(at).or(all.last()).copied().unwrap_or(0)
        };
        Self {
            count: all.len() as u64,
            rate: (all.len() as f64 / seconds) as u64,
            p50: at(0.5),
            p99: at(0.99),
            max: at(1.0),
        }
    }
}

/// The longest time between two answers, which came at these times.
pub fn longest_silence(at: impl Iterator<Item = Duration>, end: Duration) -> Duration {
    let mut at: Vec<Duration> = at.chain([end]).collect();
    at.sort_unstable();
    let gaps = at.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
    gaps.max().unwrap_or_default()
}

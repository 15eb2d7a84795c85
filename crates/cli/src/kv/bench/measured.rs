//! The measurements of a benchmark.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rota_bench::Latencies;

use super::workload::Work;

/// Of all clients.
#[derive(Debug, Default)]
pub struct Measured {
    /// The times of each kind of work.
    pub took: BTreeMap<Work, Latencies>,
    /// The number of requests that were answered with an error.
    pub refused: u64,
    /// The first of those.
    pub error: Option<String>,
    /// Connections that ended, or could not be made.
    pub broken: u64,
    /// Keys that were read and not there.
    pub missing: u64,
    /// The time of the last answer, and the longest time without one.
    last: Option<Instant>,
    /// The longest time between two answers.
    pub silence: Duration,
}

impl Measured {
    /// Something was done.
    pub fn done(&mut self, work: Work, took: Duration) {
        let of = self.took.entry(work).or_default();
        of.record(took.as_nanos() as u64);
        let now = Instant::now();
        if let Some(last) = self.last.replace(now) {
            self.silence = self.silence.max(now - last);
        }
    }

    /// Something was answered with an error.
    pub fn refused(&mut self, error: &str) {
        self.refused += 1;
        self.error.get_or_insert_with(|| error.to_owned());
    }
}

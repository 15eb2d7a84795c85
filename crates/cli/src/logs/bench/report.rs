//! The measurements of a benchmark, and its report.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use rota_bench::{Latencies, Summary};
use serde::Serialize;

use crate::service::Shown;

/// Of all clients.
#[derive(Debug, Default)]
pub struct Measured {
    /// The times of appends.
    pub took: Latencies,
    /// The times from the request of an entry until readers were told of it.
    pub told: Latencies,
    /// The number of requests that were answered with an error.
    pub refused: u64,
    /// The first of those.
    error: Option<String>,
    /// Connections that ended, or could not be made.
    pub broken: u64,
    last: Option<Instant>,
    silence: Duration,
}

impl Measured {
    /// Something was appended.
    pub fn done(&mut self, took: Duration) {
        self.took.record(took.as_nanos() as u64);
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

/// Of all.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    seconds: f64,
    bytes: u32,
    appends: u64,
    /// A second.
    rate: f64,
    latency_us: Option<Summary>,
    /// Entries that readers were told, all together.
    told: u64,
    told_latency_us: Option<Summary>,
    /// The number of requests that were answered with an error.
    refused: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Connections that ended, or could not be made.
    broken: u64,
    longest_silence_ms: f64,
    /// The servers', for each append.
    #[serde(skip_serializing_if = "Option::is_none")]
    processor_us: Option<f64>,
}

impl Report {
    /// Of what was measured in a time, with entries of so many bytes.
    pub fn of(measured: &Measured, (bytes, time): (u32, Duration), used: Option<Duration>) -> Self {
        let seconds = time.as_secs_f64();
        let appends = measured.took.len();
        Self {
            seconds,
            bytes,
            appends,
            rate: appends as f64 / seconds,
            latency_us: measured.took.summary(),
            told: measured.told.len(),
            told_latency_us: measured.told.summary(),
            refused: measured.refused,
            error: measured.error.clone(),
            broken: measured.broken,
            longest_silence_ms: measured.silence.as_secs_f64() * 1e3,
            processor_us: used.map(|used| used.as_secs_f64() * 1e6 / appends.max(1) as f64),
        }
    }
}

impl Shown for Report {
    /// Something was done, and nothing was refused.
    fn is_well(&self) -> bool {
        self.refused == 0 && self.broken == 0 && self.appends > 0
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{:<18}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}\n",
            "", "done", "a second", "p50 us", "p99 us", "p99.9 us", "max us"
        );
        for (name, count, latency) in [
            ("appended", self.appends, self.latency_us),
            ("told to readers", self.told, self.told_latency_us),
        ] {
            let of = latency.unwrap_or_default();
            let rate = count as f64 / self.seconds;
            let _ = writeln!(
                text,
                "{name:<18}{count:>10}{rate:>10.0}{:>10.0}{:>10.0}{:>10.0}{:>10.0}",
                of.p50, of.p99, of.p999, of.max
            );
        }
        let _ = write!(
            text,
            "{:.1} MB/s of {} bytes each; longest time without any answer: {:.0} ms",
            self.rate * f64::from(self.bytes) / 1e6,
            self.bytes,
            self.longest_silence_ms
        );
        if let Some(used) = self.processor_us {
            let _ = write!(text, "; {used:.1} us of the servers' processors each");
        }
        if let Some(error) = &self.error {
            let _ = write!(
                text,
                "\n{} were refused, the first with: {error}",
                self.refused
            );
        }
        if self.broken > 0 {
            let _ = write!(text, "\n{} connections ended", self.broken);
        }
        text
    }
}

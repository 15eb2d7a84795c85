//! The report of a benchmark.

use std::fmt::Write as _;
use std::time::Duration;

use rota_bench::Summary;
use serde::Serialize;

use super::measured::Measured;
use crate::service::Shown;

/// Of one kind of work.
#[derive(Clone, Debug, Serialize)]
pub struct Of {
    work: &'static str,
    count: u64,
    /// A second.
    rate: f64,
    latency_us: Option<Summary>,
}

/// Of all.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    workload: &'static str,
    seconds: f64,
    /// A second, of all kinds.
    rate: f64,
    work: Vec<Of>,
    /// The number of requests that were answered with an error.
    refused: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Connections that ended, or could not be made.
    broken: u64,
    /// Keys that were read and not there.
    missing: u64,
    longest_silence_ms: f64,
    /// The servers', for each thing done.
    #[serde(skip_serializing_if = "Option::is_none")]
    processor_us: Option<f64>,
}

impl Report {
    /// Of what was measured in a time.
    pub fn of(
        measured: &Measured,
        workload: &'static str,
        time: Duration,
        used: Option<Duration>,
    ) -> Self {
        let seconds = time.as_secs_f64();
        let count: u64 = measured.took.values().map(rota_bench::Latencies::len).sum();
        let of = measured.took.iter().map(|(work, took)| Of {
            work: work.name(),
            count: took.len(),
            rate: took.len() as f64 / seconds,
            latency_us: took.summary(),
        });
        Self {
            workload,
            seconds,
            rate: count as f64 / seconds,
            work: of.collect(),
            refused: measured.refused,
            error: measured.error.clone(),
            broken: measured.broken,
            missing: measured.missing,
            longest_silence_ms: measured.silence.as_secs_f64() * 1e3,
            processor_us: used.map(|used| used.as_secs_f64() * 1e6 / count.max(1) as f64),
        }
    }
}

impl Shown for Report {
    /// Something was done, and nothing was refused.
    fn is_well(&self) -> bool {
        self.refused == 0 && self.broken == 0 && !self.work.is_empty()
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{:<18}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}\n",
            "", "done", "a second", "p50 us", "p99 us", "p99.9 us", "max us"
        );
        for of in &self.work {
            let latency = of.latency_us.unwrap_or_default();
            let _ = writeln!(
                text,
                "{:<18}{:>10}{:>10.0}{:>10.0}{:>10.0}{:>10.0}{:>10.0}",
                of.work, of.count, of.rate, latency.p50, latency.p99, latency.p999, latency.max
            );
        }
        let _ = write!(
            text,
            "workload {}: {:.0} a second; longest time without any answer: {:.0} ms",
            self.workload, self.rate, self.longest_silence_ms
        );
        if let Some(used) = self.processor_us {
            let _ = write!(text, "; {used:.1} us of the servers' processors each");
        }
        if self.missing > 0 {
            let _ = write!(text, "; {} keys that were read are not there", self.missing);
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

//! Latency histograms: recorded in nanoseconds by each node, merged by the coordinator, shown in
//! microseconds.

use std::io;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Longer latencies are recorded as this: a run never lasts so long.
const LONGEST_NS: u64 = 600_000_000_000;

/// Latencies of one node, or of all nodes after merging.
#[derive(Clone, Debug)]
pub struct Latencies {
    counts: Histogram<u64>,
}

/// A histogram on its way from a node to the coordinator: (nanoseconds, how often).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Counts(pub Vec<(u64, u64)>);

/// The figures of `latency_us`, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// The longest.
    pub max: f64,
    /// Mean of the worst 5 % of all messages. The report (§IV-A4) has that of each sender's.
    pub worst5_mean: f64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

impl Latencies {
    /// An empty histogram: three significant digits, up to ten minutes.
    pub fn new() -> Self {
        let counts = Histogram::new_with_bounds(1, LONGEST_NS, 3)
            .expect("the bounds are constants that the crate accepts");
        Self { counts }
    }

    /// Records one latency.
    pub fn record(&mut self, nanos: u64) {
        self.record_many(nanos, 1);
    }

    /// Records the latency that so many messages had.
    pub fn record_many(&mut self, nanos: u64, count: u64) {
        self.counts
            .saturating_record_n(nanos.clamp(1, LONGEST_NS), count);
    }

    /// The number of recorded latencies.
    pub fn len(&self) -> u64 {
        self.counts.len()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The counts to send to the coordinator.
    pub fn to_counts(&self) -> Counts {
        Counts(
            self.counts
                .iter_recorded()
                .map(|v| (v.value_iterated_to(), v.count_at_value()))
                .collect(),
        )
    }

    /// Adds what a node sent.
    pub fn merge(&mut self, counts: &Counts) {
        for &(value, count) in &counts.0 {
            self.counts
                .saturating_record_n(value.clamp(1, LONGEST_NS), count);
        }
    }

    /// The latency, in microseconds, that this share of all did not exceed; `None` if nothing was recorded.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let nanos = || self.counts.value_at_quantile(share) as f64;
        (!self.is_empty()).then(|| nanos() / 1000.0)
    }

    /// Writes the distribution by percentiles, in microseconds, as HdrHistogram's tools print and plot it.
    ///
    /// # Errors
    /// As of writing.
    pub fn write_percentiles(&self, out: &mut impl io::Write) -> io::Result<()> {
        writeln!(
            out,
            "{:>12} {:>14} {:>10} {:>14}\n",
            "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
        )?;
        let mut total = 0;
        for step in self.counts.iter_quantiles(5) {
            total += step.count_since_last_iteration();
            let (us, share) = (
                step.value_iterated_to() as f64 / 1e3,
                step.quantile_iterated_to(),
            );
            write!(out, "{us:12.3} {share:2.12} {total:10}")?;
            match share < 1.0 {
                true => writeln!(out, " {:14.2}", 1.0 / (1.0 - share))?,
                false => writeln!(out)?,
            }
        }
        let (mean, deviation) = (self.counts.mean() / 1e3, self.counts.stdev() / 1e3);
        writeln!(
            out,
            "#[Mean    = {mean:12.3}, StdDeviation   = {deviation:12.3}]"
        )?;
        let (max, all) = (self.counts.max() as f64 / 1e3, self.len());
        writeln!(out, "#[Max     = {max:12.3}, Total count    = {all:12}]")
    }

    /// The figures; `None` if nothing was recorded.
    pub fn summary(&self) -> Option<Summary> {
        if self.is_empty() {
            return None;
        }
        let us = |nanos: u64| nanos as f64 / 1000.0;
        let quantile = |q: f64| us(self.counts.value_at_quantile(q));
        Some(Summary {
            mean: self.counts.mean() / 1000.0,
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: us(self.counts.max()),
            worst5_mean: self.worst_mean(20) / 1000.0,
        })
    }

    /// Mean of the worst `1/part` of all values (at least one), in nanoseconds.
    fn worst_mean(&self, part: u64) -> f64 {
        let mut wanted = self.len().div_ceil(part).max(1);
        let total = wanted;
        let mut sum = 0.0;
        let counts = self.to_counts().0;
        for &(value, count) in counts.iter().rev() {
            let taken = count.min(wanted);
            sum += value as f64 * taken as f64;
            wanted -= taken;
            if wanted == 0 {
                break;
            }
        }
        sum / total as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Latencies {
        let mut latencies = Latencies::new();
        values.into_iter().for_each(|v| latencies.record(v));
        latencies
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= b * 0.002
    }

    #[test]
    fn worst5_mean_is_the_mean_of_the_worst_twentieth() {
        // 1..=100 us: the worst 5 % are 96..=100, their mean is 98.
        let summary = of((1..=100).map(|us| us * 1000))
            .summary()
            .expect("not empty");
        assert!(close(summary.worst5_mean, 98.0), "{}", summary.worst5_mean);
        assert!(close(summary.p50, 50.0), "{}", summary.p50);
        assert!(close(summary.max, 100.0), "{}", summary.max);
        assert!(close(summary.mean, 50.5), "{}", summary.mean);
    }

    #[test]
    fn worst5_mean_splits_a_bucket_that_holds_more_than_it_needs() {
        let summary = of([1_000; 50].into_iter().chain([9_000; 50]))
            .summary()
            .expect("not empty");
        assert!(close(summary.worst5_mean, 9.0), "{}", summary.worst5_mean);
    }

    #[test]
    fn worst5_mean_of_few_values_is_the_worst_one() {
        let summary = of([1_000, 2_000, 7_000]).summary().expect("not empty");
        assert!(close(summary.worst5_mean, 7.0), "{}", summary.worst5_mean);
    }

    #[test]
    fn merging_equals_recording_in_one_place() {
        let (a, b) = (of((1..500).map(|v| v * 37)), of((1..700).map(|v| v * 91)));
        let mut merged = Latencies::new();
        merged.merge(&a.to_counts());
        merged.merge(&b.to_counts());
        let whole = of((1..500).map(|v| v * 37).chain((1..700).map(|v| v * 91)));
        assert_eq!(merged.to_counts(), whole.to_counts());
        assert_eq!(merged.summary(), whole.summary());
    }

    #[test]
    fn quantiles_are_in_microseconds() {
        let latencies = of((1..=100).map(|us| us * 1000));
        assert!(close(latencies.quantile(0.9).expect("not empty"), 90.0));
        assert_eq!(Latencies::new().quantile(0.9), None);
    }

    #[test]
    fn percentiles_are_written_up_to_the_last_value() {
        let mut text = Vec::new();
        let latencies = of((1..=100).map(|us| us * 1000));
        latencies
            .write_percentiles(&mut text)
            .expect("memory takes it");
        let text = String::from_utf8(text).expect("text");
        let rows = text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        let rows: Vec<Vec<f64>> = rows
            .skip(1)
            .map(|line| {
                line.split_whitespace()
                    .map(|cell| cell.parse().expect("a number"))
                    .collect()
            })
            .collect();
        assert!(
            rows.len() > 10 && rows.windows(2).all(|pair| pair[0][0] <= pair[1][0]),
            "{text}"
        );
        let half = rows.iter().find(|row| row[1] >= 0.5).expect("a median");
        assert!(
            close(half[0], 50.0) && close(half[2], 50.0) && close(half[3], 2.0),
            "{text}"
        );
        let last = rows.last().expect("rows");
        assert!(close(last[0], 100.0) && close(last[2], 100.0), "{text}");
        assert!(text.ends_with("Total count    =          100]\n"), "{text}");
    }

    #[test]
    fn counts_survive_json() {
        let counts = of([5_000, 5_000, 80_000]).to_counts();
        let text = serde_json::to_string(&counts).expect("plain numbers");
        assert_eq!(
            serde_json::from_str::<Counts>(&text).expect("just written"),
            counts
        );
    }

    #[test]
    fn nothing_recorded_has_no_summary() {
        assert_eq!(Latencies::new().summary(), None);
    }
}

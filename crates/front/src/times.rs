//! The time that answers take, as a histogram.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// The upper ends of the buckets, in microseconds.
const ENDS: [u64; 12] = [
    500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000,
    5_000_000,
];

/// A histogram of times.
#[derive(Debug, Default)]
pub struct Times {
    /// The number of times in each bucket.
    parts: [AtomicU64; ENDS.len()],
    count: AtomicU64,
    sum_us: AtomicU64,
}

impl Times {
    /// Counts an answer that has taken this time.
    pub fn add(&self, took: Duration) {
        let took = took.as_micros() as u64;
        let part = ENDS.iter().position(|end| took <= *end);
        if let Some(part) = part.and_then(|part| self.parts.get(part)) {
            part.fetch_add(1, SeqCst);
        }
        self.count.fetch_add(1, SeqCst);
        self.sum_us.fetch_add(took, SeqCst);
    }

    /// For each bucket, its upper end in seconds and the number of times up to that.
    pub fn until(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut sum = 0;
        ENDS.iter().zip(&self.parts).map(move |(end, part)| {
            sum += part.load(SeqCst);
            (*end as f64 / 1e6, sum)
        })
    }

    /// The number of all times, and their sum in seconds.
    pub fn all(&self) -> (u64, f64) {
        let sum = self.sum_us.load(SeqCst) as f64 / 1e6;
        (self.count.load(SeqCst), sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_counted_where_it_belongs_and_in_all_that_follow() {
        let times = Times::default();
        for took in [500, 501, 4_000, 60_000_000] {
            times.add(Duration::from_micros(took));
        }
        let until: Vec<u64> = times.until().map(|(_, count)| count).collect();
        assert_eq!(until, [1, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3]);
        assert_eq!(times.all(), (4, 60.005_001));
    }
}

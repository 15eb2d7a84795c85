//! Measurements of an engine for people and metrics: histograms of times, and counters of the packets of each other
//! member.

/// Times that have a bucket of their own: up to 2⁰, 2¹, … 2²³ µs (8.4 s).
const BOUNDS: usize = 24;

/// A histogram of times, in buckets whose bounds double.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Histogram {
    buckets: [u64; Self::BUCKETS],
    sum_nanos: u64,
}

impl Histogram {
    /// The number of buckets; the last has the times beyond the bounds of all others.
    pub const BUCKETS: usize = BOUNDS + 1;

    /// Counts a time of `nanos` nanoseconds.
    #[inline]
    pub const fn record(&mut self, nanos: u64) {
        let micros = nanos.saturating_sub(1) / 1000;
        let bits = (u64::BITS - micros.leading_zeros()) as usize;
        self.buckets[if bits < BOUNDS { bits } else { BOUNDS }] += 1;
        self.sum_nanos = self.sum_nanos.saturating_add(nanos);
    }

    /// The number of times in each bucket; the first has times up to 1 µs.
    pub const fn buckets(&self) -> &[u64; Self::BUCKETS] {
        &self.buckets
    }

    /// The longest time of a bucket, in microseconds; `None` for the last bucket, and where there is no such bucket.
    pub const fn bound_micros(bucket: usize) -> Option<u64> {
        if bucket < BOUNDS {
            Some(1 << bucket)
        } else {
            None
        }
    }

    /// The number of times.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The sum of all times, in nanoseconds.
    pub const fn sum_nanos(&self) -> u64 {
        self.sum_nanos
    }
}

/// A member's counts of the packets of another member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PeerCounters {
    /// Packets that came only after this member had requested them: they were lost on their way, or late.
    pub repaired: u64,
    /// Packets that this member sent again because a member requested them.
    pub resent: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_belongs_to_the_first_bucket_whose_bound_it_does_not_exceed() {
        for bucket in 0..Histogram::BUCKETS {
            let (below, at) = (bucket.checked_sub(1), Histogram::bound_micros(bucket));
            let smallest = below.and_then(Histogram::bound_micros).unwrap_or(0) * 1000 + 1;
            let largest = at.map_or(u64::MAX, |micros| micros * 1000);
            let mut times = Histogram::default();
            times.record(smallest);
            times.record(largest);
            assert_eq!(times.buckets()[bucket], 2, "{smallest} to {largest}");
            assert_eq!(times.count(), 2);
        }
    }

    #[test]
    fn times_add_up_and_nothing_overflows() {
        let mut times = Histogram::default();
        times.record(0);
        times.record(1500);
        assert_eq!((times.sum_nanos(), times.buckets()[0]), (1500, 1));
        times.record(u64::MAX);
        assert_eq!((times.sum_nanos(), times.count()), (u64::MAX, 3));
    }
}

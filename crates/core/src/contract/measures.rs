//! Measurements of an engine for people and metrics: histograms of times, and counters of the packets of each other
//! member.

/// Times of each doubling have this many buckets, from 4 µs on: below, each microsecond has one.
const STEPS: usize = 4;

/// The number of doublings from 4 µs to 2²³ µs (8.4 s), the longest time that has a bucket of its own.
const DOUBLINGS: usize = 21;

/// The number of buckets with a bound: 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20 … 2²³ µs.
const BOUNDS: usize = STEPS + DOUBLINGS * STEPS;

/// A histogram of times, in buckets of which four share each doubling: a quantile is right to a fifth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Histogram {
    buckets: [u64; Self::BUCKETS],
    sum_nanos: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: [0; Self::BUCKETS],
            sum_nanos: 0,
        }
    }
}

impl Histogram {
    /// The number of buckets; the last has the times beyond the bounds of all others.
    pub const BUCKETS: usize = BOUNDS + 1;

    /// Counts a time of `nanos` nanoseconds.
    #[inline]
    pub const fn record(&mut self, nanos: u64) {
        let micros = nanos.saturating_sub(1) / 1000;
        let bucket = Self::bucket_of(micros);
        self.buckets[if bucket < BOUNDS { bucket } else { BOUNDS }] += 1;
        self.sum_nanos = self.sum_nanos.saturating_add(nanos);
    }

    /// The bucket of times above `micros` and up to one microsecond more, were there enough of them.
    const fn bucket_of(micros: u64) -> usize {
        if micros < STEPS as u64 {
            return micros as usize;
        }
        // The doubling that it is in, and the two bits behind its highest.
        let doubling = micros.ilog2() as usize - 2;
        let step = (micros >> doubling) as usize % STEPS;
        STEPS + doubling * STEPS + step
    }

    /// The number of times in each bucket; the first has times up to 1 µs.
    pub const fn buckets(&self) -> &[u64; Self::BUCKETS] {
        &self.buckets
    }

    /// The longest time of a bucket, in microseconds; `None` for the last bucket, and where there is no such bucket.
    pub const fn bound_micros(bucket: usize) -> Option<u64> {
        if bucket >= BOUNDS {
            None
        } else if bucket < STEPS {
            Some(bucket as u64 + 1)
        } else {
            let (doubling, step) = ((bucket - STEPS) / STEPS, (bucket - STEPS) % STEPS);
            Some(((STEPS + step + 1) as u64) << doubling)
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
    fn four_buckets_share_each_doubling_up_to_eight_seconds() {
        let bounds = (0..13).filter_map(Histogram::bound_micros);
        let expected = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20];
        assert_eq!(bounds.collect::<alloc::vec::Vec<_>>(), expected);
        let last = Histogram::bound_micros(Histogram::BUCKETS - 2);
        assert_eq!(last, Some(1 << 23));
        assert_eq!(Histogram::bound_micros(Histogram::BUCKETS - 1), None);
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

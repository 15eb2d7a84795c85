//! How often what took how long, and with whom: what an engine measures for people and metrics.

/// Times that have a bucket of their own: up to 2⁰, 2¹, … 2²³ µs (8.4 s).
const BOUNDS: usize = 24;

/// How often something took how long, in buckets that double.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Histogram {
    buckets: [u64; Self::BUCKETS],
    sum_nanos: u64,
}

impl Histogram {
    /// Buckets: the last has what took longer than any of the others.
    pub const BUCKETS: usize = BOUNDS + 1;

    /// Something took so many nanoseconds.
    #[inline]
    pub const fn record(&mut self, nanos: u64) {
        let micros = nanos.saturating_sub(1) / 1000;
        let bits = (u64::BITS - micros.leading_zeros()) as usize;
        self.buckets[if bits < BOUNDS { bits } else { BOUNDS }] += 1;
        self.sum_nanos = self.sum_nanos.saturating_add(nanos);
    }

    /// How much each bucket has; the first is what took up to 1 µs.
    pub const fn buckets(&self) -> &[u64; Self::BUCKETS] {
        &self.buckets
    }

    /// The longest time that belongs into a bucket, in microseconds; `None` for the last, and what is none.
    pub const fn bound_micros(bucket: usize) -> Option<u64> {
        if bucket < BOUNDS {
            Some(1 << bucket)
        } else {
            None
        }
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// How long all took together, in nanoseconds.
    pub const fn sum_nanos(&self) -> u64 {
        self.sum_nanos
    }
}

/// What a member has seen of another member's packets, in packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PeerCounters {
    /// Came only after this member had asked for them: they were lost on the way here, or late.
    pub repaired: u64,
    /// This member sent them again because somebody asked.
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

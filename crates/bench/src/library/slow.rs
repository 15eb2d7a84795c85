//! Slow motion: everything outside the processors runs `slow` times slower, and what is measured is told as if it had not.
//!
//! The processors of one host stand for those of all nodes. On links of 1 Gbit/s they are what limits a run; on links of
//! a fiftieth of that they hardly count, and what is left are the protocol and the wire: links, ports and their buffers,
//! hops and time-outs.

use std::time::Duration;

use super::load::Slot;
use super::node::{DRAIN_NS, Measured};
use crate::hist::Counts;
use crate::options::{BenchOptions, BitRate, Load};

/// The options of a run that lasts `slow` times as long, on links of a `slow`th of their speed.
pub(super) fn slowed(options: &BenchOptions, warm_up: Duration) -> (BenchOptions, Duration) {
    let slow = options.slow;
    let mut slowed = options.clone();
    let rate = |BitRate(rate): BitRate| BitRate(rate / u64::from(slow));
    slowed.place.link_rate = options.place.link_rate.map(rate);
    slowed.traffic.load = match options.traffic.load {
        Load::Fixed(fixed) => Load::Fixed(rate(fixed)),
        load => load,
    };
    slowed.times.duration *= slow;
    slowed.times.series = options.times.series.map(|slot| slot * slow);
    slowed.trouble.delay *= slow;
    for event in &mut slowed.trouble.events {
        *event = event.slowed(slow);
    }
    (slowed, warm_up * slow)
}

/// The time after the measured one in which messages on their way may still arrive.
pub(super) fn drain(slow: u32) -> Duration {
    Duration::from_nanos(DRAIN_NS) * slow.max(1)
}

/// Tells what a node measured in slow motion as if it had run at full speed. Processor time stays as it is.
pub(super) fn sped_up(measured: &mut Measured, slow: u32) {
    if slow <= 1 {
        return;
    }
    let slow = u64::from(slow);
    measured.elapsed_ns /= slow;
    let counts = |Counts(counts): &mut Counts| {
        counts.iter_mut().for_each(|(nanos, _)| *nanos /= slow);
    };
    counts(&mut measured.latencies);
    counts(&mut measured.own_latencies);
    counts(&mut measured.lateness);
    for (_, latency) in &mut measured.trials {
        *latency /= slow;
    }
    for Slot {
        latency_ns,
        longest_ns,
        ..
    } in &mut measured.slots
    {
        *latency_ns /= slow;
        *longest_ns /= slow;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Place;

    #[test]
    fn a_slow_run_is_longer_on_slower_links_and_told_at_full_speed() {
        let mut options = BenchOptions {
            place: Place {
                link_rate: Some(BitRate(1_000_000_000)),
                ..Place::default()
            },
            slow: 20,
            ..BenchOptions::default()
        };
        options.traffic.load = Load::Fixed(BitRate(400_000_000));
        options.times.duration = Duration::from_millis(500);
        let (slowed, warm_up) = slowed(&options, Duration::from_millis(100));
        assert_eq!(slowed.place.link_rate, Some(BitRate(50_000_000)));
        assert_eq!(slowed.traffic.load, Load::Fixed(BitRate(20_000_000)));
        assert_eq!(slowed.times.duration, Duration::from_secs(10));
        assert_eq!(warm_up, Duration::from_secs(2));
        let mut measured = Measured {
            elapsed_ns: 10_000_000_000,
            cpu_ns: 7_000,
            latencies: Counts(vec![(20_000, 3)]),
            ..Measured::default()
        };
        sped_up(&mut measured, 20);
        assert_eq!(measured.elapsed_ns, 500_000_000);
        assert_eq!(measured.cpu_ns, 7_000);
        assert_eq!(measured.latencies, Counts(vec![(1_000, 3)]));
    }

    #[test]
    fn full_speed_changes_nothing() {
        let options = BenchOptions::default();
        let (slowed, warm_up) = slowed(&options, Duration::from_millis(7));
        assert_eq!(slowed.times.duration, options.times.duration);
        assert_eq!(warm_up, Duration::from_millis(7));
        assert_eq!(drain(1), Duration::from_nanos(DRAIN_NS));
    }
}

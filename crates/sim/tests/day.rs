//! A day on which nothing is ill: each engine orders a message now and then, and when it has begun no counter moves
//! that an operator would act on. A test in `crates/cli/tests/states` (`nothing_well_is_called_ill`) looks at the words
//! of processes on real hosts.
//!
//! 24 virtual hours: `ROTA_HOURS=24 cargo test --profile campaign -p rota-sim --test day -- --nocapture`.

use std::collections::{BTreeMap, BTreeSet};

use rota_core::contract::Service;
use rota_ring::Protocol;
use rota_sim::campaign::{EngineName, Options, run_plan};
use rota_sim::plan::{MICROS, Plan, Power, SECONDS};
use rota_sim::world::Tally;

/// Seconds in which a ring, a view or a round begins.
const BEGIN: u64 = 10;

/// Counters that move as messages are ordered, and while a ring waits for the next one.
const WORK: [&str; 20] = [
    "fast_controls_alone",
    "fast_controls_received",
    "fast_packets_received",
    "fast_packets_sent",
    "hurries",
    "lcr_batch_bytes_sent",
    "lcr_batches_sent",
    "lcr_packets_delivered",
    "packets_received",
    "packets_sent",
    "rotation_longest_us",
    "token_holds",
    "token_rotations",
    "uring_batch_bytes_sent",
    "uring_batches_sent",
    "uring_instances_forgotten",
    "uring_instances_learnt",
    "uring_memory_bytes",
    "uring_parts_received",
    "uring_values_decided",
];

/// The longest that a token may be away, in microseconds: a quarter of the time after which it counts as lost.
const LONGEST: u64 = 25_000;

fn day(engine: EngineName, seconds: u64) -> Tally {
    let protocol = match engine {
        EngineName::TotemRing => Protocol::Original,
        _ => Protocol::Accelerated,
    };
    let mut plan = Plan::plain(4, protocol);
    if engine.has_views() {
        plan.set_views(engine == EngineName::Lcr);
    }
    if engine.has_votes() {
        plan.set_uring(Power::Lasts, engine == EngineName::RingPaxos);
    }
    // Links and disks that are drawn for worlds of faults may be ill.
    if let Some(links) = &mut plan.links {
        links.breaks = 0;
    }
    if let Some(disks) = &mut plan.disks {
        (disks.latency, disks.slow) = ((100 * MICROS, 500 * MICROS), 0);
    }
    plan.horizon = seconds * SECONDS;
    for host in &mut plan.hosts {
        host.source.every = SECONDS;
        host.source.budget = u32::try_from(seconds).expect("less than a century");
        host.source.services = vec![Service::Agreed, Service::Safe];
    }
    let outcome = run_plan(&Options::new(engine, 0..1), &plan, None);
    assert_eq!(outcome.finding, None, "{engine}");
    assert!(outcome.virtual_nanos >= seconds * SECONDS, "{engine}");
    outcome.tally
}

#[test]
fn nothing_moves_that_an_operator_would_act_on() {
    let hours: f64 = std::env::var("ROTA_HOURS").map_or(0.25, |text| text.parse().expect("hours"));
    let seconds = (hours * 3600.0) as u64;
    let mut worked = BTreeSet::new();
    for engine in EngineName::ALL {
        let (begin, day) = (day(engine, BEGIN), day(engine, seconds));
        let grown = |(name, count): (&&'static str, &u64)| {
            (
                *name,
                count - begin.counters.get(name).copied().unwrap_or(0).min(*count),
            )
        };
        let moved: BTreeMap<&str, u64> = day.counters.iter().map(grown).collect();
        let alarms: Vec<_> = moved
            .iter()
            .filter(|(name, count)| **count > 0 && !WORK.contains(name))
            .collect();
        worked.extend(
            moved
                .iter()
                .filter(|(_, count)| **count > 0)
                .map(|(name, _)| *name),
        );
        println!("{engine}: {hours} hours, {} deliveries", day.deliveries);
        assert!(alarms.is_empty(), "{engine}: {alarms:?}");
        assert_eq!(day.configurations, begin.configurations, "{engine}");
        assert!(day.notes.is_empty(), "{engine}: {:?}", day.notes);
        // Each of four hosts delivers what all have sent: one in one and a half seconds, at least.
        assert!(day.deliveries > 4 * 4 * seconds * 2 / 3, "{engine}");
        let longest = day.counter("rotation_longest_us") / 4;
        assert!(
            longest < LONGEST,
            "{engine}: a token was away for {longest} us"
        );
    }
    let idle: Vec<_> = WORK.iter().filter(|name| !worked.contains(*name)).collect();
    assert!(idle.is_empty(), "these did not move: {idle:?}");
}

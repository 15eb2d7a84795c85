//! Runs from seeds. `ROTA_SEEDS=0..5000` says which.

use std::collections::BTreeMap;
use std::ops::Range;

use super::world::World;

/// Seeds, where nobody names others.
const SEEDS: Range<u64> = 0..400;

/// What is to happen in all of them together.
const FLOORS: [(&str, u64); 11] = [
    ("subscribed", 1000),
    ("left", 1000),
    ("lives with a state", 1000),
    ("states", 5000),
    ("missed", 1000),
    ("recovered", 20),
    ("notices again", 1000),
    ("delivered", 50_000),
    ("wishes", 10_000),
    ("heard of a ring", 300),
    ("waited for a ring", 100),
];

fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var("ROTA_SEEDS") else {
        return SEEDS;
    };
    let (first, end) = text.split_once("..").expect("two numbers: 0..1000");
    first.parse().expect("a number")..end.parse().expect("a number")
}

#[test]
fn subscriptions_that_change_contradict_nobody() {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in seeds() {
        let mut world = World::new(seed);
        let report = world.go();
        assert_eq!(report.violations, [], "seed {seed}");
        assert_eq!(world.trace.wrong, [""; 0], "seed {seed}");
        for (what, count) in &world.counts {
            *counts.entry(what).or_default() += count;
        }
    }
    println!("{counts:#?}");
    if seeds() == SEEDS {
        for (what, floor) in FLOORS {
            let count = counts.get(what).copied().unwrap_or(0);
            assert!(count >= floor, "{what}: {count} of {floor}");
        }
    }
}

//! Runs from seeds. `ROTA_SEEDS` says which.

use std::collections::BTreeMap;
use std::ops::Range;

use super::world::World;

/// Seeds, where nobody names others.
const SEEDS: Range<u64> = 0..25;

pub fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var("ROTA_SEEDS") else {
        return SEEDS;
    };
    let (first, end) = text.split_once("..").expect("two numbers: 0..1000");
    first.parse().expect("a number")..end.parse().expect("a number")
}

/// What is to happen somewhere in a thousand seeds, or the slice that runs without being told.
const FLOORS: [(&str, u64); 16] = [
    ("marks", 100),
    ("pinned", 3),
    ("losses of power of one", 3),
    ("recovered", 5),
    ("trimmed", 5),
    ("losses of power", 3),
    ("busy applications", 10),
    ("kills", 50),
    ("kills of all", 3),
    ("cuts", 20),
    ("stops", 10),
    ("points", 100),
    ("resumed", 50),
    ("needs", 1000),
    ("ring_skips", 1000),
    ("states compared", 3),
];

#[test]
#[cfg(not(feature = "mutants"))]
fn one_order_of_all_rings_whatever_happens() {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in seeds() {
        let mut world = World::new(seed);
        world.go();
        if let Some(wrong) = &world.judge.wrong {
            panic!("ROTA_SEEDS={seed}..{}: {wrong}", seed + 1);
        }
        for (name, count) in &world.counts {
            *counts.entry(name).or_default() += count;
        }
        *counts.entry("messages").or_default() += world.judge.messages() as u64;
        *counts.entry("states compared").or_default() += world.judge.compared;
    }
    println!("{counts:#?}");
    if seeds().count() >= SEEDS.count() {
        for (name, floor) in FLOORS {
            let count = counts.get(name).copied().unwrap_or(0);
            assert!(count >= floor, "{name}: {count} of {floor}");
        }
        let helpless = counts.get("helpless at the end").copied().unwrap_or(0);
        let seeds = seeds().count() as u64;
        assert!(helpless <= 2 * seeds, "{helpless} wait for ever");
    }
}

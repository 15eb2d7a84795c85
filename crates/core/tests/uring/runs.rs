//! Runs of chance, which are all right.

use std::collections::BTreeMap;

use super::world::run;

/// Runs that showed what was wrong once.
const SHOWN: [u64; 2] = [
    // A value was learnt by asking, and its proposal named it later.
    326,
    // A member, as others saw it, whose application was so slow that it never saw itself as one.
    262,
];

/// `ROTA_SEEDS=A..B` in place of a few.
pub fn seeds() -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("ROTA_SEEDS") else {
        return 0..60;
    };
    let (from, to) = text.split_once("..").expect("A..B");
    from.parse().expect("a number")..to.parse().expect("a number")
}

#[cfg(not(feature = "mutants"))]
#[test]
fn one_order_for_all_and_nothing_is_lost() {
    let mut counts = BTreeMap::new();
    let (mut runs, mut messages) = (0, 0);
    for seed in seeds().chain(SHOWN) {
        let world = run(seed);
        assert_eq!(world.judge.wrong, None, "seed {seed}: {}", world.states());
        for (name, count) in &world.counts {
            *counts.entry(*name).or_insert(0) += count;
        }
        *counts.entry("missed").or_insert(0) += world.judge.missed;
        *counts.entry("excluded").or_insert(0) += world.judge.excluded;
        runs += 1;
        messages += world.judge.order.len() as u64;
    }
    println!("{runs} runs, {messages} messages, {counts:#?}");
    // Values come in the order of their proposers.
    assert_eq!(counts.get("uring_values_early"), Some(&0));
    assert!(messages > 100 * runs);
    for (name, each) in [
        ("kills", 4),
        ("uring_candidacies", 4),
        ("uring_votes_fetched", 10),
    ] {
        let count = counts.get(name).copied().unwrap_or(0);
        assert!(count > each * runs, "{name}: {count}");
    }
}

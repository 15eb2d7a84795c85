//! Random runs, in which nothing may go wrong.

use std::collections::BTreeMap;

use super::world::run;

/// `ROTA_SEEDS=A..B` in place of a few.
fn seeds() -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("ROTA_SEEDS") else {
        return 0..200;
    };
    let (from, to) = text.split_once("..").expect("A..B");
    from.parse().expect("a number")..to.parse().expect("a number")
}

#[test]
fn nothing_is_decided_twice_and_all_is_delivered_once() {
    let mut counts = BTreeMap::new();
    let (mut runs, mut configs, mut values, mut sets) = (0, 0, 0, 0);
    for seed in seeds() {
        let world = run(seed);
        assert_eq!(world.judge.wrong, None, "seed {seed}");
        for (name, count) in &world.counts {
            *counts.entry(*name).or_insert(0) += count;
        }
        runs += 1;
        configs += world.judge.configs.len();
        values += world.judge.order.len();
        let all = world.judge.configs.values();
        sets += all.filter(|config| !config.prior.is_empty()).count();
    }
    println!("{configs} configurations, {sets} of several sets, {values} values, {counts:?}");
    assert!(configs > 4 * runs && values > 20 * runs && sets > runs / 2);
    for (name, each) in [("kills", 10), ("wipes", 1), ("refused", 1), ("trims", 1)] {
        let count = counts[name];
        assert!(count > each * runs as u64, "{name}: {count}");
    }
}

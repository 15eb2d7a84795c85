//! Views over a model of a ring's promises: chance decides after every step which processes part, die or are slow, and
//! which packets were received by then; exchanges are cut off at every message. In every run all deliver one order,
//! nothing twice, and nothing that one process has delivered is lost.

#![cfg_attr(feature = "mutants", allow(dead_code, reason = "what is not counted"))]

#[path = "views_model/judge.rs"]
mod judge;
#[path = "views_model/path.rs"]
mod path;
#[path = "views_model/rings.rs"]
mod rings;
#[path = "views_model/world.rs"]
mod world;

use world::World;

fn run(seed: u64) -> World {
    let nodes = 2 + seed as usize % 4;
    let mut world = World::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d), nodes);
    for _ in 0..3000 {
        world.step();
        if world.wrong.is_some() {
            return world;
        }
    }
    world.settle();
    world
}

/// `ROTA_SEEDS=A..B` in place of a few.
#[cfg(not(feature = "mutants"))]
fn seeds() -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("ROTA_SEEDS") else {
        return 0..200;
    };
    let (from, to) = text.split_once("..").expect("A..B");
    from.parse().expect("a number")..to.parse().expect("a number")
}

#[cfg(not(feature = "mutants"))]
#[test]
fn one_order_whoever_parts_and_meets() {
    let mut counts = std::collections::BTreeMap::new();
    let (mut views, mut full, mut unseen) = (0, 0, 0);
    for seed in seeds() {
        let world = run(seed);
        assert_eq!(world.wrong, None, "seed {seed}");
        for (name, count) in &world.counts {
            *counts.entry(*name).or_insert(0) += count;
        }
        views += world.views();
        full += world.full;
        unseen += world.unseen();
    }
    println!("{views} views, {full} times full, {unseen} unseen, {counts:?}");
    assert!(
        views > 300 && full > 100,
        "{views} views, {full} times full"
    );
    assert!(unseen < views / 100, "{unseen} unseen");
    for name in [
        "views_forced_packets",
        "views_tentative",
        "views_forgotten",
        "views_excluded",
    ] {
        assert!(counts[name] > 10, "{name}: {}", counts[name]);
    }
    for name in [
        "views_malformed",
        "views_incomplete",
        "views_packets_malformed",
        "views_duplicates",
    ] {
        assert_eq!(counts[name], 0, "{name}");
    }
}

#[cfg(feature = "mutants")]
#[test]
fn each_broken_version_is_found_out() {
    use rota_core::mutants::{self, Mutant};
    let mut survive = Vec::new();
    let mut found = |mutant: Mutant, rules: &[&str]| {
        mutants::set(Some(mutant));
        let first = (0..2000).find_map(|seed| Some((seed, run(seed).wrong?)));
        mutants::set(None);
        println!("{mutant}: {first:?}");
        let by = |rule: &&str| {
            first
                .as_ref()
                .is_some_and(|(_, wrong)| wrong.starts_with(*rule))
        };
        if !rules.iter().any(by) {
            survive.push((mutant, first));
        }
    };
    found(Mutant::V01, &["VS1", "UTO", "UA", "UV", "VS2"]);
    found(Mutant::V02, &["VS1", "UTO", "UA", "UV", "VS2"]);
    found(Mutant::V03, &["VS1", "UTO"]);
    found(Mutant::V04, &["UTO", "UI", "VS5"]);
    found(Mutant::V05, &["UTO", "UI", "UV"]);
    found(Mutant::V06, &["UTO"]);
    found(Mutant::V07, &["UTO"]);
    found(Mutant::V08, &["UTO", "UI", "UV"]);
    found(Mutant::V09, &["UTO", "VS2", "VS5"]);
    found(Mutant::V10, &["VS1", "UTO", "UA", "UV", "VS2"]);
    found(Mutant::V11, &["UTO"]);
    found(Mutant::V12, &["UTO", "VS2", "VS5"]);
    assert!(survive.is_empty(), "{survive:?}");
}

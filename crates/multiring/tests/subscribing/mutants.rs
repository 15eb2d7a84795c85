//! Broken versions of subscriptions that change, and the property by which each shows.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rota_multiring::mutants::{self, Mutant};

use super::world::World;

/// Each with the property, or the beginning of what is said besides.
const FOUND: [(Mutant, &str); 11] = [
    (Mutant::A13, "told late"),
    (Mutant::A26, "AM-A"),
    (Mutant::A32, "AM-C"),
    (Mutant::A33, "AM-C"),
    (Mutant::A34, "AM-C"),
    (Mutant::A35, "AM-S"),
    (Mutant::A36, "AM-A"),
    (Mutant::A37, "told late"),
    (Mutant::A38, "stuck"),
    (Mutant::A41, "delivery"),
    (Mutant::A44, "told early"),
];

/// The seeds that are run with each.
const SEEDS: u64 = 60;

/// What is wrong in the run of a seed. That a mutant panics does not count.
fn wrong(seed: u64) -> BTreeSet<String> {
    let run = || {
        let mut world = World::new(seed);
        let report = world.go();
        let violated = report.violations.into_iter();
        let violated = violated.map(|violation| violation.property.to_owned());
        let told = world
            .trace
            .wrong
            .iter()
            .filter_map(|wrong| wrong.split_once(':'));
        let told = told.map(|(what, _)| what.to_owned());
        violated.chain(told).collect()
    };
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_default()
}

#[test]
fn each_broken_version_is_found_out() {
    let sound: BTreeSet<String> = (0..SEEDS).flat_map(wrong).collect();
    assert_eq!(sound, BTreeSet::new());
    let mut missed = Vec::new();
    for (mutant, property) in FOUND {
        mutants::set(Some(mutant));
        let found: BTreeSet<String> = (0..SEEDS).flat_map(wrong).collect();
        mutants::set(None);
        println!("{mutant:?}: {found:?}");
        if !found.contains(property) {
            missed.push((mutant, found));
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}

//! Broken versions of the learner, the merge and the leveling, each with a seed that shows it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rota_multiring::mutants::{self, Mutant};

use super::world::World;

/// And as what.
const SEEDS: [(Mutant, u64, &str); 3] = [
    (Mutant::A02, 0, "order"),
    (Mutant::A03, 0, "order"),
    (Mutant::A30, 0, "state"),
];

/// What is wrong in the run of a seed. That a mutant panics does not count.
fn wrong(mutant: Mutant, seed: u64) -> Option<String> {
    mutants::set(Some(mutant));
    let run = || {
        let mut world = World::new(seed);
        world.go();
        world
    };
    let world = catch_unwind(AssertUnwindSafe(run));
    mutants::set(None);
    world.ok()?.judge.wrong
}

#[test]
fn each_broken_version_is_found_out() {
    if std::env::var("ROTA_SEEDS").is_ok() {
        for (mutant, ..) in SEEDS {
            let mut seeds = super::runs::seeds();
            let found = seeds.find_map(|seed| Some((seed, wrong(mutant, seed)?)));
            println!("{mutant:?}: {found:.200?}");
        }
        return;
    }
    for (mutant, seed, what) in SEEDS {
        let found = wrong(mutant, seed).unwrap_or_default();
        assert!(found.starts_with(what), "{mutant:?}, seed {seed}: {found}");
    }
}

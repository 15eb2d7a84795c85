//! Broken versions of the learner, the merge and the leveling, each with a seed that shows it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rota_core::mutants as below;
use rota_multiring::mutants::{self, Mutant};

use super::world::World;

/// A broken version, of this crate or of the engine.
#[derive(Clone, Copy, Debug)]
enum Broken {
    Here(Mutant),
    Below(below::Mutant),
}

use Broken::{Below, Here};

impl Broken {
    fn set(self, is_on: bool) {
        match self {
            Here(mutant) => mutants::set(is_on.then_some(mutant)),
            Below(mutant) => below::set(is_on.then_some(mutant)),
        }
    }
}

/// And as what.
const SEEDS: [(Broken, u64, &str); 6] = [
    (Here(Mutant::A02), 0, "order"),
    (Here(Mutant::A03), 0, "order"),
    (Here(Mutant::A30), 0, "state"),
    (Below(below::Mutant::U115), 0, "forgotten"),
    (Below(below::Mutant::U119), 0, "forgotten"),
    (Below(below::Mutant::U136), 8, "silence"),
];

/// What is wrong in the run of a seed. That a mutant panics does not count.
fn wrong(mutant: Broken, seed: u64) -> Option<String> {
    mutant.set(true);
    let run = || {
        let mut world = World::new(seed);
        world.go();
        world
    };
    let world = catch_unwind(AssertUnwindSafe(run));
    mutant.set(false);
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

//! Broken versions of the engine and of the machines below it, which have to be noticed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rota_core::mutants::{self, Mutant};

use super::rules::RULES;
use super::world::{World, run, run_resumed, run_worse};

/// How a seed is run.
type Run = fn(u64) -> World;

/// Values along the ring.
fn along(seed: u64) -> World {
    run(seed, false)
}

/// Values are multicast.
fn multicast(seed: u64) -> World {
    run(seed, true)
}

/// In a world that is worse.
fn worse(seed: u64) -> World {
    run_worse(seed, seed.is_multiple_of(2))
}

/// What is wrong in the run of a seed. That a mutant panics does not count.
fn wrong(mutant: Mutant, seed: u64, run: Run) -> Option<String> {
    mutants::set(Some(mutant));
    let world = catch_unwind(AssertUnwindSafe(|| run(seed)));
    mutants::set(None);
    world.ok()?.judge.wrong
}

/// Looks for mutants in the seeds that `ROTA_SEEDS` names.
fn search(names: &str) {
    let run = match std::env::var("ROTA_WORLD").as_deref() {
        Ok("multicast") => multicast,
        Ok("worse") => worse,
        Ok("resumed") => run_resumed,
        _ => along as Run,
    };
    for mutant in Mutant::ALL {
        if names.split(',').any(|name| name == mutant.to_string()) {
            let mut seeds = super::runs::seeds();
            let found = seeds.find_map(|seed| Some((seed, wrong(mutant, seed, run)?)));
            println!("{mutant}: {found:.200?}");
        }
    }
}

/// Mutants, each with a seed that shows it, and as what.
const SEEDS: [(Mutant, u64, &str); 13] = [
    (Mutant::U05, 0, "silence"),
    (Mutant::U06, 0, "refused"),
    (Mutant::U07, 0, "fifo"),
    (Mutant::U09, 0, "order"),
    (Mutant::U10, 0, "silence"),
    (Mutant::U11, 0, "order"),
    (Mutant::U14, 28, "order"),
    (Mutant::U16, 0, "order"),
    (Mutant::U18, 1, "order"),
    (Mutant::U21, 0, "silence"),
    (Mutant::U22, 39, "silence"),
    (Mutant::U23, 0, "order"),
    (Mutant::U40, 577, "refused"),
];

/// The same where values are multicast.
const MULTICAST_SEEDS: [(Mutant, u64, &str); 5] = [
    (Mutant::U27, 0, "order"),
    (Mutant::U28, 0, "silence"),
    (Mutant::U29, 25, "silence"),
    (Mutant::U30, 0, "contents"),
    (Mutant::U31, 1, "silence"),
];

/// The same in a world that is worse.
const WORSE_SEEDS: [(Mutant, u64, &str); 3] = [
    (Mutant::U71, 43, "foundation"),
    (Mutant::U73, 12, "standing"),
    (Mutant::U76, 97, "standing"),
];

/// The same where applications keep states.
const RESUMED_SEEDS: [(Mutant, u64, &str); 4] = [
    (Mutant::U95, 0, "base"),
    (Mutant::U96, 1, "order"),
    (Mutant::U119, 0, "forgotten"),
    (Mutant::U120, 1, "base"),
];

#[test]
fn each_broken_version_is_found_out() {
    if let Ok(names) = std::env::var("ROTA_MUTANTS") {
        return search(&names);
    }
    for (mutant, rule) in RULES {
        mutants::set(Some(mutant));
        // An assertion that notices it is as good.
        let holds = catch_unwind(rule).unwrap_or(false);
        mutants::set(None);
        assert!(!holds, "{mutant}: its rule holds");
    }
    let runs = SEEDS.map(|known| (known, along as Run)).into_iter();
    let runs = runs.chain(MULTICAST_SEEDS.map(|known| (known, multicast as Run)));
    let runs = runs.chain(WORSE_SEEDS.map(|known| (known, worse as Run)));
    let runs = runs.chain(RESUMED_SEEDS.map(|known| (known, run_resumed as Run)));
    for ((mutant, seed, what), run) in runs {
        let found = wrong(mutant, seed, run).unwrap_or_default();
        assert!(found.starts_with(what), "{mutant}, seed {seed}: {found}");
    }
}

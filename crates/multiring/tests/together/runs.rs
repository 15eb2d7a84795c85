//! Runs from seeds. `ROTA_SEEDS` says which.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

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

/// What is to happen in as many seeds as run where nobody names others: a third of what does. More seeds, more of each.
const FLOORS: [(&str, u64); 39] = [
    ("points", 112),
    ("points inside skips", 29),
    ("points inside cut messages", 24),
    ("local recoveries", 49),
    ("remote recoveries", 12),
    ("recoveries repeated", 18),
    ("transfers repeated", 6),
    ("transfers cut off", 3),
    ("trims during transfers", 117),
    ("trace: trims", 251),
    ("trimmed", 27),
    ("marks", 347),
    ("pinned", 3),
    ("changes", 33),
    ("changes told again", 162),
    ("changes while a replica is down", 7),
    ("changes while a replica comes back", 3),
    ("changes while a state comes", 1),
    ("notices", 406),
    ("overlapping subscriptions", 2),
    ("all replicas of a partition down", 53),
    ("all processes down", 28),
    ("losses of power", 5),
    ("losses of power of one", 10),
    ("losses of power of one that forgets", 1),
    ("states lost", 18),
    ("kills", 129),
    ("kills of all", 10),
    ("busy applications", 11),
    ("stops", 7),
    ("cuts", 22),
    ("rings without a majority", 15),
    ("rings with a majority again", 13),
    ("needs", 4907),
    ("ring_skips", 9984),
    ("states compared", 5),
    ("rings judged", 12),
    ("trace: AM-A", 10967),
    ("trace: AM-V", 1180),
];

/// Seeds that have shown something.
const KEPT: [u64; 9] = [176, 184, 202, 257, 297, 313, 407, 507, 510];

/// Runs a seed. Returns what is wrong, if anything, and the world, but of a run that an invariant has ended: the others go
/// on.
fn run(seed: u64) -> (Option<String>, Option<World>) {
    let run = || {
        let mut world = World::new(seed);
        world.go();
        world
    };
    let world = catch_unwind(AssertUnwindSafe(run)).ok();
    let invariant = || Some("an invariant".to_owned());
    let found = world
        .as_ref()
        .map_or_else(invariant, |world| world.judge.wrong.clone());
    if let Some(found) = &found {
        println!("ROTA_SEEDS={seed}..{}: {found}", seed + 1);
    }
    (found, world)
}

#[test]
#[cfg(not(feature = "mutants"))]
fn what_was_wrong_once_holds() {
    let wrong = KEPT.into_iter().filter(|seed| run(*seed).0.is_some());
    let wrong: Vec<u64> = wrong.collect();
    assert!(wrong.is_empty(), "seeds that show something: {wrong:?}");
}

#[test]
#[cfg(not(feature = "mutants"))]
fn one_order_of_all_rings_whatever_happens() {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut wrong = 0;
    for seed in seeds() {
        let (found, world) = run(seed);
        wrong += u64::from(found.is_some());
        let Some(world) = world else {
            continue;
        };
        for (name, count) in &world.counts {
            *counts.entry(name).or_default() += count;
        }
        *counts.entry("messages").or_default() += world.judge.messages() as u64;
        *counts.entry("states compared").or_default() += world.judge.compared;
    }
    println!("{counts:#?}");
    assert_eq!(wrong, 0, "seeds that show something");
    if seeds().count() >= SEEDS.count() {
        for (name, of_slice) in FLOORS {
            let floor = of_slice * seeds().count() as u64 / SEEDS.count() as u64;
            let count = counts.get(name).copied().unwrap_or(0);
            assert!(count >= floor, "{name}: {count} of {floor}");
        }
        let helpless = counts.get("helpless at the end").copied().unwrap_or(0);
        let seeds = seeds().count() as u64;
        assert!(helpless <= 2 * seeds, "{helpless} wait for ever");
        let late = counts.get("too late for an account").copied().unwrap_or(0);
        assert!(
            late <= 1 + seeds / 100,
            "{late} are helpless since their hold came late"
        );
    }
}

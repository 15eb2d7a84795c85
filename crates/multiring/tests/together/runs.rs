//! Runs from seeds. `ROTA_SEEDS` says which.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::world::World;

/// Seeds, where nobody names others.
const SEEDS: Range<u64> = 0..75;

pub fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var("ROTA_SEEDS") else {
        return SEEDS;
    };
    let (first, end) = text.split_once("..").expect("two numbers: 0..1000");
    first.parse().expect("a number")..end.parse().expect("a number")
}

/// What is to happen in as many seeds as run where nobody names others: a third of what does. More seeds, more of each.
const FLOORS: [(&str, u64); 48] = [
    ("points", 324),
    ("points inside skips", 62),
    ("points inside cut messages", 55),
    ("local recoveries", 129),
    ("remote recoveries", 27),
    ("recoveries repeated", 47),
    ("transfers repeated", 13),
    ("transfers cut off", 8),
    ("trims during transfers", 298),
    ("trace: trims", 1740),
    ("trimmed", 92),
    ("marks", 940),
    ("pinned", 9),
    ("changes", 145),
    ("changes told again", 398),
    ("changes while a replica is down", 18),
    ("changes while a replica comes back", 16),
    ("changes while a state comes", 5),
    ("notices", 354),
    ("overlapping subscriptions", 10),
    ("all replicas of a partition down", 147),
    ("all processes down", 81),
    ("losses of power", 17),
    ("losses of power of one", 38),
    ("losses of power of one that forgets", 2),
    ("states lost", 64),
    ("kills", 366),
    ("kills of all", 27),
    ("busy applications", 37),
    ("stops", 19),
    ("cuts", 60),
    ("rings without a majority", 30),
    ("rings with a majority again", 26),
    ("needs", 14_252),
    ("ring_skips", 26_913),
    ("states compared", 9),
    ("rings judged", 38),
    ("trace: AM-A", 36_273),
    ("trace: AM-V", 3486),
    ("worlds with observers", 7),
    ("observed messages", 3623),
    ("uring_observers_told", 1496),
    ("observers behind what is forgotten", 4),
    ("observers killed", 13),
    ("observers recovered", 4),
    ("points of observers", 7),
    ("observers cut off", 1),
    ("observers of rings without a majority", 1),
];

/// Seeds that have shown something.
const KEPT: [u64; 9] = [176, 184, 202, 257, 297, 313, 407, 507, 510];

/// Runs a seed. Returns what is wrong, if anything, and the world, but of a run that an invariant has ended: the others go
/// on.
fn run(seed: u64, world: fn(u64) -> World) -> (Option<String>, Option<World>) {
    let run = || {
        let mut world = world(seed);
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
    let wrong = KEPT
        .into_iter()
        .filter(|seed| run(*seed, World::without_observers).0.is_some());
    let wrong: Vec<u64> = wrong.collect();
    assert!(wrong.is_empty(), "seeds that show something: {wrong:?}");
}

#[test]
#[cfg(not(feature = "mutants"))]
fn one_order_of_all_rings_whatever_happens() {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut wrong = 0;
    for seed in seeds() {
        let (found, world) = run(seed, World::new);
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

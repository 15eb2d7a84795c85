//! Groups of clients over a model of what an engine promises: chance decides after every step who parts
//! from whom, who dies, and how far each has got; exchanges are cut off at every message. Whatever
//! it decides, what clients see has the properties K1 to K8, and when all are together again, all know
//! the same.

#[path = "groups_model/bus.rs"]
mod bus;
#[path = "groups_model/checks.rs"]
mod checks;
#[path = "groups_model/world.rs"]
mod world;

use world::World;

fn run(seed: u64, transitional: bool) -> (World, Result<(), String>) {
    let daemons = 2 + (seed % 4) as u16;
    let mut world = World::new(seed, daemons, transitional);
    for _ in 0..1_500 {
        world.step();
    }
    world.quiesce();
    let settled = world.settled();
    let checked = checks::all(&world.traces, &world.sent, transitional);
    (world, checked.and(settled))
}

#[cfg(not(feature = "mutants"))]
#[test]
fn clients_see_what_they_may_whoever_parts_and_meets() {
    let (mut exchanges, mut interrupted, mut completed_late) = (0, 0, 0);
    let (mut skips, mut parts, mut held) = (0, 0, 0);
    for seed in 0..60 {
        let (world, checked) = run(seed, true);
        assert_eq!(checked, Ok(()), "seed {seed}");
        exchanges += world.exchanges;
        interrupted += world.interrupted;
        completed_late += world.completed_late;
        skips += world.skips;
        parts += world.parts;
        held += world.held;
    }
    println!("{exchanges} exchanges, {interrupted} interrupted, {completed_late} completed so");
    assert!(exchanges > 100 && interrupted > 100 && completed_late > 5);
    assert!(skips > 100 && parts > 1000, "{skips} skips, {parts} parts");
    assert!(held > 100, "{held} holds");
}

#[cfg(not(feature = "mutants"))]
#[test]
fn over_an_engine_without_transitional_configurations_there_are_no_signals() {
    for seed in 0..30 {
        let (_, checked) = run(seed, false);
        assert_eq!(checked, Ok(()), "seed {seed}");
    }
}

#[cfg(feature = "mutants")]
#[test]
fn each_broken_version_is_found_out() {
    use rota_core::mutants::{self, Mutant};
    let found = |mutant: Mutant, rules: &[&str]| {
        mutants::set(Some(mutant));
        let first = (0..600).find_map(|seed| run(seed, true).1.err());
        mutants::set(None);
        let first = first.unwrap_or_else(|| panic!("{mutant} is not found"));
        println!("{mutant} {}", first.split(':').next().unwrap_or_default());
        assert!(
            rules.iter().any(|rule| first.starts_with(rule)),
            "{mutant}: {first}"
        );
    };
    found(Mutant::M34, &["K2", "K4", "K7", "once"]);
    found(Mutant::G01, &["K6"]);
    found(Mutant::G02, &["K1", "K2"]);
    found(Mutant::G03, &["once"]);
    found(Mutant::G04, &["K4"]);
    found(Mutant::G05, &["K3"]);
    found(Mutant::G06, &["K6"]);
    found(Mutant::G07, &["K5", "K2", "K3"]);
    found(Mutant::G08, &["K7"]);
    found(Mutant::G09, &["K8", "K6"]);
    found(Mutant::G10, &["K1", "K4", "K6", "K7", "settled"]);
    found(Mutant::G11, &["K7", "settled"]);
    // Here all daemons meet in the end, and whoever G12 takes in is known by then: the simulator finds it.
    found(Mutant::G13, &["K7", "settled"]);
    found(Mutant::G14, &["K6"]);
    found(Mutant::G15, &["K3", "settled"]);
    found(Mutant::G17, &["K7", "settled"]);
    found(Mutant::G18, &["K4", "K7", "settled"]);
    found(Mutant::G19, &["settled"]);
    found(Mutant::G20, &["settled"]);
    found(Mutant::G21, &["settled"]);
    found(Mutant::G22, &["K4", "K5", "K7"]);
    // Nobody sends to itself here: the simulator finds G16.
}

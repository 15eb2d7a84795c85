//! Groups of clients over a model of the promises of an engine: chance decides after every step which daemons part or
//! die, and how far each has got; exchanges are cut off at every message. In every run, the events of clients have the
//! properties K1 to K8 and K10, and when all daemons are together again, all know the same.

#![cfg_attr(
    feature = "mutants",
    allow(dead_code, reason = "what only other runs look at")
)]

#[path = "groups_model/bus.rs"]
mod bus;
#[path = "groups_model/checks.rs"]
mod checks;
#[path = "groups_model/gaps.rs"]
mod gaps;
#[path = "groups_model/views.rs"]
mod views;
#[path = "groups_model/world.rs"]
mod world;

use bus::Kind;
use world::World;

fn run(seed: u64, kind: Kind) -> (World, Result<(), String>) {
    let daemons = 2 + (seed % 4) as u16;
    let mut world = World::new(seed, daemons, kind);
    let steps = if kind == Kind::Views { 6_000 } else { 1_500 };
    for _ in 0..steps {
        world.step();
    }
    world.quiesce();
    let settled = world.settled();
    let checked = checks::all(&world.traces, &world.sent, kind);
    (world, checked.and(settled))
}

#[cfg(not(feature = "mutants"))]
#[test]
fn clients_see_what_they_may_whoever_parts_and_meets() {
    let (mut exchanges, mut interrupted, mut completed_late) = (0, 0, 0);
    let (mut skips, mut parts, mut held) = (0, 0, 0);
    for seed in 0..60 {
        let (world, checked) = run(seed, Kind::Transitional);
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
        let (_, checked) = run(seed, Kind::Direct);
        assert_eq!(checked, Ok(()), "seed {seed}");
    }
}

/// `ROTA_SEEDS=A..B` in place of a few.
#[cfg(not(feature = "mutants"))]
fn seeds() -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("ROTA_SEEDS") else {
        return 0..150;
    };
    let (from, to) = text.split_once("..").expect("A..B");
    from.parse().expect("a number")..to.parse().expect("a number")
}

#[cfg(not(feature = "mutants"))]
#[test]
fn clients_of_a_daemon_that_is_in_no_view_are_told_what_they_miss_and_nothing_twice() {
    let (mut gaps, mut whole, mut elsewhere) = (0, 0, 0);
    for seed in seeds() {
        let (world, checked) = run(seed, Kind::Views);
        assert_eq!(checked, Ok(()), "seed {seed}");
        let (missed, went_on) = world.inclusions();
        gaps += missed;
        whole += went_on;
        elsewhere += world.elsewhere;
    }
    println!(
        "{gaps} clients missed something, {whole} nothing; {elsewhere} requests were ordered elsewhere"
    );
    assert!(gaps > 500 && whole > 500, "{gaps} gaps, {whole} without");
    assert!(elsewhere > 100, "{elsewhere} requests");
}

#[cfg(feature = "mutants")]
#[test]
fn each_broken_version_is_found_out() {
    use rota_core::mutants::{self, Mutant};
    let found_over = |kind: Kind, mutant: Mutant, rules: &[&str]| {
        mutants::set(Some(mutant));
        let first = (0..600).find_map(|seed| run(seed, kind).1.err());
        mutants::set(None);
        let first = first.unwrap_or_else(|| panic!("{mutant} is not found"));
        println!("{mutant} {}", first.split(':').next().unwrap_or_default());
        assert!(
            rules.iter().any(|rule| first.starts_with(rule)),
            "{mutant}: {first}"
        );
    };
    let found = |mutant, rules: &[&str]| found_over(Kind::Transitional, mutant, rules);
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
    let found = |mutant, rules: &[&str]| found_over(Kind::Views, mutant, rules);
    found(Mutant::G23, &["once"]);
    found(Mutant::G24, &["K4"]);
    found(Mutant::G25, &["K10"]);
    found(Mutant::G26, &["settled"]);
    found(Mutant::G27, &["K6", "K7", "K10"]);
    found(Mutant::G28, &["once"]);
    found(Mutant::G29, &["K10"]);
    found(Mutant::G30, &["K9"]);
    found(Mutant::G31, &["settled"]);
    // Nobody sends to itself here: the simulator finds G16.
}

//! Random runs, in which nothing may go wrong.

use std::collections::BTreeMap;

use super::world::{MILLI, World, run, run_resumed, run_with_losses, run_worse};

/// `ROTA_SEEDS=A..B` in place of a few.
pub fn seeds() -> std::ops::Range<u64> {
    seeds_or(0..40)
}

/// The same, with a few in which all that is rare happens.
pub fn seeds_or(few: std::ops::Range<u64>) -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("ROTA_SEEDS") else {
        return few;
    };
    let (from, to) = text.split_once("..").expect("A..B");
    from.parse().expect("a number")..to.parse().expect("a number")
}

#[cfg(not(feature = "mutants"))]
#[test]
fn one_order_for_all_and_nothing_is_lost() {
    let counts = all_are_right(&FAULTS, seeds_or(46..121), |seed| run(seed, false));
    // Values come in the order of their proposers.
    assert_eq!(counts.get("uring_values_early"), Some(&0));
}

#[cfg(not(feature = "mutants"))]
#[test]
fn one_order_for_all_where_values_are_multicast() {
    let counts = all_are_right(&FAULTS, seeds(), |seed| run(seed, true));
    for rare in ["uring_values_asked_for", "uring_values_sent_again"] {
        let count = counts.get(rare).copied();
        assert!(count.unwrap_or(0) > 0, "{rare}");
    }
}

#[cfg(not(feature = "mutants"))]
#[test]
fn one_order_for_all_in_a_worse_world() {
    all_are_right(&OF_WORSE, seeds_or(0..75), |seed| {
        run_worse(seed, seed % 2 == 0)
    });
}

#[cfg(not(feature = "mutants"))]
#[test]
fn one_order_for_all_where_applications_keep_states() {
    let counts = all_are_right(
        &["missed", "foundations", "kills of all"],
        seeds(),
        run_resumed,
    );
    for (name, each) in [
        ("resumed", 3),
        ("resumed within messages", 1),
        ("bases compared", 10),
        ("commands about accounts", 10),
        ("kept since it is needed", 10),
    ] {
        let count = counts.get(name).copied().unwrap_or(0);
        assert!(count > each * seeds().count() as u64, "{name}: {count}");
    }
}

/// What has to go wrong in some of them.
#[cfg(not(feature = "mutants"))]
const OF_WORSE: [&str; 6] = [
    "bad disks",
    "hanging disks",
    "hangs again",
    "late openings",
    "narrow ways",
    "old logs put back",
];

/// What has to go wrong in some runs.
#[cfg(not(feature = "mutants"))]
const FAULTS: [&str; 17] = [
    "kills of all",
    "losses of power",
    "losses of power of one",
    "replaced disks",
    "nodes that are gone for good",
    "disks that are bad for good",
    "bad disks",
    "hanging disks",
    "failed writes",
    "given up",
    "opened again",
    "foundations",
    "skips",
    "partitions",
    "stops",
    "missed",
    "own judged",
];

/// Runs these; what was counted in all of them.
#[cfg(not(feature = "mutants"))]
fn all_are_right(
    faults: &[&'static str],
    seeds: std::ops::Range<u64>,
    run: impl Fn(u64) -> World,
) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    let (mut runs, mut messages) = (0, 0);
    let mut wrong = Vec::new();
    for seed in seeds {
        let world = run(seed);
        if let Some(finding) = &world.judge.wrong {
            println!("seed {seed}: {finding}; {}", world.states());
            wrong.push(seed);
        }
        for (name, count) in &world.counts {
            *counts.entry(*name).or_insert(0) += count;
        }
        if world.judge.missed > 0 {
            *counts.entry("missed").or_insert(0) += world.judge.missed;
        }
        let stood = world.worse.as_ref().map_or(0, |worse| worse.stood / MILLI);
        let most = counts.entry("longest stood, ms").or_insert(0);
        *most = stood.max(*most);
        *counts.entry("excluded").or_insert(0) += world.judge.excluded;
        if let Some(resumed) = &world.resumed {
            *counts.entry("resumed").or_insert(0) += resumed.resumed;
            *counts.entry("resumed within messages").or_insert(0) += resumed.within_messages;
            *counts.entry("commands about accounts").or_insert(0) += resumed.commands;
            *counts.entry("kept since it is needed").or_insert(0) += resumed.held;
            *counts.entry("bases compared").or_insert(0) += resumed.compared;
        }
        *counts.entry("own judged").or_insert(0) += world.judge.judged_own;
        runs += 1;
        messages += world.judge.order.len() as u64;
    }
    println!("{runs} runs, {messages} messages, {counts:#?}");
    assert_eq!(wrong, [0; 0], "seeds in which something went wrong");
    assert!(messages > 100 * runs);
    for (name, each) in [
        ("kills", 3),
        ("uring_candidacies", 3),
        ("uring_votes_fetched", 10),
    ] {
        let count = counts.get(name).copied().unwrap_or(0);
        assert!(count > each * runs, "{name}: {count}");
    }
    for fault in faults {
        assert!(counts.contains_key(fault), "there were no {fault}");
    }
    counts
}

/// What is lost is asked for soon: nobody waits for a process to be suspected.
#[cfg(not(feature = "mutants"))]
#[test]
fn what_is_lost_comes_soon() {
    for seed in 0..12 {
        for lost in [0, 2, 30] {
            let world = run_with_losses(seed, lost);
            assert_eq!(world.judge.wrong, None, "seed {seed}: {}", world.states());
            let asked = world.counts["uring_values_asked_for"];
            // Where nothing is lost only those ask who did not know yet that they were in the ring.
            assert!(
                lost > 0 || asked < 20,
                "seed {seed}: {asked} of nothing lost"
            );
            let slowest = world.slowest / MILLI;
            let is_alone = world.nodes.len() == 1;
            assert!(
                lost < 30 || is_alone || asked > 0 && slowest > 0,
                "seed {seed}"
            );
            assert!(slowest < 500, "seed {seed}, {lost} %: {slowest} ms");
        }
    }
}

//! Broken versions of the protocol, which have to be noticed.

use rota_core::mutants::{self, Mutant};

use super::ranges;
use super::rules::{a_promise_waits_for_the_disk, floor_of_who_votes, start};
use super::world::run;

#[test]
fn each_broken_version_is_found_out() {
    let found_from = |from: u64, mutant: Mutant, signs: &[&str]| {
        mutants::set(Some(mutant));
        let first = (from..from + 4000).find_map(|seed| Some((seed, run(seed).judge.wrong?)));
        mutants::set(None);
        let (seed, sign) = first.unwrap_or_else(|| panic!("{mutant} is not found"));
        println!("{mutant}, seed {seed}: {sign:.100}");
        let is_known = signs.iter().any(|known| sign.starts_with(known));
        assert!(is_known, "{mutant}: {sign}");
    };
    let found = |mutant, signs: &[&str]| found_from(0, mutant, signs);
    found(Mutant::M40, &["quorum", "learner"]);
    found(Mutant::N01, &["agreement"]);
    found(Mutant::N03, &["agreement"]);
    found(Mutant::N04, &["quorum"]);
    found(Mutant::N05, &["quorum"]);
    found(Mutant::N06, &["agreement"]);
    found(Mutant::N07, &["agreement", "complete"]);
    // Takes some thousand seeds from 0.
    found_from(1300, Mutant::N08, &["complete", "silence"]);
    found(Mutant::N09, &["complete"]);
    found(Mutant::N10, &["agreement"]);
    found(Mutant::N11, &["quorum"]);
    found(Mutant::N12, &["once"]);
    found(Mutant::N13, &["configuration"]);
    found(Mutant::N14, &["configuration"]);
    let broken = |mutant: Mutant, is_broken: fn() -> bool| {
        mutants::set(Some(mutant));
        let is_broken = is_broken();
        mutants::set(None);
        assert!(is_broken, "{mutant} is not found");
    };
    // A restarted acceptor votes in no round that has gone on without it, so chance hardly ever shows this one.
    broken(Mutant::N02, || !a_promise_waits_for_the_disk());
    // These take a coordinator that is far behind, and stores that are lost just then.
    broken(Mutant::N15, || start(10, 40) != Some(40));
    broken(Mutant::N16, || floor_of_who_votes() != 5);
    broken(Mutant::N17, || {
        !ranges::what_was_learnt_counts_in_its_round()
    });
    broken(Mutant::N19, || !ranges::all_of_a_range_is_learnt());
    broken(Mutant::N21, || !ranges::the_last_complete_set_is_asked());
    broken(Mutant::N22, || {
        !ranges::a_promise_says_what_anybody_has_forgotten()
    });
    broken(Mutant::N24, || !ranges::what_was_learnt_is_not_voted_over());
    broken(Mutant::N26, || {
        !ranges::a_round_that_is_over_does_not_begin()
    });
    broken(Mutant::N25, || {
        !ranges::complete_waits_until_a_majority_knows_what_is_forgotten()
    });
    broken(Mutant::N20, || !ranges::what_is_left_of_a_range_is_taken());
}

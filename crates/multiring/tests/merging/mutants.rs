//! Broken versions of the merge, which have to be noticed.

use std::panic::catch_unwind;

use super::{check, rule, traces};
use rota_multiring::mutants::{self, Mutant};

type Rule = fn() -> bool;

/// Each with what notices it.
const RULES: [(Mutant, Rule); 15] = [
    (
        Mutant::A31,
        rule::what_stands_behind_a_message_needs_another_ring,
    ),
    (Mutant::A01, one_order),
    (Mutant::A02, one_order),
    (Mutant::A03, one_order),
    (Mutant::A04, one_order),
    (
        Mutant::A13,
        rule::a_subscription_begins_where_it_is_ordered_to,
    ),
    (Mutant::A14, rule::a_hold_serves_once),
    (Mutant::A40, rule::what_is_forgotten_ends_the_order),
    (Mutant::A39, rule::a_hold_is_released_when_it_serves_nobody),
    (Mutant::A26, rule::changes_follow_each_other),
    (Mutant::A27, both_needs),
    (Mutant::A28, rule::skips_move_no_horizon),
    (Mutant::A29, rule::a_need_far_ahead_is_granted),
    (Mutant::A42, rule::a_ring_is_founded_nearby),
    (
        Mutant::A43,
        rule::a_ring_is_founded_behind_what_others_have_passed,
    ),
];

fn one_order() -> bool {
    (0..200).all(|seed| check::random(seed).is_none())
}

fn both_needs() -> bool {
    rule::who_is_idle_needs_its_ring_for_what_others_skip()
        && rule::several_that_are_idle_are_all_needed()
        && rule::a_round_that_is_waited_for_is_needed()
}

#[test]
fn each_broken_version_is_found_out() {
    for (_, rule) in RULES {
        assert!(rule());
    }
    for (mutant, rule) in RULES {
        mutants::set(Some(mutant));
        let holds = catch_unwind(rule).unwrap_or(false);
        mutants::set(None);
        assert!(!holds, "{mutant:?}: its rule holds");
    }
    by_property();
}

/// The properties by which traces show each.
const BY_PROPERTY: [(Mutant, &str); 3] = [
    (Mutant::A01, "AM-O"),
    (Mutant::A02, "AM-M"),
    (Mutant::A03, "AM-M"),
];

fn by_property() {
    assert!(traces::violated().is_empty());
    for (mutant, property) in BY_PROPERTY {
        mutants::set(Some(mutant));
        let violated = traces::violated();
        mutants::set(None);
        assert!(violated.contains(property), "{mutant:?}: {violated:?}");
    }
}

//! Nodes that are configured in different ways, as during each rolling change of a setting; and broken versions, whose
//! members do not agree on their settings.

#![allow(dead_code, reason = "not every scenario uses all of the network")]

#[path = "../pitfalls/app.rs"]
mod app;
mod ill;
mod lists;
#[path = "../pitfalls/net.rs"]
mod net;
mod rules;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A broken version is in force for all threads: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn windows_that_differ_are_agreed_on() {
    let _one = alone();
    rules::windows_that_differ_are_agreed_on();
}

#[test]
fn an_idle_ring_lasts_where_time_outs_differ() {
    let _one = alone();
    rules::an_idle_ring_lasts_where_time_outs_differ();
}

#[test]
fn while_a_list_grows_the_others_stay_together() {
    let _one = alone();
    lists::while_a_list_grows_the_others_stay_together();
}

#[test]
fn a_smaller_global_window_starves_nobody() {
    let _one = alone();
    rules::a_smaller_global_window_starves_nobody();
}

#[test]
fn a_message_that_others_must_not_submit_is_delivered_by_all() {
    let _one = alone();
    rules::a_message_that_others_must_not_submit_is_delivered_by_all();
}

#[test]
fn who_has_given_a_process_up_leaves_its_ring_alone() {
    let _one = alone();
    rules::who_has_given_a_process_up_leaves_its_ring_alone();
}

#[test]
fn both_say_what_differs() {
    let _one = alone();
    rules::both_say_what_differs();
}

#[test]
fn an_application_that_hangs_keeps_nobody_from_a_ring() {
    let _one = alone();
    ill::an_application_that_hangs_keeps_nobody_from_a_ring();
}

#[test]
fn an_application_that_hangs_is_not_waited_for() {
    let _one = alone();
    ill::an_application_that_hangs_is_not_waited_for();
}

#[test]
fn one_too_many_leaves_the_ring_as_it_is() {
    let _one = alone();
    ill::one_too_many_leaves_the_ring_as_it_is();
}

#[test]
fn of_too_many_the_first_form_a_ring() {
    let _one = alone();
    ill::of_too_many_the_first_form_a_ring();
}

#[test]
fn a_mute_member_leaves_the_others_in_peace() {
    let _one = alone();
    ill::a_mute_member_leaves_the_others_in_peace();
}

#[test]
fn who_stands_still_again_and_again_keeps_nobody_from_a_ring() {
    let _one = alone();
    ill::who_stands_still_again_and_again_keeps_nobody_from_a_ring();
}

#[test]
fn who_is_not_heard_by_one_keeps_the_ring_busy() {
    let _one = alone();
    ill::who_is_not_heard_by_one_keeps_the_ring_busy();
}

#[test]
fn who_dies_again_and_again_is_taken_in_less_and_less_often() {
    let _one = alone();
    ill::who_dies_again_and_again_is_taken_in_less_and_less_often();
}

#[test]
fn who_is_always_late_is_not_waited_for() {
    let _one = alone();
    ill::who_is_always_late_is_not_waited_for();
}

#[test]
fn who_comes_back_late_takes_nobody_apart() {
    let _one = alone();
    ill::who_comes_back_late_takes_nobody_apart();
}

#[test]
fn who_is_not_heard_by_one_is_heard_through_others() {
    let _one = alone();
    ill::who_is_not_heard_by_one_is_heard_through_others();
}

#[test]
fn a_primary_needs_a_majority_of_each_list_that_was_met() {
    let _one = alone();
    lists::a_primary_needs_a_majority_of_each_list_that_was_met();
}

#[test]
fn what_a_node_was_configured_with_before_counts_after_a_restart() {
    let _one = alone();
    lists::what_a_node_was_configured_with_before_counts_after_a_restart();
}

#[test]
fn what_was_met_counts_after_a_restart() {
    let _one = alone();
    lists::what_was_met_counts_after_a_restart();
}

#[test]
fn what_was_met_counts_for_one_that_is_alone() {
    let _one = alone();
    lists::what_was_met_counts_for_one_that_is_alone();
}

#[test]
fn a_list_that_nobody_has_any_more_is_forgotten_in_a_primary() {
    let _one = alone();
    lists::a_list_that_nobody_has_any_more_is_forgotten_in_a_primary();
}

#[test]
fn a_list_that_somebody_still_has_is_kept() {
    let _one = alone();
    lists::a_list_that_somebody_still_has_is_kept();
}

#[test]
fn more_lists_than_can_be_told_make_no_primary() {
    let _one = alone();
    lists::more_lists_than_can_be_told_make_no_primary();
}

#[test]
fn an_old_packet_is_no_sign_of_the_token() {
    let _one = alone();
    ill::an_old_packet_is_no_sign_of_the_token();
}

#[test]
fn who_leaves_of_its_own_will_is_not_left_alone() {
    let _one = alone();
    ill::who_leaves_of_its_own_will_is_not_left_alone();
}

/// Each rule fails where what it is about is broken.
#[test]
#[cfg(feature = "mutants")]
fn each_broken_version_is_found_out() {
    use rota_core::mutants::{self, Mutant};
    use std::panic::catch_unwind;

    /// What is broken, and what notices.
    type Rule = (Mutant, fn());

    let _one = alone();
    let rules: [Rule; 24] = [
        (
            Mutant::M27,
            rules::who_has_given_a_process_up_leaves_its_ring_alone,
        ),
        (Mutant::M42, rules::windows_that_differ_are_agreed_on),
        (
            Mutant::M42,
            rules::an_idle_ring_lasts_where_time_outs_differ,
        ),
        (Mutant::M42, rules::a_smaller_global_window_starves_nobody),
        (
            Mutant::M45,
            rules::a_message_that_others_must_not_submit_is_delivered_by_all,
        ),
        (
            Mutant::M43,
            ill::an_application_that_hangs_keeps_nobody_from_a_ring,
        ),
        (
            Mutant::M47,
            ill::who_is_not_heard_by_one_is_heard_through_others,
        ),
        (
            Mutant::M62,
            ill::who_is_not_heard_by_one_keeps_the_ring_busy,
        ),
        (Mutant::M46, ill::a_mute_member_leaves_the_others_in_peace),
        (
            Mutant::M48,
            ill::who_stands_still_again_and_again_keeps_nobody_from_a_ring,
        ),
        (
            Mutant::M61,
            ill::who_dies_again_and_again_is_taken_in_less_and_less_often,
        ),
        (Mutant::M49, ill::who_is_always_late_is_not_waited_for),
        (Mutant::M50, ill::who_comes_back_late_takes_nobody_apart),
        (
            Mutant::M51,
            ill::an_application_that_hangs_is_not_waited_for,
        ),
        (Mutant::M44, ill::one_too_many_leaves_the_ring_as_it_is),
        (
            Mutant::M63,
            lists::while_a_list_grows_the_others_stay_together,
        ),
        (
            Mutant::M52,
            lists::a_primary_needs_a_majority_of_each_list_that_was_met,
        ),
        (Mutant::M52, lists::what_was_met_counts_after_a_restart),
        (
            Mutant::M53,
            lists::what_a_node_was_configured_with_before_counts_after_a_restart,
        ),
        (Mutant::M53, lists::what_was_met_counts_after_a_restart),
        (Mutant::M56, lists::a_list_that_somebody_still_has_is_kept),
        (Mutant::M57, ill::an_old_packet_is_no_sign_of_the_token),
        (
            Mutant::M58,
            ill::who_leaves_of_its_own_will_is_not_left_alone,
        ),
        (Mutant::M44, ill::of_too_many_the_first_form_a_ring),
    ];
    for (index, (mutant, rule)) in rules.into_iter().enumerate() {
        mutants::set(Some(mutant));
        let holds = catch_unwind(rule).is_ok();
        mutants::set(None);
        assert!(!holds, "{mutant}, rule {index}: it holds all the same");
    }
}

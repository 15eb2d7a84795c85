//! Nodes that are configured in different ways, as during each rolling change of a setting; and what becomes of them where
//! nothing is agreed on.

#![allow(dead_code, reason = "not every scenario uses all of the network")]

#[path = "../pitfalls/app.rs"]
mod app;
#[path = "../pitfalls/net.rs"]
mod net;
mod rules;

use std::panic::catch_unwind;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rota_core::mutants::{self, Mutant};

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
fn a_smaller_global_window_starves_nobody() {
    let _one = alone();
    rules::a_smaller_global_window_starves_nobody();
}

#[test]
fn both_say_what_differs() {
    let _one = alone();
    rules::both_say_what_differs();
}

/// Where each takes its own settings, each of these fails.
#[test]
#[cfg(feature = "mutants")]
fn where_each_takes_its_own_settings_all_of_that_breaks() {
    let _one = alone();
    for (name, rule) in [
        ("windows", rules::windows_that_differ_are_agreed_on as fn()),
        (
            "time-outs",
            rules::an_idle_ring_lasts_where_time_outs_differ,
        ),
        (
            "global window",
            rules::a_smaller_global_window_starves_nobody,
        ),
    ] {
        mutants::set(Some(Mutant::M42));
        let holds = catch_unwind(rule).is_ok();
        mutants::set(None);
        assert!(!holds, "{name}: the rule holds all the same");
    }
}

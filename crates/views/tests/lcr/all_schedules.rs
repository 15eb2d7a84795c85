//! Exhaustive searches.

use super::model::{Paper, Real, search};

fn found(states: Result<usize, String>, at_least: usize) {
    let states = states.unwrap_or_else(|error| panic!("{error}"));
    println!("{states} states");
    assert!(states >= at_least, "{states}");
}

#[test]
fn the_head_of_what_is_pending_may_be_delivered_when_it_is_stable() {
    found(search(Paper::new(1, 3, false), 3), 3);
    found(search(Paper::new(2, 3, false), 6), 1000);
    found(search(Paper::new(3, 2, false), 6), 50_000);
    found(search(Paper::new(4, 1, false), 4), 5000);
}

#[test]
fn an_acknowledgement_must_not_overtake_packets() {
    let error = search(Paper::new(3, 2, true), 6).expect_err("it breaks the order");
    assert!(error.starts_with("order"), "{error}");
}

#[test]
fn one_by_one() {
    found(search(Real::new(1, 3, false, 1), 3), 3);
    found(search(Real::new(2, 3, false, 1), 6), 1000);
    found(search(Real::new(3, 2, false, 1), 6), 50_000);
    found(search(Real::new(4, 1, false, 1), 4), 5000);
}

#[test]
fn in_batches() {
    found(search(Real::new(2, 2, true, 1), 4), 1000);
    found(search(Real::new(2, 2, true, 1000), 4), 1000);
    found(search(Real::new(3, 1, true, 1), 3), 1000);
    found(search(Real::new(3, 1, true, 1000), 3), 1000);
}

#[test]
fn over_links_that_break() {
    found(search(Real::new(2, 2, false, 1).breaking(1), 4), 5000);
    found(search(Real::new(2, 1, false, 1).breaking(2), 2), 500);
    found(search(Real::new(2, 1, true, 1000).breaking(1), 2), 1000);
    found(search(Real::new(3, 1, false, 1).breaking(1), 3), 5000);
    // Larger ones take minutes.
    if std::env::var_os("ROTA_DEEP").is_some() {
        found(search(Real::new(2, 3, false, 1).breaking(2), 6), 20_000);
        found(search(Real::new(2, 2, true, 1000).breaking(1), 4), 20_000);
        found(search(Real::new(3, 1, false, 1).breaking(2), 3), 20_000);
        found(search(Real::new(3, 1, true, 1000).breaking(1), 3), 20_000);
    }
}

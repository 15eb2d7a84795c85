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

//! Steps of FastCast, one by one.

use super::acks::Acks;
use super::gap::Gap;
use super::patience::{RoundTrip, Watch};
use rota_core::contract::Time;

const MILLIS: u64 = 1_000_000;

#[test]
fn what_all_have_acknowledged_is_the_lowest_that_anybody_has() {
    let mut acks = Acks::new(3);
    acks.on_acked(0, 7);
    acks.on_acked(1, 5);
    assert_eq!((acks.ready(), acks.behind(6)), (0, 0b110));
    acks.on_acked(2, 6);
    assert_eq!(acks.ready(), 5);
    // Old words change nothing.
    acks.on_acked(1, 4);
    assert_eq!(acks.ready(), 5);
    acks.on_acked(1, 9);
    assert_eq!((acks.ready(), acks.behind(7)), (6, 0b100));
}

#[test]
fn what_all_have_delivered_and_who_is_slowest() {
    let mut acks = Acks::new(2);
    acks.on_delivered(0, 3);
    assert_eq!((acks.released(), acks.slowest()), (0, 0b10));
    acks.on_delivered(1, 2);
    assert_eq!((acks.released(), acks.slowest()), (2, 0b10));
    acks.on_have(1, 0, 4);
    acks.on_have(1, 0, 3);
    assert_eq!((acks.have(1, 0), acks.lacking(0, 4)), (4, 0b01));
}

#[test]
fn a_gap_is_asked_for_after_a_while_and_again_after_a_round_trip_and_then_ever_later() {
    let patience = RoundTrip::new();
    let mut gap = Gap::default();
    let begin = Time(1_000);
    gap.update(begin, 4, 9);
    let due = gap.due_at(&patience, true).expect("a gap");
    assert!(due > begin && due < begin.after(MILLIS));
    assert!(
        gap.due_at(&patience, false) > Some(due),
        "hearsay waits longer"
    );
    let mut last = due;
    let mut waited = 0;
    for _ in 0..4 {
        gap.on_asked(last, 9, &patience);
        let again = gap.due_at(&patience, true).expect("still a gap");
        assert!(again.since(last) > waited, "it waits longer each time");
        waited = again.since(last);
        last = again;
    }
    gap.update(last, 9, 9);
    assert_eq!(gap.due_at(&patience, true), None);
}

#[test]
fn a_new_gap_above_one_that_was_asked_for_waits_for_its_own_time() {
    let patience = RoundTrip::new();
    let mut gap = Gap::default();
    gap.update(Time(0), 4, 6);
    gap.on_asked(Time(0), 6, &patience);
    assert!(gap.asked_for(6) && !gap.asked_for(7));
    assert!(!gap.first_to_come(7) && gap.first_to_come(5) && !gap.first_to_come(6));
    assert!(gap.first_to_come_twice(6) && !gap.first_to_come_twice(5));
    // The requested packets have come, but more are missing now.
    gap.update(Time(9_000), 6, 8);
    let due = gap.due_at(&patience, true).expect("a gap");
    assert!(due > Time(9_000) && due < Time(MILLIS));
}

#[test]
fn timeouts_follow_what_is_measured_and_back_off_up_to_a_bound() {
    let mut patience = RoundTrip::new();
    let before = patience.timeout();
    for round in 0..20 {
        let now = Time(round * 100 * MILLIS);
        patience.begin(now, round + 1);
        patience.answered(now.after(30 * MILLIS), round);
        patience.answered(now.after(40 * MILLIS), round + 1);
    }
    assert!(patience.timeout() > before && patience.timeout() < 100 * MILLIS);
    assert!(patience.round_trip().abs_diff(40 * MILLIS) < MILLIS);
    let tries = (0..40).map(|tries| patience.backed_off(tries));
    assert!(tries.clone().is_sorted());
    assert!(tries.max() <= Some(200 * MILLIS));
}

#[test]
fn what_was_sent_again_is_not_timed() {
    let mut patience = RoundTrip::new();
    let before = patience.round_trip();
    patience.begin(Time(0), 1);
    patience.spoil();
    patience.answered(Time(90 * MILLIS), 1);
    assert_eq!(patience.round_trip(), before);
}

#[test]
fn who_asks_too_early_waits_longer_and_less_long_when_it_was_right() {
    let mut patience = RoundTrip::new();
    let before = patience.grace(false);
    patience.on_asked_too_early();
    let longer = patience.grace(false);
    assert_eq!(longer, 2 * before);
    for _ in 0..100 {
        patience.on_repaired();
    }
    assert_eq!(patience.grace(false), before);
    for _ in 0..100 {
        patience.on_asked_too_early();
    }
    assert!(patience.grace(false) < 100 * MILLIS);
}

#[test]
fn a_watch_is_due_until_what_it_watches_moves() {
    let patience = RoundTrip::new();
    let mut watch = Watch::default();
    watch.update(Time(0), true, 1);
    let due = watch.due_at(&patience).expect("open");
    watch.update(Time(5), true, 1);
    assert_eq!(watch.due_at(&patience), Some(due), "nothing has moved");
    watch.again(due);
    let later = watch.due_at(&patience).expect("open");
    assert!(later.since(due) > due.since(Time(0)));
    watch.update(later, true, 2);
    assert_eq!(
        watch.due_at(&patience),
        Some(later.after(due.since(Time(0))))
    );
    watch.update(later, false, 2);
    assert_eq!(watch.due_at(&patience), None);
}

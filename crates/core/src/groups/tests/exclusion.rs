//! Engines with primary views alone: a daemon that is in none, and comes back.

use alloc::vec::Vec;

use super::cluster::{Cluster, group};
use crate::groups::RequestError;

const NOTHING: [&str; 0] = [];

/// Three daemons in ring 9 with a member of g each; h has a member on the third only.
fn three() -> Cluster {
    let mut cluster = Cluster::together(3);
    for (at, client, name) in [(1, "a", "g"), (2, "b", "g"), (3, "c", "g"), (3, "c", "h")] {
        cluster.join(at, client, name);
    }
    cluster.exchange(&[1, 2, 3]);
    cluster.hush();
    cluster
}

/// The third is in no view, and the others go on in ring 10.
fn cut_off(cluster: &mut Cluster) {
    cluster.excluded(&[3]);
    cluster.regular(&[1, 2], 10);
    cluster.exchange(&[1, 2]);
}

/// All are in ring 11. Of what the third had submitted all up to this had been delivered.
fn back(cluster: &mut Cluster, own: u64) {
    cluster.missed(&[3], own);
    cluster.regular(&[1, 2, 3], 11);
    cluster.exchange(&[1, 2, 3]);
}

#[test]
fn its_clients_are_told_and_come_back_by_network_in_a_set_of_their_own() {
    let mut cluster = three();
    cut_off(&mut cluster);
    assert_eq!(cluster.told(1), ["a: g@10/1 1a 2b sets 1a 2b"]);
    assert_eq!(cluster.told(3), ["c: excluded"]);
    back(&mut cluster, 0);
    assert_eq!(cluster.told(1), ["a: g@11/1 1a 2b 3c sets 3c | 1a 2b"]);
    // Nobody else is in h: its members have missed something all the same.
    let told = [
        "c: included, missed",
        "c: g@11/1 1a 2b 3c sets 3c | 1a 2b",
        "c: h@11/2 3c sets 3c",
    ];
    assert_eq!(cluster.told(3), told);
}

/// The next view comes before all have told what they know: they tell it again, and nobody has come together.
#[test]
fn an_exchange_that_the_next_view_cuts_off_is_begun_again() {
    let mut cluster = three();
    cluster.regular(&[1, 2], 10);
    let one = cluster.submitted(1).expect("what it knows");
    cluster.deliver(&[1, 2], &one);
    assert_eq!(cluster.daemon(1).counters().interrupted, 0);
    cluster.regular(&[1, 2], 11);
    cluster.exchange(&[1, 2]);
    for at in [1, 2] {
        assert_eq!(cluster.daemon(at).counters().interrupted, 1);
    }
    assert_eq!(cluster.told(1), ["a: g@11/1 1a 2b sets 1a | 2b"]);
}

#[test]
fn what_others_have_delivered_is_not_sent_again_and_what_they_have_not_is() {
    let mut cluster = three();
    cluster.send(3, "c", "g", "delivered");
    cluster.send(3, "c", "g", "lost");
    let delivered = cluster.submitted(3).expect("a message");
    let lost = cluster.submitted(3).expect("a message");
    cluster.deliver(&[1, 2], &delivered);
    cut_off(&mut cluster);
    cluster.hush();
    back(&mut cluster, delivered.id.counter);
    // Its engine sends that once more, and it counts for nobody.
    cluster.deliver(&[1, 2, 3], &lost);
    let told = cluster.told(1);
    assert_eq!(told, ["a: g@11/1 1a 2b 3c sets 3c | 1a 2b", "a: lost"]);
    assert_eq!(cluster.told(3).last().map(|told| &**told), Some("c: lost"));
    assert_eq!(cluster.daemon(3).waiting_requests(), 0);
}

#[test]
fn what_is_asked_for_meanwhile_waits_within_bounds() {
    let mut cluster = three();
    cluster.excluded(&[3]);
    cluster.send(3, "c", "g", "later");
    assert!(!cluster.daemon(3).has_to_submit());
    assert_eq!(cluster.daemon(3).to_submit(), None);
    let c = cluster.client(3, "c");
    // It fits beside nothing else.
    let large = (256 << 10) - 64;
    assert_eq!(cluster.daemon(3).has_room(c, large), Ok(false));
    cluster.regular(&[1, 2], 10);
    cluster.exchange(&[1, 2]);
    cluster.hush();
    back(&mut cluster, 0);
    assert_eq!(cluster.told(1).last().map(|told| &**told), Some("a: later"));
    assert_eq!(cluster.daemon(3).has_room(c, large), Ok(true));
}

#[test]
fn who_connects_meanwhile_is_told_first_and_may_ask() {
    let mut cluster = three();
    cluster.excluded(&[3]);
    cluster.hush();
    cluster.join(3, "d", "h");
    assert_eq!(cluster.told(3), ["d: excluded"]);
    cluster.regular(&[1, 2], 10);
    cluster.exchange(&[1, 2]);
    back(&mut cluster, 0);
    let told = cluster.told(3);
    assert_eq!(told[0], "c,d: included, missed");
    assert_eq!(
        told.last().map(|told| &**told),
        Some("c,d: h@11/3 3c 3d +3d")
    );
}

#[test]
fn who_misses_nothing_goes_on_where_it_stopped() {
    let mut cluster = three();
    cluster.send(3, "c", "g", "one");
    let one = cluster.submitted(3).expect("a message");
    cluster.excluded(&[1, 3]);
    cluster.hush();
    // What all have of the old view is delivered before the next one begins.
    cluster.deliver(&[1, 2, 3], &one);
    assert_eq!(cluster.told(3), ["c: included", "c: one"]);
    cluster.told(1);
    cluster.regular(&[1, 2, 3], 10);
    cluster.exchange(&[1, 2, 3]);
    assert_eq!(cluster.told(3), NOTHING);
    // With nothing left to deliver, it is told when all know the same.
    cluster.excluded(&[3]);
    cluster.regular(&[1, 2, 3], 11);
    assert_eq!(cluster.told(3), ["c: excluded"]);
    cluster.exchange(&[1, 2, 3]);
    assert_eq!(cluster.told(3), ["c: included"]);
    assert_eq!(cluster.told(1), NOTHING);
}

#[test]
fn who_misses_views_without_having_been_told_is_told_then() {
    let mut cluster = three();
    cluster.regular(&[1, 2], 10);
    cluster.exchange(&[1, 2]);
    cluster.missed(&[3], 0);
    cluster.regular(&[1, 2, 3], 11);
    assert_eq!(cluster.told(3), ["c: excluded"]);
    // And misses more, before it is told what there is.
    cluster.regular(&[1, 2], 12);
    cluster.exchange(&[1, 2]);
    cluster.missed(&[3], 0);
    cluster.regular(&[1, 2, 3], 13);
    cluster.exchange(&[1, 2, 3]);
    let told = cluster.told(3);
    assert_eq!(told[0], "c: included, missed");
    assert_eq!(told.len(), 3, "{told:?}");
}

#[test]
fn two_that_are_left_out_of_one_view_do_not_come_back_together() {
    let mut cluster = Cluster::together(5);
    for at in 1..=5 {
        cluster.join(at, "a", "g");
    }
    cluster.exchange(&[1, 2, 3, 4, 5]);
    cluster.excluded(&[4, 5]);
    cluster.regular(&[1, 2, 3], 10);
    cluster.exchange(&[1, 2, 3]);
    cluster.hush();
    cluster.missed(&[4, 5], 0);
    cluster.regular(&[1, 2, 3, 4, 5], 11);
    cluster.exchange(&[1, 2, 3, 4, 5]);
    let view = "a: g@11/1 1a 2a 3a 4a 5a sets 4a | 5a | 1a 2a 3a";
    assert_eq!(cluster.told(1), [view]);
    assert_eq!(cluster.told(5), ["a: included, missed", view]);
}

#[test]
fn who_was_seen_to_disconnect_does_not_come_back_and_who_joined_does_so_again() {
    let mut cluster = three();
    cluster.join(3, "d", "g");
    cluster.join(3, "e", "g");
    let (d, e) = (cluster.client(3, "d"), cluster.client(3, "e"));
    cluster.daemon(3).disconnect(d);
    let seen: Vec<_> = (0..3)
        .map(|_| cluster.submitted(3).expect("a request"))
        .collect();
    for request in &seen {
        cluster.deliver(&[1, 2], request);
    }
    cut_off(&mut cluster);
    cluster.hush();
    back(&mut cluster, seen[2].id.counter);
    let told = cluster.told(1);
    let expected = [
        "a: g@11/1 1a 2b 3c sets 3c | 1a 2b",
        "a: g@11/3 1a 2b 3c 3e +3e",
    ];
    assert_eq!(told, expected);
    assert!(cluster.daemon(3).member(e).is_ok());
    assert_eq!(cluster.daemon(3).member(d), Err(RequestError::NotConnected));
    assert_eq!(cluster.daemon(3).list_members(&group("g")).len(), 4);
}

/// Found by the simulator: fastcast, seed 76.
#[test]
fn who_goes_before_it_has_told_what_it_knows_is_told_as_gone() {
    let mut cluster = three();
    cluster.regular(&[1, 2, 3], 10);
    // Nobody has told anything yet.
    cluster.regular(&[1, 2], 11);
    cluster.regular(&[1], 12);
    cluster.exchange(&[1]);
    assert_eq!(cluster.told(1), ["a: g@12/1 1a sets 1a"]);
    // Who shares nothing has missed nothing.
    cluster.regular(&[3], 11);
    cluster.exchange(&[3]);
    assert_eq!(cluster.told(3), ["c: g@11/1 3c sets 3c"]);
}

//! A client that is made to skip: for the others it disconnects and joins again, and every event is either
//! one that it gets or one that it is known to miss.

use alloc::vec::Vec;

use super::cluster::{Cluster, group};

const NOTHING: [&str; 0] = [];

/// Two daemons in ring 9; g has a member on each, h on the first only.
fn two() -> Cluster {
    let mut cluster = Cluster::together(2);
    cluster.join(1, "a", "g");
    cluster.join(2, "b", "g");
    cluster.join(1, "a", "h");
    cluster.exchange(&[1, 2]);
    cluster.hush();
    cluster
}

#[test]
fn others_see_a_disconnect_and_then_a_join() {
    let mut cluster = two();
    assert!(cluster.restart(1, "a"));
    cluster.exchange(&[1, 2]);
    assert_eq!(cluster.told(2), ["b: g@9/4 2b ~1a", "b: g@9/5 1a 2b +1a"]);
    assert_eq!(cluster.told(1), ["a: g@9/5 1a 2b +1a", "a: h@9/6 1a +1a"]);
}

#[test]
fn it_misses_what_is_ordered_before_its_disconnect_and_gets_what_follows_its_joins() {
    let mut cluster = two();
    cluster.send(2, "b", "g", "early");
    let early = cluster.submitted(2).expect("a message");
    assert!(cluster.restart(1, "a"));
    cluster.deliver(&[1, 2], &early);
    assert_eq!(cluster.told(1), ["a-: early"]);
    let missing = cluster.client(1, "a-");
    assert!(cluster.daemon(1).member(missing).is_ok());
    let disconnect = cluster.submitted(1).expect("the disconnect");
    cluster.deliver(&[1, 2], &disconnect);
    assert!(cluster.daemon(1).member(missing).is_err());
    assert_eq!(cluster.told(1), NOTHING);
    cluster.exchange(&[1]);
    cluster.hush();
    cluster.send(1, "a", "h", "late");
    cluster.exchange(&[1, 2]);
    assert_eq!(cluster.told(1), ["a: late"]);
}

#[test]
fn what_it_had_asked_for_takes_effect_before() {
    let mut cluster = two();
    cluster.leave(1, "a", "h");
    cluster.join(1, "a", "i");
    assert!(cluster.restart(1, "a"));
    cluster.exchange(&[1, 2]);
    let told = cluster.told(1);
    let expected = [
        "a-: h left",
        "a-: i@9/4 1a +1a",
        "a: g@9/6 1a 2b +1a",
        "a: i@9/7 1a +1a",
    ];
    assert_eq!(told, expected);
}

#[test]
fn it_is_made_to_skip_again_only_when_it_has_come_back() {
    let mut cluster = two();
    assert!(cluster.restart(1, "a"));
    assert!(!cluster.restart(1, "a"), "its disconnect has no place yet");
    let disconnect = cluster.submitted(1).expect("the disconnect");
    cluster.deliver(&[1, 2], &disconnect);
    assert!(cluster.restart(1, "a"));
    cluster.exchange(&[1, 2]);
    let members = cluster.daemon(2).list_members(&group("g"));
    assert_eq!(members.len(), 2);
    assert_eq!(members[0].connection, cluster.client(1, "a"));
}

#[test]
fn one_that_goes_meanwhile_is_gone() {
    let mut cluster = two();
    assert!(cluster.restart(1, "a"));
    let (missing, now) = (cluster.client(1, "a-"), cluster.client(1, "a"));
    cluster.daemon(1).disconnect(now);
    assert!(cluster.daemon(1).member(missing).is_err());
    cluster.forget(1, "a");
    let later = cluster.client(1, "a");
    cluster.join(1, "a", "g");
    cluster.exchange(&[1, 2]);
    assert_eq!(cluster.told(1), ["a: g@9/8 1a 2b +1a"]);
    assert!(cluster.daemon(1).member(later).is_ok());
    let members: Vec<_> = cluster.daemon(2).list_members(&group("g"));
    assert_eq!(members.len(), 2);
}

#[test]
fn a_configuration_may_change_before_it_is_back() {
    let mut cluster = two();
    assert!(cluster.restart(1, "a"));
    let disconnect = cluster.submitted(1).expect("the disconnect");
    cluster.transitional(&[1], 9, 10);
    cluster.transitional(&[2], 9, 11);
    cluster.regular(&[1], 10);
    cluster.regular(&[2], 11);
    // Too late: it counts for nobody, and is sent again.
    cluster.deliver(&[1], &disconnect);
    assert_eq!(cluster.told(1), ["a-: g!9/3", "a-: g@10/1 1a sets 1a"]);
    cluster.exchange(&[1]);
    assert_eq!(cluster.told(1), ["a: g@10/2 1a +1a", "a: h@10/3 1a +1a"]);
}

/// A large message goes in parts, each of which may overtake the disconnect.
#[test]
fn a_large_message_waits_until_its_disconnect_has_its_place() {
    let mut cluster = two();
    let large = 1 << 20;
    assert!(cluster.restart(1, "a"));
    let next = cluster.client(1, "a");
    assert_eq!(cluster.daemon(1).has_room(next, large), Ok(false));
    let disconnect = cluster.submitted(1).expect("the disconnect");
    cluster.deliver(&[1, 2], &disconnect);
    cluster.exchange(&[1, 2]);
    assert_eq!(cluster.daemon(1).has_room(next, large), Ok(true));
}

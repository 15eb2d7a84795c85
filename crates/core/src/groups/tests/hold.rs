//! Holds of daemons for clients that read too slowly: all daemons make their senders wait, and none for ever.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use bytes::Bytes;

use super::cluster::{Cluster, group};
use super::{process, ring};
use crate::contract::{NodeId, Time};
use crate::groups::hold::{self, Holding};
use crate::groups::message::{Told, parse};
use crate::groups::{ClientName, Destination, Hold, HoldFor, MOST_HELD};

const MS: u64 = 1_000_000;

fn name(text: &str) -> ClientName {
    ClientName::new(text).expect("a name")
}

fn to(text: &str) -> Destination {
    Destination::Group(group(text))
}

/// These groups, for a client of that name.
fn held_for(client: &str, groups: &[&str]) -> HoldFor {
    groups.iter().map(|at| (to(at), name(client))).collect()
}

/// What a daemon takes to be held: the group, for whom.
fn holds(cluster: &mut Cluster, at: usize) -> Vec<String> {
    let show = |hold: Hold| match hold.to {
        Destination::Group(group) => format!("{group} for {}{}", hold.daemon.node, hold.client),
        Destination::Client(client, node) => format!("#{client}#{node}"),
    };
    cluster.daemon(at).holds().map(show).collect()
}

fn waits(cluster: &mut Cluster, at: usize, groups: &[&str], ms: u64) -> Option<String> {
    waits_as("asker", cluster, at, groups, ms)
}

/// For whom a client of that name waits.
fn waits_as(
    client: &str,
    cluster: &mut Cluster,
    at: usize,
    groups: &[&str],
    ms: u64,
) -> Option<String> {
    let to: Vec<Destination> = groups.iter().map(|at| to(at)).collect();
    let client = cluster.client(at, client);
    let hold = cluster.daemon(at).waits(client, &to, Time(ms * MS))?;
    Some(hold.client.to_string())
}

const NOTHING: [&str; 0] = [];

#[test]
fn a_hold_counts_at_all_daemons_until_it_is_taken_back() {
    let mut cluster = Cluster::together(3);
    assert!(!cluster.daemon(1).holds_changed());
    cluster.daemon(1).hold(held_for("slow", &["g"]), 500);
    assert_eq!(holds(&mut cluster, 1), NOTHING, "not before it has a place");
    cluster.exchange(&[1, 2, 3]);
    for at in 1..=3 {
        assert!(cluster.daemon(at).holds_changed());
        assert!(!cluster.daemon(at).holds_changed());
        assert_eq!(holds(&mut cluster, at), ["g for 1slow"]);
        assert_eq!(waits(&mut cluster, at, &["h"], 0), None);
        let both = waits(&mut cluster, at, &["h", "g"], 0);
        assert_eq!(both.as_deref(), Some("slow"));
    }
    cluster.daemon(1).hold(HoldFor::new(), 500);
    cluster.exchange(&[1, 2, 3]);
    for at in 1..=3 {
        assert!(cluster.daemon(at).holds_changed());
        assert_eq!(waits(&mut cluster, at, &["g"], 0), None);
    }
}

#[test]
fn what_several_daemons_hold_is_held_until_the_last_lets_go() {
    let mut cluster = Cluster::together(3);
    cluster.daemon(1).hold(held_for("a", &["g"]), 500);
    cluster.daemon(2).hold(held_for("b", &["g", "h"]), 500);
    cluster.exchange(&[1, 2, 3]);
    assert_eq!(holds(&mut cluster, 3), ["g for 1a", "g for 2b", "h for 2b"]);
    cluster.daemon(1).hold(HoldFor::new(), 500);
    cluster.exchange(&[1, 2, 3]);
    assert_eq!(waits(&mut cluster, 3, &["g"], 0).as_deref(), Some("b"));
    cluster.daemon(2).hold(held_for("b", &["h"]), 500);
    cluster.exchange(&[1, 2, 3]);
    assert_eq!(waits(&mut cluster, 3, &["g"], 0), None);
    assert_eq!(waits(&mut cluster, 3, &["h"], 0).as_deref(), Some("b"));
}

/// It may not read before it has written.
#[test]
fn nobody_waits_for_itself() {
    let mut cluster = Cluster::together(2);
    cluster.daemon(1).hold(held_for("slow", &["g"]), 500);
    cluster.daemon(2).hold(held_for("other", &["h"]), 500);
    cluster.exchange(&[1, 2]);
    let mut waits = |client: &str, at: usize, groups: &[&str], ms: u64| {
        waits_as(client, &mut cluster, at, groups, ms)
    };
    assert_eq!(waits("slow", 1, &["g"], 0), None);
    // It has not begun to be the time that somebody waits, either.
    assert_eq!(waits("ann", 1, &["g"], 600).as_deref(), Some("slow"));
    assert_eq!(waits("slow", 2, &["g"], 600).as_deref(), Some("slow"));
    let both = waits("slow", 1, &["g", "h"], 600);
    assert_eq!(both.as_deref(), Some("other"));
}

/// Its messages may be what is too much.
#[test]
fn it_goes_ahead_of_what_clients_of_its_daemon_ask_for() {
    let mut cluster = Cluster::together(2);
    cluster.send(1, "ann", "g", "much");
    cluster.daemon(1).hold(held_for("slow", &["g"]), 500);
    let first = cluster.submitted(1).expect("something");
    let told = parse(process(1), &first.payload).expect("a message").told;
    assert!(matches!(told, Told::Holding(_)), "{told:?}");
}

#[test]
fn one_is_under_way_at_a_time_and_what_changed_back_meanwhile_is_not_told() {
    let mut cluster = Cluster::together(2);
    cluster.daemon(1).hold(held_for("slow", &["g"]), 500);
    let first = cluster.submitted(1).expect("something");
    cluster.daemon(1).hold(HoldFor::new(), 500);
    assert!(!cluster.daemon(1).has_to_submit());
    cluster.daemon(1).hold(held_for("slow", &["g"]), 500);
    cluster.deliver(&[1, 2], &first);
    assert!(!cluster.daemon(1).has_to_submit());
    assert_eq!(holds(&mut cluster, 2), ["g for 1slow"]);
}

#[test]
fn nobody_waits_longer_than_a_hold_says() {
    let mut cluster = Cluster::together(2);
    cluster.daemon(1).hold(held_for("slow", &["g"]), 500);
    cluster.exchange(&[1, 2]);
    assert!(waits(&mut cluster, 2, &["g"], 1_000).is_some());
    assert!(waits(&mut cluster, 2, &["g"], 1_499).is_some());
    // Saying it again, with something else, does not make it longer.
    cluster.daemon(1).hold(held_for("slow", &["g", "h"]), 500);
    cluster.exchange(&[1, 2]);
    assert_eq!(waits(&mut cluster, 2, &["g"], 1_500), None);
    assert!(waits(&mut cluster, 2, &["g", "h"], 1_500).is_some());
    assert_eq!(waits(&mut cluster, 2, &["g"], 9_000), None);
    assert_eq!(cluster.daemon(2).counters().expired, 1);
    // One that was taken back is not the one after.
    cluster.daemon(1).hold(HoldFor::new(), 500);
    cluster.exchange(&[1, 2]);
    cluster.daemon(1).hold(held_for("slow", &["g"]), 500);
    cluster.exchange(&[1, 2]);
    assert!(waits(&mut cluster, 2, &["g"], 9_000).is_some());
}

#[test]
fn the_time_of_all_who_hold_a_group_runs_at_once() {
    let mut cluster = Cluster::together(3);
    cluster.daemon(1).hold(held_for("a", &["g"]), 500);
    cluster.daemon(2).hold(held_for("b", &["g"]), 500);
    cluster.exchange(&[1, 2, 3]);
    assert!(waits(&mut cluster, 3, &["g"], 0).is_some());
    assert_eq!(waits(&mut cluster, 3, &["g"], 500), None);
}

#[test]
fn what_a_daemon_held_that_has_gone_is_free() {
    let mut cluster = Cluster::together(3);
    cluster.daemon(1).hold(held_for("slow", &["g"]), 500);
    cluster.exchange(&[1, 2, 3]);
    cluster.transitional(&[2, 3], 9, 10);
    assert!(cluster.daemon(2).holds_changed());
    assert_eq!(holds(&mut cluster, 2), NOTHING);
    cluster.regular(&[2, 3], 10);
    cluster.exchange(&[2, 3]);
    assert_eq!(holds(&mut cluster, 2), NOTHING);
    assert_eq!(waits(&mut cluster, 3, &["g"], 0), None);
}

#[test]
fn a_daemon_that_stays_says_it_again_also_to_those_who_have_come() {
    let mut cluster = Cluster::together(3);
    cluster.daemon(1).hold(held_for("slow", &["g"]), 500);
    cluster.exchange(&[1, 2, 3]);
    cluster.transitional(&[1, 2], 9, 10);
    cluster.transitional(&[3], 9, 11);
    cluster.regular(&[1, 2], 10);
    cluster.regular(&[3], 11);
    cluster.exchange(&[1, 2]);
    assert_eq!(holds(&mut cluster, 2), ["g for 1slow"]);
    assert_eq!(holds(&mut cluster, 3), NOTHING);
    cluster.transitional(&[1, 2], 10, 12);
    cluster.transitional(&[3], 11, 12);
    cluster.regular(&[1, 2, 3], 12);
    assert_eq!(holds(&mut cluster, 1), NOTHING);
    // First what each knows, and then this.
    cluster.exchange(&[1, 2, 3]);
    cluster.exchange(&[1, 2, 3]);
    for at in 1..=3 {
        assert!(cluster.is_operational(at));
        assert_eq!(holds(&mut cluster, at), ["g for 1slow"]);
    }
    cluster.daemon(1).hold(HoldFor::new(), 500);
    cluster.exchange(&[1, 2, 3]);
    assert_eq!(holds(&mut cluster, 3), NOTHING);
}

/// It may be let go before the others know of each other's groups.
#[test]
fn what_is_ordered_too_late_holds_nothing() {
    let mut cluster = Cluster::together(2);
    cluster.daemon(1).hold(held_for("slow", &["g"]), 500);
    let late = cluster.submitted(1).expect("something");
    cluster.transitional(&[1], 9, 10);
    cluster.transitional(&[2], 9, 10);
    cluster.regular(&[1, 2], 10);
    cluster.daemon(1).hold(HoldFor::new(), 500);
    cluster.exchange(&[1, 2]);
    cluster.deliver(&[1, 2], &late);
    assert_eq!(holds(&mut cluster, 2), NOTHING);
    assert!(!cluster.daemon(1).has_to_submit());
    // And it can be said anew.
    cluster.daemon(1).hold(held_for("slow", &["g"]), 500);
    cluster.exchange(&[1, 2]);
    assert_eq!(holds(&mut cluster, 2), ["g for 1slow"]);
}

/// Its engine may never deliver it.
#[test]
fn one_that_was_under_way_when_a_configuration_ended_is_said_again() {
    let mut cluster = Cluster::together(2);
    cluster.daemon(1).hold(held_for("slow", &["g"]), 500);
    cluster.submitted(1).expect("something");
    cluster.transitional(&[1], 9, 10);
    cluster.transitional(&[2], 9, 10);
    cluster.regular(&[1, 2], 10);
    // First what each knows, and then this.
    cluster.exchange(&[1, 2]);
    cluster.exchange(&[1, 2]);
    assert_eq!(holds(&mut cluster, 2), ["g for 1slow"]);
    cluster.daemon(1).hold(HoldFor::new(), 500);
    cluster.exchange(&[1, 2]);
    assert_eq!(holds(&mut cluster, 2), NOTHING);
}

#[test]
fn more_than_fits_is_left_out_and_a_message_is_no_longer_than_a_piece() {
    let mut cluster = Cluster::together(2);
    let long = |at: usize| to(&format!("{at:a>31}"));
    let all: HoldFor = (0..=MOST_HELD)
        .map(|at| (long(at), name("0123456789")))
        .collect();
    cluster.daemon(1).hold(all.clone(), u32::MAX);
    let message = cluster.submitted(1).expect("something");
    assert!(message.payload.len() <= crate::groups::PIECE_BYTES);
    cluster.deliver(&[1, 2], &message);
    let held: Vec<Destination> = cluster.daemon(2).holds().map(|hold| hold.to).collect();
    let first: Vec<Destination> = all.into_keys().take(MOST_HELD).collect();
    assert_eq!(held, first);
    assert!(!cluster.daemon(1).has_to_submit());
}

#[test]
fn a_message_is_read_whole_or_not_at_all() {
    let own = Destination::Client(name("slow"), NodeId::new(1).expect("not 0"));
    let mut holding = held_for("slow", &["g", "h"]);
    holding.insert(own, name("slow"));
    let holding = Holding {
        most_ms: 7,
        to: holding,
    };
    let mut bytes = Vec::new();
    hold::write(&holding, ring(5), &mut bytes);
    let bytes = Bytes::from(bytes);
    let told = |from: u16, bytes: &Bytes| parse(process(from), bytes).map(|told| told.told);
    assert_eq!(told(1, &bytes), Some(Told::Holding(holding.clone())));
    assert_eq!(told(2, &bytes), None, "clients are the daemon's own");
    for end in 0..bytes.len() {
        assert_eq!(told(1, &bytes.slice(..end)), None);
    }
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes.to_vec();
        bytes[at] = byte;
        told(1, &bytes.into())
    };
    assert_eq!(with(20, 0), None, "it takes some time");
    assert_eq!(with(23, 1), None, "but not so much");
    assert_eq!(with(25, 2), None, "of more destinations");
    // The second group is the first again.
    assert_eq!(with(26 + 3 + 5 + 2, b'g'), None);
}

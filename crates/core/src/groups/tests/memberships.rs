//! The limits on the groups of one client, of one owner and of all clients.

use alloc::format;

use super::cluster::{Cluster, group};
use crate::groups::{ClientName, Connection, Limits, Owner, RequestError};

const EACH: usize = 4;
const OWNER: usize = 6;
const ALL: usize = 9;

fn one() -> Cluster {
    let limits = Limits {
        client_memberships: EACH,
        owner_memberships: OWNER,
        memberships: ALL,
        ..Limits::default()
    };
    Cluster::limited(1, limits)
}

fn connect(cluster: &mut Cluster, owner: Option<Owner>, name: &str) -> Connection {
    let name = ClientName::new(name).expect("a name");
    let connection = cluster.daemon(1).connect_of(owner, name);
    connection.expect("a new name")
}

/// Joins groups until it may not join another; how many that are.
fn join_all(cluster: &mut Cluster, client: Connection) -> usize {
    for at in 0..=ALL {
        match cluster.daemon(1).join(client, group(&format!("g{at}"))) {
            Ok(()) => cluster.exchange(&[1]),
            Err(error) => {
                assert_eq!(error, RequestError::TooMany);
                return at;
            }
        }
    }
    panic!("there is no end");
}

#[test]
fn no_client_and_no_owner_takes_all_memberships() {
    let mut cluster = one();
    let ann = Some(Owner::User(7));
    let first = connect(&mut cluster, ann, "first");
    let second = connect(&mut cluster, ann, "second");
    let other = connect(&mut cluster, Some(Owner::User(8)), "other");
    let unbounded = connect(&mut cluster, None, "unbounded");
    assert_eq!(join_all(&mut cluster, first), EACH);
    assert_eq!(join_all(&mut cluster, second), OWNER - EACH);
    assert_eq!(join_all(&mut cluster, other), ALL - OWNER);
    assert_eq!(join_all(&mut cluster, unbounded), 0);
    // Groups that one is in already are no more than they are.
    cluster.daemon(1).join(first, group("g0")).expect("it is");
}

#[test]
fn what_somebody_leaves_others_can_have_however_it_went() {
    let mut cluster = one();
    let ann = Some(Owner::User(7));
    let first = connect(&mut cluster, ann, "first");
    let second = connect(&mut cluster, ann, "second");
    assert_eq!(join_all(&mut cluster, first), EACH);
    assert_eq!(join_all(&mut cluster, second), OWNER - EACH);
    cluster
        .daemon(1)
        .leave(first, group("g0"))
        .expect("it is in it");
    cluster.exchange(&[1]);
    let more = cluster.daemon(1).join(second, group("more"));
    more.expect("there is room for one");
    // Who is made to skip has what it had.
    let next = cluster.daemon(1).restart(first).expect("it may");
    cluster.exchange(&[1]);
    let denied = cluster.daemon(1).join(second, group("again"));
    assert_eq!(denied, Err(RequestError::TooMany));
    cluster.daemon(1).disconnect(next);
    cluster.exchange(&[1]);
    let third = connect(&mut cluster, ann, "third");
    assert_eq!(join_all(&mut cluster, third), OWNER - (OWNER - EACH) - 1);
}

#[test]
fn groups_are_counted_as_they_are_listed() {
    let mut cluster = Cluster::together(2);
    let count = |cluster: &mut Cluster| {
        let daemon = cluster.daemon(1);
        assert_eq!(daemon.count_groups(), daemon.list_groups().len());
        daemon.count_groups()
    };
    let own = cluster.client(1, "own");
    let far = cluster.client(2, "far");
    for name in ["a", "b", "c"] {
        cluster.daemon(1).join(own, group(name)).expect("it may");
    }
    for name in ["b", "d"] {
        cluster.daemon(2).join(far, group(name)).expect("it may");
    }
    cluster.exchange(&[1, 2]);
    assert_eq!(count(&mut cluster), 4);
    cluster.transitional(&[1], 9, 10);
    assert_eq!(count(&mut cluster), 3);
    cluster.transitional(&[2], 9, 11);
    cluster.regular(&[1], 10);
    cluster.regular(&[2], 11);
    cluster.transitional(&[1], 10, 12);
    cluster.transitional(&[2], 11, 12);
    cluster.regular(&[1, 2], 12);
    count(&mut cluster);
    cluster.exchange(&[1, 2]);
    assert_eq!(count(&mut cluster), 4);
}

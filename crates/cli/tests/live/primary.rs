//! The side that is primary when networks split and processes die; P1 to P3 judge their traces.

use std::time::{Duration, Instant};

use rota_node::{PrimaryName, TimingName};

use crate::LOAD;
use crate::cluster::{Cluster, PATIENCE, between};

/// Two safe rounds and two writes take far less.
const LONG_ENOUGH: Duration = Duration::from_millis(500);

/// These are on one ring, it is primary, and safe messages are delivered in it.
fn expect_primary(cluster: &mut Cluster, nodes: &[u16]) {
    cluster.until("a primary", PATIENCE, |cluster| {
        cluster.are_on_rings(&[nodes]) && nodes.iter().all(|node| cluster.is_primary(*node))
    });
    cluster.expect_rings(&[nodes]);
}

/// These are on one ring, and it is not primary.
fn expect_none(cluster: &mut Cluster, nodes: &[u16]) {
    cluster.expect_rings(&[nodes]);
    cluster.sleep(LONG_ENOUGH);
    assert!(cluster.are_on_rings(&[nodes]));
    for node in nodes {
        assert!(!cluster.is_primary(*node), "{node} of {nodes:?}");
    }
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn with_a_static_majority_the_larger_side_goes_on() {
    let mut cluster = Cluster::new(5, TimingName::Default);
    cluster.config.primary = PrimaryName::Static;
    cluster.start_all();
    expect_primary(&mut cluster, &[1, 2, 3, 4, 5]);
    cluster.load(LOAD.0, LOAD.1);
    let wall = between(&[1, 4], &[2, 3, 5]);
    cluster.cut(&wall);
    expect_primary(&mut cluster, &[2, 3, 5]);
    expect_none(&mut cluster, &[1, 4]);
    cluster.kill(3);
    expect_none(&mut cluster, &[2, 5]);
    cluster.mend(&wall);
    expect_primary(&mut cluster, &[1, 2, 4, 5]);
    cluster.start(3);
    expect_primary(&mut cluster, &[1, 2, 3, 4, 5]);
    cluster.check(&[&[1, 2, 3, 4, 5]]);
}

/// All five are the primary, the second one after there was one without it; and all but these have its
/// state.
fn second_comes_late(without_state: &[u16]) -> Cluster {
    let mut cluster = Cluster::new(5, TimingName::Default);
    cluster.config.primary = PrimaryName::Dynamic;
    for node in [1, 3, 4, 5] {
        cluster.start(node);
    }
    expect_primary(&mut cluster, &[1, 3, 4, 5]);
    cluster.start(2);
    let all = cluster.all();
    expect_primary(&mut cluster, &all);
    let carriers = all.into_iter().filter(|node| !without_state.contains(node));
    let until = Instant::now() + PATIENCE;
    for node in carriers {
        while cluster.status(node)["caught_up"] != true {
            assert!(Instant::now() < until, "{node} has no state");
            cluster.tell(node, "caught-up");
        }
    }
    cluster.load(LOAD.0, LOAD.1);
    cluster
}

/// Two of a primary of five are left, and killed; then one of them is back, with three that were not in
/// their primary.
fn fail_until_second_is_back(cluster: &mut Cluster) {
    let wall = between(&[1, 4], &[2, 3, 5]);
    cluster.cut(&wall);
    expect_primary(cluster, &[2, 3, 5]);
    expect_none(cluster, &[1, 4]);
    cluster.kill(5);
    expect_primary(cluster, &[2, 3]);
    cluster.kill(2);
    cluster.kill(3);
    cluster.mend(&wall);
    cluster.start(5);
    // Three of five, and none of the last primary.
    expect_none(cluster, &[1, 4, 5]);
    cluster.start(2);
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn with_dynamic_voting_a_minority_goes_on_after_failures_in_a_row_and_all_remember() {
    let mut cluster = second_comes_late(&[]);
    fail_until_second_is_back(&mut cluster);
    // Half of the last primary, with its smallest.
    expect_primary(&mut cluster, &[1, 2, 4, 5]);
    cluster.start(3);
    expect_primary(&mut cluster, &[1, 2, 3, 4, 5]);
    cluster.check(&[&[1, 2, 3, 4, 5]]);
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn with_dynamic_voting_nobody_goes_on_without_a_node_that_has_the_state() {
    let mut cluster = second_comes_late(&[2]);
    fail_until_second_is_back(&mut cluster);
    // Half of the last primary, with its smallest; but that one never got what was there before it.
    expect_none(&mut cluster, &[1, 2, 4, 5]);
    cluster.start(3);
    expect_primary(&mut cluster, &[1, 2, 3, 4, 5]);
    cluster.check(&[&[1, 2, 3, 4, 5]]);
}

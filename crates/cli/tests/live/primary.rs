//! Which side is primary when networks split and processes die; P1 to P3 judge their traces.

use std::time::Duration;

use rota_net::{PrimaryName, TimingName};

use crate::LOAD;
use crate::cluster::{Cluster, PATIENCE, between};

/// Two safe rounds and two writes take far less.
const LONG_ENOUGH: Duration = Duration::from_millis(500);

fn formed(nodes: u16, primary: PrimaryName) -> Cluster {
    let mut cluster = Cluster::new(nodes, TimingName::Default);
    cluster.config.primary = primary;
    cluster.start_all();
    let all = cluster.all();
    expect_primary(&mut cluster, &all);
    cluster.load(LOAD.0, LOAD.1);
    cluster
}

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
    let mut cluster = formed(5, PrimaryName::Static);
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

#[test]
#[ignore = "needs root, for network namespaces"]
fn with_dynamic_voting_a_minority_goes_on_after_failures_in_a_row_and_all_remember() {
    let mut cluster = formed(5, PrimaryName::Dynamic);
    let wall = between(&[1, 4], &[2, 3, 5]);
    cluster.cut(&wall);
    expect_primary(&mut cluster, &[2, 3, 5]);
    expect_none(&mut cluster, &[1, 4]);
    cluster.kill(5);
    expect_primary(&mut cluster, &[2, 3]);
    cluster.kill(2);
    cluster.kill(3);
    cluster.mend(&wall);
    cluster.start(5);
    // Three of five, and none of the last primary.
    expect_none(&mut cluster, &[1, 4, 5]);
    // Half of it, with its smallest.
    cluster.start(2);
    expect_primary(&mut cluster, &[1, 2, 4, 5]);
    cluster.start(3);
    expect_primary(&mut cluster, &[1, 2, 3, 4, 5]);
    cluster.check(&[&[1, 2, 3, 4, 5]]);
}

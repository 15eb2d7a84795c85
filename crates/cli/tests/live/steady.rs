//! A ring that nothing happens to stays as it is: at full load, and when a process stands still for less than half the
//! token-loss time. `ROTA_SECONDS` says how long, `ROTA_ROUNDS` how many pauses. No traces: digests show that all
//! deliver the same order, and counts that all is delivered. If a ring does change, slow rotations (`rotations_slow`)
//! before the token's loss say that the machine was too busy.

use std::time::{Duration, Instant};

use rota_node::TimingName;

use crate::cluster::Cluster;
use crate::setting;

const NODES: u16 = 8;
/// Bytes of a message: one to a packet.
const MESSAGE: usize = 1350;
/// How long what was submitted may take to be delivered once no more is.
const DRAIN: Duration = Duration::from_secs(60);
/// A pause, as a part of the token-loss time.
const PAUSE: f64 = 0.45;

/// A cluster at full load, and its configuration.
fn flooded() -> (Cluster, String) {
    let mut cluster = Cluster::new(NODES, TimingName::Default);
    cluster.traced = false;
    cluster.start_all();
    let all = cluster.all();
    cluster.expect_rings(&[&all]);
    let ring = cluster.ring(1).expect("a ring").id.clone();
    cluster.flood(MESSAGE);
    cluster.sleep(Duration::from_millis(200));
    (cluster, ring)
}

fn unchanged(cluster: &Cluster, ring: &str) -> bool {
    let on_it = |node: &u16| cluster.ring(*node).is_some_and(|conf| conf.id == ring);
    cluster.all().iter().all(on_it)
}

/// Fails if anybody has seen another configuration, with what tells the ring's fault from the machine's.
fn expect_unchanged(cluster: &mut Cluster, ring: &str, since: Instant) {
    if unchanged(cluster, ring) {
        return;
    }
    // All that can be said about the new one takes a moment to come.
    cluster.sleep(Duration::from_secs(2));
    for node in cluster.all() {
        eprintln!("node {node}: {}", cluster.status(node));
    }
    let orders = cluster.orders();
    panic!("not {ring} after {:?}: {orders:#?}", since.elapsed());
}

/// A counter at each node.
fn counters(cluster: &mut Cluster, name: &str) -> Vec<u64> {
    let nodes = cluster.all().into_iter();
    let counters = nodes.map(|node| cluster.status(node)["counters"][name].as_u64());
    counters.map(|count| count.expect("a counter")).collect()
}

fn sum(cluster: &mut Cluster, counter: &str) -> u64 {
    counters(cluster, counter).iter().sum()
}

fn largest(cluster: &mut Cluster, counter: &str) -> u64 {
    let counts = counters(cluster, counter);
    counts.into_iter().max().expect("nodes")
}

/// Ends the load, and waits until all have delivered all that anybody submitted.
fn expect_all_delivered(cluster: &mut Cluster, what: &str, loaded: Duration) {
    let longest = cluster.orders().iter().map(|order| order.longest_gap).max();
    let rotations = largest(cluster, "token_rotations");
    cluster.flood(0);
    let until = Instant::now() + DRAIN;
    let delivered = loop {
        let orders = cluster.orders();
        let submitted: u64 = orders.iter().map(|order| order.submitted).sum();
        if orders.iter().all(|order| order.count == submitted) {
            break submitted;
        }
        assert!(Instant::now() < until, "of {submitted}: {orders:#?}");
        cluster.sleep(Duration::from_millis(100));
    };
    println!(
        "{what}: {:.0} s, {delivered} messages delivered by each of {NODES} nodes, in {rotations} rotations, \
         the longest {:.1} ms, at most {} slow; longest time without deliveries {:.1} ms; in all {} token \
         losses, {} tokens and {} packets sent again",
        loaded.as_secs_f64(),
        largest(cluster, "rotation_longest_us") as f64 / 1e3,
        largest(cluster, "rotations_slow"),
        longest.unwrap_or(0) as f64 / 1e6,
        sum(cluster, "token_losses"),
        sum(cluster, "token_retransmissions"),
        sum(cluster, "retransmissions"),
    );
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn full_load_changes_nothing() {
    let _alone = crate::turns::alone();
    let (mut cluster, ring) = flooded();
    let start = Instant::now();
    let time = Duration::from_secs(setting("ROTA_SECONDS", 10));
    while start.elapsed() < time {
        cluster.sleep(Duration::from_millis(500));
        expect_unchanged(&mut cluster, &ring, start);
    }
    expect_all_delivered(&mut cluster, "full load", start.elapsed());
    expect_unchanged(&mut cluster, &ring, start);
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn short_pauses_under_load_change_nothing() {
    let _alone = crate::turns::alone();
    let (mut cluster, mut ring) = flooded();
    let start = Instant::now();
    let loss = cluster.token_loss();
    let pauses = setting("ROTA_ROUNDS", 16);
    let mut longer = 0;
    for round in 0..pauses {
        let before = Instant::now();
        cluster.pause(round as u16 % NODES + 1, loss.mul_f64(PAUSE));
        if before.elapsed() > loss / 2 {
            // This test was itself kept waiting, so the pause may have been any length.
            longer += 1;
            assert!(longer < pauses, "this machine is too busy");
            let all = cluster.all();
            cluster.wait_rings(&[&all]);
            ring = cluster.ring(1).expect("a ring").id.clone();
        }
        cluster.sleep(loss.mul_f64(PAUSE));
        expect_unchanged(&mut cluster, &ring, start);
    }
    let what = format!("{pauses} pauses, {longer} of them too long to judge");
    expect_all_delivered(&mut cluster, &what, start.elapsed());
    expect_unchanged(&mut cluster, &ring, start);
}

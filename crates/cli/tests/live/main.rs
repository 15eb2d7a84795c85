//! Real processes in network namespaces: killed, stopped, cut off, restarted. Every test says who ends on
//! which ring, sends there, and has all traces checked.

mod behind;
mod cluster;
mod disks;
mod etcd;
mod ill;
mod lives;
mod measure;
mod memory;
mod names;
mod primary;
mod recover;
mod seeded;
mod steady;
mod turns;
mod views;
mod votes;

use std::time::Duration;

use cluster::{Cluster, between};
use rota_node::TimingName;
use rustix::process::Signal;

/// Bytes of a message of the load, and microseconds from one to the next: of each node.
const LOAD: (usize, u64) = (200, 1000);

/// A number from the environment.
fn setting(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    let number = |text: String| text.parse().expect("a number");
    text.map_or(default, number)
}

fn loaded(nodes: u16) -> Cluster {
    let mut cluster = Cluster::formed(nodes, TimingName::Default);
    cluster.load(LOAD.0, LOAD.1);
    cluster.sleep(Duration::from_millis(50));
    cluster
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn whoever_is_killed_the_others_go_on_and_a_new_life_comes_back() {
    let mut cluster = loaded(4);
    for victim in [1, 3, 4] {
        let others: Vec<u16> = cluster.all().into_iter().filter(|n| *n != victim).collect();
        cluster.kill(victim);
        cluster.expect_rings(&[&others]);
        cluster.start(victim);
        cluster.expect_rings(&[&[1, 2, 3, 4]]);
    }
    cluster.check(&[&[1, 2, 3, 4]]);
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn one_after_the_other_is_killed_until_one_is_left() {
    let mut cluster = loaded(4);
    for victim in [1, 2, 4] {
        cluster.kill(victim);
        let others = cluster.running();
        cluster.expect_rings(&[&others]);
    }
    cluster.check(&[&[3]]);
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn two_are_killed_at_once() {
    let mut cluster = loaded(5);
    cluster.kill(1);
    cluster.kill(4);
    cluster.expect_rings(&[&[2, 3, 5]]);
    cluster.check(&[&[2, 3, 5]]);
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn a_short_pause_changes_nothing() {
    let mut cluster = loaded(4);
    let loss = cluster.token_loss();
    let before = cluster.ring(1).expect("a ring").clone();
    for (node, part) in [(1, 0.1), (2, 0.25), (3, 0.4), (1, 0.45)] {
        cluster.pause(node, loss.mul_f64(part));
        cluster.sleep(loss.mul_f64(0.5));
    }
    cluster.expect_rings(&[&[1, 2, 3, 4]]);
    let status = cluster.status(1);
    assert_eq!(cluster.ring(1).expect("a ring").id, before.id, "{status}");
    cluster.check(&[&[1, 2, 3, 4]]);
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn a_long_pause_ends_in_one_ring_again() {
    let mut cluster = loaded(4);
    let loss = cluster.token_loss();
    for (node, times) in [(2, 1.0), (1, 1.5), (3, 2.25), (1, 4.0), (4, 8.0)] {
        let others: Vec<u16> = cluster.all().into_iter().filter(|n| *n != node).collect();
        cluster.signal(node, Signal::STOP);
        cluster.sleep(loss.mul_f64(times));
        if times >= 4.0 {
            assert!(cluster.are_on_rings(&[&others]), "without {node}");
        }
        cluster.signal(node, Signal::CONT);
        // It may be on the old ring for a moment, which nobody else is on any more.
        cluster.sleep(Duration::from_millis(100));
        cluster.expect_rings(&[&[1, 2, 3, 4]]);
    }
    cluster.check(&[&[1, 2, 3, 4]]);
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn halves_part_and_come_together_under_load_and_at_rest() {
    for load in [LOAD, (0, 0)] {
        let mut cluster = Cluster::formed(5, TimingName::Default);
        cluster.load(load.0, load.1);
        let wall = between(&[1, 4], &[2, 3, 5]);
        for _ in 0..2 {
            cluster.cut(&wall);
            cluster.expect_rings(&[&[1, 4], &[2, 3, 5]]);
            cluster.mend(&wall);
            cluster.expect_rings(&[&[1, 2, 3, 4, 5]]);
        }
        let all = between(&[1], &[2, 3, 4, 5]);
        cluster.cut(&all);
        cluster.expect_rings(&[&[1], &[2, 3, 4, 5]]);
        cluster.mend(&all);
        cluster.check(&[&[1, 2, 3, 4, 5]]);
    }
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn everybody_is_alone_and_finds_the_others_again() {
    for load in [LOAD, (0, 0)] {
        let mut cluster = Cluster::formed(4, TimingName::Default);
        cluster.load(load.0, load.1);
        let walls: Vec<(u16, u16)> = [1, 2, 3]
            .into_iter()
            .flat_map(|node| between(&[node], &(node + 1..=4).collect::<Vec<_>>()))
            .collect();
        cluster.cut(&walls);
        cluster.expect_rings(&[&[1], &[2], &[3], &[4]]);
        cluster.mend(&walls);
        cluster.check(&[&[1, 2, 3, 4]]);
    }
}

/// Whatever one direction of one link does, nobody stays out of service, and all is well when it heals.
#[test]
#[ignore = "needs root, for network namespaces"]
fn a_link_that_is_cut_in_one_direction() {
    let mut cluster = loaded(3);
    for cut in [(1, 2), (2, 1), (2, 3), (3, 1)] {
        cluster.cut(&[cut]);
        cluster.sleep(Duration::from_secs(3));
        let both = |c: &Cluster| {
            let together = |node: u16| c.ring(node).is_some_and(|ring| ring.nodes().len() >= 2);
            c.all().into_iter().filter(|node| together(*node)).count() >= 2
        };
        cluster.until("two are on a ring", cluster::PATIENCE, both);
        cluster.mend(&[cut]);
        cluster.expect_rings(&[&[1, 2, 3]]);
    }
    cluster.check(&[&[1, 2, 3]]);
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn who_cannot_be_heard_or_cannot_hear_is_left_out() {
    let mut cluster = loaded(4);
    let from_all = [(1, 3), (2, 3), (4, 3)];
    let to_all = [(3, 1), (3, 2), (3, 4)];
    for cut in [from_all, to_all] {
        cluster.cut(&cut);
        cluster.expect_rings(&[&[1, 2, 4]]);
        cluster.mend(&cut);
        cluster.expect_rings(&[&[1, 2, 3, 4]]);
    }
    cluster.check(&[&[1, 2, 3, 4]]);
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn a_link_that_flaps() {
    let mut cluster = loaded(4);
    for (down, up) in [(50, 150), (200, 100), (500, 300), (900, 200), (300, 700)] {
        for node in [2, 1] {
            cluster.set_port(node, false);
            cluster.sleep(Duration::from_millis(down));
            cluster.set_port(node, true);
            cluster.sleep(Duration::from_millis(up));
        }
    }
    cluster.expect_rings(&[&[1, 2, 3, 4]]);
    cluster.check(&[&[1, 2, 3, 4]]);
}

fn restarts(with_state: bool) {
    let mut cluster = Cluster::new(3, TimingName::Default);
    if !with_state {
        cluster.config.state_dir = None;
    }
    cluster.start_all();
    cluster.expect_rings(&[&[1, 2, 3]]);
    cluster.load(LOAD.0, LOAD.1);
    // Killed and back at once, before anybody can have noticed; then after the others have; then all.
    for victim in [1, 2] {
        cluster.kill(victim);
        cluster.start(victim);
        cluster.expect_rings(&[&[1, 2, 3]]);
    }
    cluster.kill(1);
    cluster.expect_rings(&[&[2, 3]]);
    cluster.start(1);
    cluster.expect_rings(&[&[1, 2, 3]]);
    let before = cluster.ring(1).expect("a ring").number();
    for node in 1..=3 {
        cluster.kill(node);
    }
    cluster.start_all();
    cluster.expect_rings(&[&[1, 2, 3]]);
    if with_state {
        let after = cluster.ring(1).expect("a ring").number();
        assert!(after > before, "{after} {before}");
    }
    cluster.check(&[&[1, 2, 3]]);
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn restarts_with_state_on_disk() {
    restarts(true);
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn restarts_without_state() {
    restarts(false);
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn all_are_restarted_one_after_the_other() {
    let mut cluster = loaded(4);
    for node in cluster.all() {
        cluster.leave(node);
        let others = cluster.running();
        cluster.expect_rings(&[&others]);
        cluster.start(node);
        cluster.expect_rings(&[&[1, 2, 3, 4]]);
        cluster.load(LOAD.0, LOAD.1);
    }
    cluster.check(&[&[1, 2, 3, 4]]);
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn sixteen_start_at_once() {
    let mut cluster = Cluster::formed(16, TimingName::Default);
    let all = cluster.all();
    cluster.check(&[&all]);
}

//! The time until the survivors are on a new ring, or all on one. Prints; judges nothing, since a crowded machine would
//! say more about itself than about the ring. `ROTA_ROUNDS` says how often; with `ROTA_STATE` set, the nodes keep their
//! ring ids on disk.

use std::time::Duration;

use crate::cluster::{Cluster, between};
use crate::etcd::Coordinated;
use crate::recover::kill_all;
use crate::setting;
use crate::votes;
use rota_bench::BitRate;
use rota_node::{EngineName, PaxosConfig, TimingName, VoteStorage};

const NODES: u16 = 8;

/// Of those that vote.
const VOTERS: u16 = 5;

fn rounds() -> u64 {
    setting("ROTA_ROUNDS", 1)
}

/// Prints the quantiles of times in nanoseconds.
fn print(what: &str, mut times: Vec<u64>) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize] as f64 / 1e6;
    println!(
        "{what}: median {:.1} ms, p90 {:.1} ms, p99 {:.1} ms, min {:.1} ms, max {:.1} ms, of {}",
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.0),
        at(1.0),
        times.len()
    );
}

fn cluster(timing: TimingName, load: bool) -> Cluster {
    let mut cluster = Cluster::new(NODES, timing);
    if std::env::var_os("ROTA_STATE").is_none() {
        cluster.config.state_dir = None;
    }
    cluster.start_all();
    let all = cluster.all();
    cluster.expect_rings(&[&all]);
    set_load(&mut cluster, load);
    cluster
}

fn set_load(cluster: &mut Cluster, load: bool) {
    if load {
        cluster.load(200, 2000);
    }
    cluster.sleep(Duration::from_millis(300));
}

/// Until the last of `nodes` is on a ring of exactly them.
fn until_ring(cluster: &mut Cluster, nodes: &[u16], since: u64) -> u64 {
    cluster.wait_rings(&[nodes]);
    let at = |node: &u16| cluster.ring(*node).expect("a ring").at;
    nodes
        .iter()
        .map(at)
        .max()
        .expect("somebody")
        .saturating_sub(since)
}

/// Three nodes under full load on links of 1 Gbit/s, all of which lose their power at once, or are killed where a loss of power
/// is not survived: times from the first start until everybody has been handed new messages of everybody, behind all that
/// was kept.
fn all_ended(engine: EngineName, storage: VoteStorage, bytes: usize) -> Vec<u64> {
    let rate = BitRate(1_000_000_000);
    let mut cluster = Cluster::with_links(3, rate, TimingName::Default);
    (cluster.traced, cluster.begin_together) = (false, false);
    cluster.config.engine = engine;
    cluster.config.paxos = Some(PaxosConfig {
        storage,
        ..PaxosConfig::default()
    });
    cluster.start_all();
    let all = cluster.all();
    cluster.expect_rings(&[&all]);
    let mut times = Vec::new();
    for _ in 0..rounds() {
        cluster.flood(bytes);
        cluster.sleep(Duration::from_secs(5));
        kill_all(&mut cluster);
        if storage == VoteStorage::Sync {
            all.iter().for_each(|node| cluster.lose_power(*node));
        }
        let at = rota_net::monotonic().0;
        cluster.start_all();
        let took = cluster.prove_within(&all, Duration::from_secs(60));
        assert!(
            took.is_some(),
            "{} {storage:?}: nothing for a minute",
            engine.name()
        );
        times.push(rota_net::monotonic().0.saturating_sub(at));
        cluster.expect_rings(&[&all]);
    }
    times
}

fn others(cluster: &Cluster, node: u16) -> Vec<u16> {
    cluster.all().into_iter().filter(|n| *n != node).collect()
}

fn killed(timing: TimingName, load: bool) -> Vec<u64> {
    let mut cluster = cluster(timing, load);
    let mut times = Vec::new();
    for round in 0..rounds() {
        let victim = round as u16 % NODES + 1;
        let others = others(&cluster, victim);
        let at = cluster.kill(victim);
        times.push(until_ring(&mut cluster, &others, at));
        cluster.start(victim);
        let all = cluster.all();
        cluster.wait_rings(&[&all]);
        set_load(&mut cluster, load);
    }
    let all = cluster.all();
    cluster.check(&[&all]);
    times
}

/// The coordinator of the newest configuration, as a node says.
fn coordinator(cluster: &mut Cluster) -> u16 {
    let status = cluster.status(1);
    let state = status["state"].as_str().expect("a state");
    let (_, coordinator) = state.split_once("coordinator ").expect("a ring");
    let digits = coordinator.split(|other: char| !other.is_ascii_digit());
    let first = digits.into_iter().next().expect("a word");
    first.parse().expect("a number")
}

/// Times until the last survivor of a killed coordinator has delivered the first message of the next round. Ends the
/// cluster.
fn coordinators_killed(cluster: &mut Cluster, rounds: u64) -> Vec<u64> {
    let mut times = Vec::new();
    let all = cluster.all();
    for _ in 0..rounds {
        let victim = coordinator(cluster);
        let others = others(cluster, victim);
        let at = cluster.kill(victim);
        times.push(until_ring(cluster, &others, at));
        votes::restart(cluster, &[victim]);
        cluster.expect_rings(&[&all]);
    }
    votes::check(cluster);
    times
}

/// Times until the others have noticed a cut, and from its end until all are on one ring.
fn cut_off(timing: TimingName, load: bool) -> (Vec<u64>, Vec<u64>) {
    let mut cluster = cluster(timing, load);
    let (mut lost, mut healed) = (Vec::new(), Vec::new());
    for round in 0..rounds() {
        let victim = round as u16 % NODES + 1;
        let others = others(&cluster, victim);
        let wall = between(&[victim], &others);
        let at = rota_net::monotonic().0;
        cluster.cut(&wall);
        lost.push(until_ring(&mut cluster, &others, at));
        cluster.sleep(Duration::from_millis(700));
        let at = rota_net::monotonic().0;
        cluster.mend(&wall);
        let all = cluster.all();
        healed.push(until_ring(&mut cluster, &all, at));
        cluster.sleep(Duration::from_millis(300));
    }
    let all = cluster.all();
    cluster.check(&[&all]);
    (lost, healed)
}

/// Times until two halves that were parted are one again.
fn halves(load: bool) -> Vec<u64> {
    let mut cluster = cluster(TimingName::Default, load);
    let mut times = Vec::new();
    for _ in 0..rounds() {
        let (some, rest) = ([1, 3, 5, 7], [2, 4, 6, 8]);
        let wall = between(&some, &rest);
        cluster.cut(&wall);
        cluster.wait_rings(&[&some, &rest]);
        cluster.sleep(Duration::from_millis(300));
        let at = rota_net::monotonic().0;
        cluster.mend(&wall);
        let all = cluster.all();
        times.push(until_ring(&mut cluster, &all, at));
    }
    let all = cluster.all();
    cluster.check(&[&all]);
    times
}

#[test]
#[ignore = "needs root, for network namespaces; prints times"]
fn time_after_a_kill() {
    let _alone = crate::turns::alone();
    print("killed, load", killed(TimingName::Default, true));
    print("killed, idle", killed(TimingName::Default, false));
}

#[test]
#[ignore = "needs root, for network namespaces; prints times"]
fn time_after_a_kill_of_the_coordinator() {
    let _alone = crate::turns::alone();
    // In one cluster so many that nothing of the order is forgotten, which is judged in the end.
    let parts: Vec<u64> = (0..rounds()).step_by(5).collect();
    let parts = || parts.iter().map(|first| (rounds() - first).min(5));
    let embedded = parts().flat_map(|rounds| {
        let mut cluster = votes::loaded(EngineName::URingPaxos, VOTERS, VoteStorage::Async);
        coordinators_killed(&mut cluster, rounds)
    });
    print("coordinator killed, embedded", embedded.collect());
    let etcd = parts().flat_map(|rounds| {
        let mut world = Coordinated::formed(VOTERS, VoteStorage::Async);
        votes::set_load(&mut world.cluster);
        coordinators_killed(&mut world.cluster, rounds)
    });
    print("coordinator killed, etcd", etcd.collect());
}

#[test]
#[ignore = "needs root, for network namespaces; prints times"]
fn time_after_the_end_of_all() {
    let _alone = crate::turns::alone();
    for engine in [EngineName::URingPaxos, EngineName::RingPaxos] {
        for storage in [VoteStorage::Sync, VoteStorage::Async] {
            for bytes in [1000, 32_000] {
                let what = format!("all ended, {} {} {bytes} B", engine.name(), storage.name());
                print(&what, all_ended(engine, storage, bytes));
            }
        }
    }
}

#[test]
#[ignore = "needs root, for network namespaces; prints times"]
fn time_after_a_silent_failure() {
    let _alone = crate::turns::alone();
    for (name, timing) in [
        ("default", TimingName::Default),
        ("lan-fast", TimingName::LanFast),
    ] {
        let (lost, healed) = cut_off(timing, true);
        print(&format!("cut off, load, {name}"), lost);
        print(&format!("one comes back, load, {name}"), healed);
    }
}

#[test]
#[ignore = "needs root, for network namespaces; prints times"]
fn time_to_leave() {
    let _alone = crate::turns::alone();
    let mut cluster = cluster(TimingName::Default, true);
    let mut times = Vec::new();
    for round in 0..rounds() {
        let node = round as u16 % NODES + 1;
        let others = others(&cluster, node);
        let at = cluster.leave(node);
        times.push(until_ring(&mut cluster, &others, at));
        cluster.start(node);
        let all = cluster.all();
        cluster.wait_rings(&[&all]);
        set_load(&mut cluster, true);
    }
    let all = cluster.all();
    cluster.check(&[&all]);
    print("left, load", times);
}

#[test]
#[ignore = "needs root, for network namespaces; prints times"]
fn time_to_heal() {
    let _alone = crate::turns::alone();
    print("halves come together, load", halves(true));
    print("halves come together, idle", halves(false));
}

//! A majority of the acceptors is lost for good, and the cluster goes on from what is left of their logs: `rota storage recover`.

use std::fs;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rota_node::{EngineName, PaxosConfig, TimingName, VoteStorage};

use crate::cluster::{Cluster, between};
use crate::votes::{self, Life, check, loaded, restart, set_load};

/// So long nothing changes that cannot: a multiple of all that a reconfiguration takes.
const STILL: Duration = Duration::from_secs(3);

pub fn log_of(cluster: &Cluster, node: u16) -> PathBuf {
    cluster.state_dir().join(format!("node-{node}.votes"))
}

/// Puts a log where nobody looks for it.
pub fn put_away(cluster: &Cluster, node: u16) -> PathBuf {
    let away = cluster.state_dir().join(format!("old-{node}.votes"));
    fs::rename(log_of(cluster, node), &away).expect("a log");
    away
}

/// Goes on from the logs of these nodes; says what was said. New logs of all are in the directory that is handed back.
pub fn recover(cluster: &Cluster, from: &[u16]) -> (String, PathBuf) {
    let dir = cluster.state_dir();
    let config = dir.join("rota.toml");
    fs::write(&config, cluster.config.to_toml().expect("a file")).expect("room");
    let into = dir.join("recovered");
    let output = Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(["storage", "recover", "--yes", "--config"])
        .arg(config)
        .arg("--into")
        .arg(&into)
        .args(from.iter().map(|node| log_of(cluster, *node)))
        .output()
        .expect("rota");
    let said = String::from_utf8(output.stdout.clone()).expect("text");
    println!("{said}");
    assert!(output.status.success(), "{output:?}");
    (said, into)
}

/// Puts the new log of a node in the place of the one that it may have.
pub fn put_new(cluster: &Cluster, node: u16, from: &Path) {
    if log_of(cluster, node).exists() {
        put_away(cluster, node);
    }
    let new = from.join(format!("node-{node}.votes"));
    fs::rename(new, log_of(cluster, node)).expect("a new log");
}

pub fn kill_all(cluster: &mut Cluster) {
    for node in cluster.all() {
        cluster.kill(node);
    }
}

pub fn state(cluster: &mut Cluster, node: u16) -> String {
    let status = cluster.status(node);
    status["state"].as_str().expect("a state").to_owned()
}

/// All that was acknowledged is in the log that is left: it is delivered in the same places, and new messages behind it.
#[test]
#[ignore = "needs root, for network namespaces"]
fn two_of_three_disks_are_lost_and_the_third_has_everything() {
    for engine in [EngineName::URingPaxos, EngineName::RingPaxos] {
        let mut cluster = loaded(engine, 3, VoteStorage::Sync);
        cluster.sleep(Duration::from_millis(500));
        cluster.load(0, 0);
        cluster.expect_rings(&[&[1, 2, 3]]);
        kill_all(&mut cluster);
        for lost in [1, 3] {
            fs::remove_dir_all(log_of(&cluster, lost)).expect("a log");
        }
        let (said, new) = recover(&cluster, &[2]);
        assert!(said.contains("1, 3 are not here"), "{said}");
        cluster
            .all()
            .iter()
            .for_each(|node| put_new(&cluster, *node, &new));
        restart(&mut cluster, &[1, 2, 3]);
        // What is new is as durable as ever.
        cluster.kill(2);
        cluster.expect_rings(&[&[1, 3]]);
        restart(&mut cluster, &[2]);
        let seen = check(&mut cluster);
        println!("{engine:?}: {seen:?}");
        assert!(seen.lives == 7 && seen.messages > 200, "{seen:?}");
    }
}

/// What a log has trimmed nobody gets any more; where it begins all begin, and messages that began before are whole.
#[test]
#[ignore = "needs root, for network namespaces"]
fn a_log_that_was_trimmed_goes_on_from_where_it_begins() {
    let mut cluster = Cluster::new(3, TimingName::Default);
    cluster.config.engine = EngineName::URingPaxos;
    cluster.config.paxos = Some(PaxosConfig {
        storage: VoteStorage::Sync,
        kept_instances: NonZeroU64::new(100),
        ..PaxosConfig::default()
    });
    cluster.start_all();
    cluster.expect_rings(&[&[1, 2, 3]]);
    // Of several values each: some are cut where a log begins.
    cluster.load(150_000, 5000);
    cluster.sleep(Duration::from_secs(2));
    cluster.load(0, 0);
    cluster.expect_rings(&[&[1, 2, 3]]);
    kill_all(&mut cluster);
    fs::remove_dir_all(log_of(&cluster, 1)).expect("a log");
    fs::remove_dir_all(log_of(&cluster, 2)).expect("a log");
    let (_, new) = recover(&cluster, &[3]);
    cluster
        .all()
        .iter()
        .for_each(|node| put_new(&cluster, *node, &new));
    restart(&mut cluster, &[1, 2, 3]);
    let files = cluster.end(&[&[1, 2, 3]]);
    let lives: Vec<Vec<Life>> = files.iter().map(votes::lives).collect();
    let (before, after) = (&lives[2][0].delivered, &lives[2][1].delivered);
    let begins = before.iter().position(|one| Some(one) == after.first());
    let begins = begins.expect("it begins within what was ordered");
    let again = &before[begins..];
    println!(
        "{} before, {} of them again, {} in all",
        before.len(),
        again.len(),
        after.len()
    );
    assert!(begins > 100 && again.len() > 10, "{begins} {}", again.len());
    assert_eq!(after[..again.len()], *again);
    assert!(lives.iter().all(|lives| lives[1].delivered == *after));
}

/// Who was away has less: what the others had beyond that is gone, and nothing before. The log of one that was thought lost
/// comes back, and its node stays outside.
#[test]
#[ignore = "needs root, for network namespaces"]
fn what_only_lost_disks_had_is_gone_and_an_old_log_that_comes_back_does_no_harm() {
    let mut cluster = loaded(EngineName::URingPaxos, 3, VoteStorage::Sync);
    cluster.cut(&between(&[1], &[2, 3]));
    cluster.expect_rings(&[&[2, 3]]);
    cluster.sleep(Duration::from_millis(500));
    kill_all(&mut cluster);
    cluster.mend(&between(&[1], &[2, 3]));
    let (said, new) = recover(&cluster, &[1]);
    assert!(said.contains("2, 3 are not here"), "{said}");
    put_new(&cluster, 1, &new);
    put_new(&cluster, 3, &new);
    restart(&mut cluster, &[1, 3]);
    cluster.start(2);
    cluster.sleep(STILL);
    let said = state(&mut cluster, 2);
    assert!(said.contains("founded the cluster anew"), "{said}");
    cluster.expect_rings(&[&[1, 3]]);
    cluster.kill(2);
    put_new(&cluster, 2, &new);
    restart(&mut cluster, &[2]);
    check_lost(&mut cluster);
}

fn check_lost(cluster: &mut Cluster) {
    let files = cluster.end(&[&[1, 2, 3]]);
    let lives: Vec<Vec<Life>> = files.iter().map(votes::lives).collect();
    let [one, two, three] = &lives[..] else {
        panic!("three nodes");
    };
    let (had, order) = (&one[0].delivered, &one[1].delivered);
    assert!(
        had.len() > 50 && order.len() > had.len(),
        "{} {}",
        had.len(),
        order.len()
    );
    assert_eq!(had[..], order[..had.len()]);
    for life in [&two[2], &three[1]] {
        assert_eq!(&life.delivered, order);
    }
    let lost = &two[0].delivered;
    assert!(lost.len() > had.len(), "something was lost");
    assert_eq!(had[..], lost[..had.len()]);
    let same = lost
        .iter()
        .zip(order)
        .take_while(|(one, other)| one == other);
    println!(
        "{} delivered before, {} of them again",
        lost.len(),
        same.count()
    );
}

/// Where answers do not wait for the disk all lose their power at once: nobody has kept its word, as far as anybody knows. Their
/// logs together have everything that was synced.
#[test]
#[ignore = "needs root, for network namespaces"]
fn all_lose_their_power_and_go_on_from_their_logs() {
    let mut cluster = loaded(EngineName::URingPaxos, 3, VoteStorage::Async);
    kill_all(&mut cluster);
    for node in cluster.all() {
        cluster.lose_power(node);
        cluster.start(node);
    }
    cluster.sleep(STILL);
    for node in cluster.all() {
        let said = state(&mut cluster, node);
        assert!(
            said.starts_with("outside the ring of configuration"),
            "{said}"
        );
    }
    kill_all(&mut cluster);
    let (said, new) = recover(&cluster, &[1, 2, 3]);
    assert!(
        said.contains("1, 2, 3 may lack their last moments"),
        "{said}"
    );
    cluster
        .all()
        .iter()
        .for_each(|node| put_new(&cluster, *node, &new));
    restart(&mut cluster, &[1, 2, 3]);
    let seen = check(&mut cluster);
    println!("{seen:?}");
    assert!(seen.lives == 9 && seen.messages > 100, "{seen:?}");
}

/// With `sync` that is nothing: all go on with what they had.
#[test]
#[ignore = "needs root, for network namespaces"]
fn where_answers_wait_for_the_disk_all_lose_their_power_and_go_on() {
    let mut cluster = loaded(EngineName::URingPaxos, 3, VoteStorage::Sync);
    kill_all(&mut cluster);
    cluster
        .all()
        .iter()
        .for_each(|node| cluster.lose_power(*node));
    restart(&mut cluster, &[1, 2, 3]);
    let seen = check(&mut cluster);
    assert!(seen.lives == 6 && seen.messages > 100, "{seen:?}");
}

/// Less than half of the acceptors: the others do not notice, and it gets from them what it lacks.
#[test]
#[ignore = "needs root, for network namespaces"]
fn one_machine_loses_its_power_and_its_node_is_another_acceptor() {
    for storage in [VoteStorage::Async, VoteStorage::Sync] {
        let mut cluster = loaded(EngineName::URingPaxos, 3, storage);
        for victim in [2, 1] {
            cluster.kill(victim);
            cluster.lose_power(victim);
            restart(&mut cluster, &[victim]);
        }
        set_load(&mut cluster);
        let seen = check(&mut cluster);
        assert!(seen.lives == 5 && seen.messages > 100, "{seen:?}");
    }
}

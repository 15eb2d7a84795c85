//! The engine with one order that acceptors vote for. It has no views: a node that was away delivers what it has
//! missed, and a node that was restarted begins with the first message of all, as long as that is kept.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use rota_check::trace::Trace;
use rota_check::{Options, Order, check_order};
use rota_node::{EngineName, PaxosConfig, TimingName, VoteStorage};
use serde::Deserialize;

use crate::cluster::{Cluster, between};
use crate::setting;

/// Bytes of a message, and how often each node sends one, in microseconds: so few that nothing is forgotten.
const LOAD: (usize, u64) = (200, 4000);

/// A line of a trace.
#[derive(Deserialize)]
struct Line {
    ev: String,
    #[serde(default)]
    msg: String,
    #[serde(default)]
    seq: u64,
}

/// What a process has delivered.
#[derive(Default)]
pub struct Life {
    pub delivered: Vec<(u64, String)>,
}

pub fn lives(file: &PathBuf) -> Vec<Life> {
    let mut lives: Vec<Life> = Vec::new();
    let text = fs::read_to_string(file).expect("a trace");
    for line in text.lines() {
        // The last line of a life may have been cut off.
        let Ok(Line { ev, msg, seq }) = serde_json::from_str(line) else {
            continue;
        };
        if ev == "start" {
            lives.push(Life::default());
        }
        let life = lives.last_mut().expect("it has started");
        if ev == "deliver" {
            life.delivered.push((seq, msg));
        }
    }
    lives
}

/// What a story has come across.
#[derive(Debug)]
pub struct Seen {
    pub messages: usize,
    pub lives: usize,
}

/// All are in one ring, and all processes have delivered a first part of one order; those that live all of it, and with it
/// all that they have submitted. Ends the cluster.
pub fn check(cluster: &mut Cluster) -> Seen {
    let all = cluster.all();
    let files = cluster.end(&[&all]);
    let trace = Trace::from_files(&files).expect("sound traces");
    let at_rest = Options {
        quiescent: true,
        ..Options::default()
    };
    let report = check_order(&trace, &at_rest, Order::Whole);
    assert_eq!(report.violations, []);
    let lives: Vec<Life> = files.iter().flat_map(lives).collect();
    let orders = lives.iter().map(|life| &life.delivered);
    let longest = orders.max_by_key(|order| order.len()).expect("lives");
    // Nobody began later, or has missed anything.
    for life in &lives {
        let count = life.delivered.len();
        assert_eq!(life.delivered[..], longest[..count]);
    }
    let mut of_node: BTreeMap<&str, u64> = BTreeMap::new();
    for (_, message) in longest {
        *of_node
            .entry(message.split('.').next().expect("a node"))
            .or_default() += 1;
    }
    assert_eq!(of_node.len(), all.len(), "{of_node:?}");
    Seen {
        messages: longest.len(),
        lives: lives.len(),
    }
}

/// Nodes that are not started yet.
pub fn unstarted(engine: EngineName, nodes: u16, storage: VoteStorage) -> Cluster {
    let mut cluster = Cluster::new(nodes, TimingName::Default);
    cluster.config.engine = engine;
    cluster.config.paxos = Some(PaxosConfig {
        acceptors: None,
        storage,
        kept_instances: NonZeroU64::new(setting("ROTA_KEPT", 0)),
        ..PaxosConfig::default()
    });
    cluster
}

/// All in one ring.
pub fn formed(engine: EngineName, nodes: u16, storage: VoteStorage) -> Cluster {
    let mut cluster = unstarted(engine, nodes, storage);
    cluster.start_all();
    cluster.expect_rings(&[&cluster.all()]);
    cluster
}

/// The same, and load.
pub fn loaded(engine: EngineName, nodes: u16, storage: VoteStorage) -> Cluster {
    let mut cluster = formed(engine, nodes, storage);
    set_load(&mut cluster);
    cluster
}

pub fn set_load(cluster: &mut Cluster) {
    cluster.load(LOAD.0, LOAD.1);
    cluster.sleep(Duration::from_millis(200));
}

pub fn restart(cluster: &mut Cluster, nodes: &[u16]) {
    for node in nodes {
        cluster.start(*node);
    }
    let all = cluster.running();
    cluster.expect_rings(&[&all]);
    set_load(cluster);
}

/// The coordinator and others, one after the other: the rest goes on, and who comes back gets everything.
fn one_after_the_other_is_killed_and_restarted(engine: EngineName, storage: VoteStorage) {
    let mut cluster = loaded(engine, 4, storage);
    for victim in [1, 3, 1, 4] {
        cluster.kill(victim);
        let others = cluster.running();
        cluster.expect_rings(&[&others]);
        restart(&mut cluster, &[victim]);
    }
    let seen = check(&mut cluster);
    println!("{engine:?}, {storage:?}: {seen:?}");
    assert!(seen.lives == 8 && seen.messages > 200, "{seen:?}");
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn whoever_is_killed_comes_back_with_its_votes() {
    one_after_the_other_is_killed_and_restarted(EngineName::URingPaxos, VoteStorage::Async);
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn whoever_is_killed_comes_back_where_values_are_multicast() {
    one_after_the_other_is_killed_and_restarted(EngineName::RingPaxos, VoteStorage::Async);
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn whoever_has_forgotten_comes_back_as_another_acceptor() {
    one_after_the_other_is_killed_and_restarted(EngineName::URingPaxos, VoteStorage::Memory);
}

/// What anybody has delivered before is the first part of what all deliver afterwards.
#[test]
#[ignore = "needs root, for network namespaces"]
fn all_are_killed_and_go_on_with_what_they_had_ordered() {
    for (engine, storage) in [
        (EngineName::URingPaxos, VoteStorage::Async),
        (EngineName::URingPaxos, VoteStorage::Sync),
        (EngineName::RingPaxos, VoteStorage::Sync),
    ] {
        let mut cluster = loaded(engine, 3, storage);
        for _ in 0..2 {
            for node in cluster.all() {
                cluster.kill(node);
            }
            let all = cluster.all();
            restart(&mut cluster, &all);
        }
        let seen = check(&mut cluster);
        println!("{engine:?}, {storage:?}: {seen:?}");
        assert!(seen.lives == 9 && seen.messages > 150, "{seen:?}");
    }
}

/// It delivers nothing, and afterwards everything.
#[test]
#[ignore = "needs root, for network namespaces"]
fn a_minority_waits_and_has_everything_afterwards() {
    for engine in [EngineName::URingPaxos, EngineName::RingPaxos] {
        minority_waits(engine);
    }
}

fn minority_waits(engine: EngineName) {
    let mut cluster = loaded(engine, 5, VoteStorage::Memory);
    for (some, others) in [([1, 4], [2, 3, 5]), ([3, 5], [1, 2, 4])] {
        let wall = between(&some, &others);
        cluster.cut(&wall);
        cluster.expect_rings(&[&others]);
        cluster.mend(&wall);
        cluster.expect_rings(&[&[1, 2, 3, 4, 5]]);
    }
    let seen = check(&mut cluster);
    println!("{seen:?}");
    assert_eq!(seen.lives, 5);
}

//! Configurations that a real etcd chooses, in a namespace beside those of the nodes. The ring does the same as where
//! acceptors choose (`votes`); here etcd goes away, and comes back.

#[path = "../../../node/tests/etcd/server.rs"]
mod server;

use std::time::{Duration, Instant};

use rota_node::{CoordinationName, EngineName, PaxosConfig, TimingName, VoteStorage};
use server::Server;

use crate::cluster::{Cluster, PATIENCE};
use crate::recover::{kill_all, log_of, put_new, recover};
use crate::votes::{check, restart, set_load};

/// So long nothing changes that cannot: a multiple of all that a reconfiguration takes.
const STILL: Duration = Duration::from_secs(2);

/// The server ends before the place that it is in.
pub struct Coordinated {
    server: Server,
    pub cluster: Cluster,
}

impl Coordinated {
    /// All in one ring.
    pub fn formed(nodes: u16, storage: VoteStorage) -> Self {
        let mut cluster = Cluster::with_guests(nodes, 1, TimingName::Default);
        let (address, command) = cluster.guest(1, "etcd");
        let mut server = Server::new(address, (2379, 2380));
        server.start(command);
        cluster.config.engine = EngineName::URingPaxos;
        cluster.config.paxos = Some(PaxosConfig {
            storage,
            coordination: CoordinationName::Etcd,
            etcd: Some(vec![server.url()]),
            ..PaxosConfig::default()
        });
        cluster.start_all();
        cluster.expect_rings(&[&cluster.all()]);
        Self { server, cluster }
    }

    fn start_etcd(&mut self) {
        let (_, command) = self.cluster.guest(1, "etcd");
        self.server.start(command);
    }

    /// What a node says of itself, and a counter.
    fn status(&mut self, node: u16, counter: &str) -> (String, u64) {
        let status = self.cluster.status(node);
        let state = status["state"].as_str().expect("a state").to_owned();
        let count = status["counters"][counter].as_u64();
        (
            state,
            count.unwrap_or_else(|| panic!("{counter}: {status}")),
        )
    }

    /// While etcd is away these nodes stay where they are, though a ring that lacks a node does not go round; one of them
    /// says why. Those behind the coordinator may go on to deliver what a majority has voted for.
    fn expect_still(&mut self, nodes: &[u16]) {
        let confs = |world: &Self| -> Vec<usize> {
            let confs = nodes.iter().map(|node| world.cluster.confs(*node).len());
            confs.collect()
        };
        let before = confs(self);
        self.cluster.sleep(STILL);
        assert_eq!(confs(self), before, "nobody has chosen a configuration");
        let away: Vec<(String, u64)> = nodes
            .iter()
            .map(|node| self.status(*node, "coordination_away"))
            .collect();
        let says_so = |(state, away): &(String, u64)| {
            *away == 1 && state.contains("the coordination service cannot be reached")
        };
        assert!(away.iter().any(says_so), "{away:?}");
    }
}

impl Coordinated {
    /// A node that could not reach etcd asks it again at least every second, also where others have had their answer.
    fn expect_back(&mut self, node: u16) {
        let until = Instant::now() + PATIENCE;
        while self.status(node, "coordination_away").1 > 0 {
            assert!(Instant::now() < until, "node {node} still counts it away");
            self.cluster.sleep(Duration::from_millis(100));
        }
    }
}

/// The coordinator, again and again: the others go on by a configuration that etcd has chosen, and it is taken in again.
#[test]
#[ignore = "needs root, for network namespaces"]
fn the_coordinator_is_killed_and_etcd_chooses_what_follows() {
    let mut world = Coordinated::formed(3, VoteStorage::Async);
    set_load(&mut world.cluster);
    for victim in [1, 2, 3] {
        let (state, _) = world.status(victim, "coordination_requests");
        assert!(state.starts_with("operational: 1, 2, 3 ("), "{state}");
        let leads = format!(", coordinator {victim})");
        assert!(state.ends_with(&leads), "{state}");
        world.cluster.kill(victim);
        let others = world.cluster.running();
        world.cluster.expect_rings(&[&others]);
        restart(&mut world.cluster, &[victim]);
    }
    let requests = |node| world.status(node, "coordination_requests").1;
    let requests: u64 = [1, 2, 3].map(requests).iter().sum();
    assert!(requests > 0, "nobody has asked");
    let seen = check(&mut world.cluster);
    println!("{seen:?}");
    assert!(seen.lives == 6 && seen.messages > 200, "{seen:?}");
}

/// An established ring needs it for nothing. Without it no ring follows, whoever fails; then all goes on, and nothing is
/// lost.
#[test]
#[ignore = "needs root, for network namespaces"]
fn while_etcd_is_away_rings_go_on_and_none_changes() {
    let mut world = Coordinated::formed(3, VoteStorage::Async);
    set_load(&mut world.cluster);
    for (victim, returns) in [(3, false), (1, true)] {
        world.server.kill();
        let before = world.cluster.ring(2).cloned();
        world.cluster.sleep(Duration::from_millis(500));
        world.cluster.expect_rings(&[&[1, 2, 3]]);
        assert_eq!(world.cluster.ring(2).cloned(), before);
        world.cluster.kill(victim);
        if returns {
            // It asks to be taken in, and nobody can.
            world.cluster.start(victim);
        }
        let others = [1, 2, 3].map(|node| (node != victim).then_some(node));
        let others: Vec<u16> = others.into_iter().flatten().collect();
        world.expect_still(&others);
        world.start_etcd();
        if !returns {
            world.cluster.expect_rings(&[&others]);
            restart(&mut world.cluster, &[victim]);
        }
        world.cluster.expect_rings(&[&[1, 2, 3]]);
        world.expect_back(2);
    }
    set_load(&mut world.cluster);
    let seen = check(&mut world.cluster);
    println!("{seen:?}");
    assert!(seen.lives == 5 && seen.messages > 200, "{seen:?}");
}

/// What `rota storage recover` says is to be done in etcd, by its gateway.
fn put_key(world: &Coordinated, said: &str) {
    let key = said
        .lines()
        .find_map(|line| line.trim().strip_prefix("etcdctl put "));
    let key = key.and_then(|rest| rest.split(' ').next()).expect("a key");
    let (prefix, _) = key.rsplit_once('/').expect("a prefix");
    let script = r#"
        b() { printf %s "$1" | base64 -w0; }
        set -e
        curl -sf "$0/v3/kv/deleterange" -d "{\"key\":\"$(b "$2/")\",\"range_end\":\"$(b "${2}0")\"}"
        curl -sf "$0/v3/kv/put" -d "{\"key\":\"$(b "$1")\",\"value\":\"$(b recovered)\"}"
    "#;
    let (_, mut command) = world.cluster.guest(1, "sh");
    let command = command.args(["-c", script, &world.server.url(), key, prefix]);
    assert!(command.status().expect("sh and curl").success());
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn two_of_three_disks_are_lost_and_etcd_is_told_what_goes_on() {
    let mut world = Coordinated::formed(3, VoteStorage::Sync);
    set_load(&mut world.cluster);
    world.cluster.load(0, 0);
    world.cluster.expect_rings(&[&[1, 2, 3]]);
    kill_all(&mut world.cluster);
    for lost in [1, 2] {
        std::fs::remove_dir_all(log_of(&world.cluster, lost)).expect("a log");
    }
    let (said, new) = recover(&world.cluster, &[3]);
    put_key(&world, &said);
    for node in world.cluster.all() {
        put_new(&world.cluster, node, &new);
    }
    restart(&mut world.cluster, &[1, 2, 3]);
    let seen = check(&mut world.cluster);
    println!("{seen:?}");
    assert!(seen.lives == 6 && seen.messages > 100, "{seen:?}");
}

//! Nodes whose addresses are names of hosts: one comes back elsewhere, all do, and a resolver never answers.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rota_node::{EngineName, TimingName, VoteStorage};

use crate::cluster::Cluster;
use crate::votes;

/// The rounds of each story.
const ROUNDS: u8 = 3;

/// What the resolver of each namespace says: a file of hosts, which `ip netns exec` puts in the place of the host's.
struct Hosts {
    directories: Vec<PathBuf>,
    /// The last byte of each node's address.
    last: Vec<u8>,
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for directory in &self.directories {
            let _ = fs::remove_dir_all(directory);
        }
    }
}

impl Hosts {
    /// Gives the nodes of a cluster that has not been started names, which `known` of them have addresses for.
    fn name_nodes(cluster: &mut Cluster, known: &[u16]) -> Self {
        let all = cluster.all();
        for node in &mut cluster.config.nodes {
            node.host = Some(format!("n{}.rota.test", node.id));
        }
        let directory = |node: &u16| PathBuf::from("/etc/netns").join(cluster.namespace(*node));
        let hosts = Self {
            directories: all.iter().map(directory).collect(),
            last: all.iter().map(|node| *node as u8).collect(),
        };
        for directory in &hosts.directories {
            fs::create_dir_all(directory).expect("root");
            // Nobody answers there.
            fs::write(directory.join("resolv.conf"), "nameserver 10.77.0.250\n").expect("root");
            fs::write(directory.join("hosts"), "").expect("root");
        }
        hosts.write(known);
        hosts
    }

    /// The files stay the same ones: running nodes see them change.
    fn write(&self, known: &[u16]) {
        let line = |node: &u16| {
            format!(
                "10.77.0.{} n{node}.rota.test\n",
                self.last[usize::from(*node) - 1]
            )
        };
        let text: String = known.iter().map(line).collect();
        for directory in &self.directories {
            fs::write(directory.join("hosts"), &text).expect("root");
        }
    }

    /// A node that does not run gets another address, and its name with it.
    fn move_node(&mut self, cluster: &Cluster, node: u16, last: u8) {
        let before = std::mem::replace(&mut self.last[usize::from(node) - 1], last);
        // The first address takes the others of its network away with it, and the routes.
        let line = format!(
            "ip addr del 10.77.0.{before}/24 dev eth0 && ip addr add 10.77.0.{last}/24 dev eth0 && \
             ip route replace 239.0.0.0/8 dev eth0"
        );
        cluster.run_at(node, &line);
        self.write(&cluster.all());
    }
}

fn named(engine: EngineName) -> (Cluster, Hosts) {
    let mut cluster = match engine.has_votes() {
        true => votes::unstarted(engine, 3, VoteStorage::Async),
        false => {
            let mut cluster = Cluster::new(3, TimingName::Default);
            cluster.config.engine = engine;
            if engine.has_views() {
                cluster.config.primary = rota_node::PrimaryName::Static;
            }
            cluster
        }
    };
    let hosts = Hosts::name_nodes(&mut cluster, &[1, 2, 3]);
    cluster.start_all();
    cluster.expect_rings(&[&[1, 2, 3]]);
    (cluster, hosts)
}

fn check(mut cluster: Cluster) {
    match cluster.config.engine.has_votes() {
        true => drop(votes::check(&mut cluster)),
        false => drop(cluster.check(&[&[1, 2, 3]])),
    }
}

/// Each node in turn is killed under load, and comes back under an address that nobody has in a file.
fn comes_back_elsewhere(engine: EngineName) {
    let (mut cluster, mut hosts) = named(engine);
    votes::set_load(&mut cluster);
    for round in 1..=ROUNDS {
        let node = u16::from(1 + round % 3);
        cluster.kill(node);
        let others = cluster.running();
        cluster.expect_rings(&[&others]);
        hosts.move_node(&cluster, node, 100 + 10 * round + node as u8);
        votes::restart(&mut cluster, &[node]);
    }
    check(cluster);
}

#[test]
fn accelerated_ring_a_node_comes_back_under_another_address() {
    comes_back_elsewhere(EngineName::AcceleratedRing);
}

#[test]
fn lcr_a_node_comes_back_under_another_address() {
    comes_back_elsewhere(EngineName::Lcr);
}

#[test]
fn fastcast_a_node_comes_back_under_another_address() {
    comes_back_elsewhere(EngineName::FastCast);
}

#[test]
fn ring_paxos_a_node_comes_back_under_another_address() {
    comes_back_elsewhere(EngineName::RingPaxos);
}

#[test]
fn u_ring_paxos_a_node_comes_back_under_another_address() {
    comes_back_elsewhere(EngineName::URingPaxos);
}

/// Without multicast, nodes that move at the same time have only each other's names.
#[test]
fn two_nodes_that_move_at_the_same_time_find_each_other() {
    let mut cluster = Cluster::new(3, TimingName::Default);
    cluster.config.transport = rota_net::Transport::Unicast;
    let mut hosts = Hosts::name_nodes(&mut cluster, &[1, 2, 3]);
    cluster.start_all();
    cluster.expect_rings(&[&[1, 2, 3]]);
    for node in [2, 3] {
        cluster.kill(node);
    }
    cluster.expect_rings(&[&[1]]);
    hosts.move_node(&cluster, 2, 102);
    hosts.move_node(&cluster, 3, 103);
    for node in [2, 3] {
        cluster.start(node);
    }
    cluster.expect_rings(&[&[1, 2, 3]]);
    check(cluster);
}

#[test]
fn a_resolver_that_never_answers_delays_nobody() {
    let mut cluster = Cluster::new(3, TimingName::Default);
    let hosts = Hosts::name_nodes(&mut cluster, &[1, 2]);
    let began = Instant::now();
    for node in [1, 2] {
        cluster.start(node);
    }
    cluster.expect_rings(&[&[1, 2]]);
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    // While both ask for the third again and again, no delivery waits for it.
    cluster.load(200, 4000);
    cluster.sleep(Duration::from_secs(8));
    cluster.load(0, 0);
    for order in cluster.orders_of(&[1, 2]) {
        let longest = Duration::from_nanos(order.longest_gap);
        assert!(longest < Duration::from_millis(500), "{longest:?}");
    }
    let notes = cluster.status(1)["notes"].to_string();
    assert!(
        notes.contains("the name of node 3 has no address yet"),
        "{notes}"
    );
    hosts.write(&[1, 2, 3]);
    cluster.start(3);
    cluster.expect_rings(&[&[1, 2, 3]]);
    check(cluster);
}

#[test]
fn a_name_that_says_another_hosts_address_takes_no_node_away() {
    let (mut cluster, mut hosts) = named(EngineName::AcceleratedRing);
    cluster.kill(3);
    cluster.expect_rings(&[&[1, 2]]);
    // Node 3 is said to be where node 2 is, which goes on as before.
    hosts.last[2] = 2;
    hosts.write(&[1, 2, 3]);
    cluster.sleep(Duration::from_secs(4));
    cluster.expect_rings(&[&[1, 2]]);
    hosts.last[2] = 3;
    hosts.write(&[1, 2, 3]);
    cluster.start(3);
    cluster.expect_rings(&[&[1, 2, 3]]);
    check(cluster);
}

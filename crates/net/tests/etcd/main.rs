//! Configurations in a real etcd: the package etcd-server has to be there (`cargo xtask setup`).

mod server;

use std::net::{Ipv4Addr, TcpListener};
use std::process::Command;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use rota_core::contract::{Delivery, NodeId, Service};
use rota_net::{
    Coordination, CoordinationError, CoordinationName, EngineName, Etcd, Node, NodeConfig,
    PaxosConfig, VoteStorage,
};
use serde_json::json;
use server::Server;

/// Nothing takes so long.
const PATIENCE: Duration = Duration::from_secs(20);

/// A port that nobody uses.
fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

fn etcd() -> Command {
    Command::new("etcd")
}

fn running() -> Server {
    let mut server = Server::new(Ipv4Addr::LOCALHOST.into(), (free_port(), free_port()));
    server.start(etcd());
    server
}

fn client(urls: &[String], cluster: u32) -> Etcd {
    Etcd::new(urls, cluster)
}

fn delete_all(server: &Server, cluster: u32) {
    let first = format!("/rota/{cluster}/configurations/");
    let behind = format!("/rota/{cluster}/configurations0");
    let range = json!({
        "key": BASE64_STANDARD.encode(first),
        "range_end": BASE64_STANDARD.encode(behind),
    });
    let url = format!("{}/v3/kv/deleterange", server.url());
    let answer = ureq::post(&url).send(range.to_string());
    assert!(answer.unwrap().status().is_success());
}

#[test]
fn of_all_who_want_a_number_one_gets_its_way_and_all_are_told() {
    let server = running();
    let urls = [server.url()];
    let all_bytes: Vec<u8> = (0..=255).collect();
    for number in 1..=20 {
        let wanted = |who: u8| Bytes::from([&[who][..], &all_bytes].concat());
        let chosen: Vec<Bytes> = std::thread::scope(|scope| {
            let ask = |who| client(&urls, 7).ask(number, &wanted(who)).unwrap();
            let asking: Vec<_> = (1..=4).map(|who| scope.spawn(move || ask(who))).collect();
            asking.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(chosen.windows(2).all(|two| two[0] == two[1]), "{chosen:?}");
        assert!((1..=4).any(|who| chosen[0] == wanted(who)));
        let later = client(&urls, 7).ask(number, &Bytes::from_static(b"late"));
        assert_eq!(later.as_ref(), Ok(&chosen[0]));
    }
    // Another cluster has nothing to do with it.
    let own = Bytes::from_static(b"own");
    assert_eq!(client(&urls, 8).ask(1, &own), Ok(own));
}

#[test]
fn an_etcd_that_lacks_the_configuration_before_stores_nothing() {
    let server = running();
    let mut client = client(&[server.url()], 7);
    let bytes = Bytes::from_static;
    for number in 1..=3 {
        client.ask(number, &bytes(b"first life")).unwrap();
    }
    delete_all(&server, 7);
    let key = "/rota/7/configurations/00000000000000000003".to_owned();
    for _ in 0..2 {
        let asked = client.ask(4, &bytes(b"second life"));
        assert_eq!(asked, Err(CoordinationError::Forgotten(key.clone())));
    }
    // A cluster that is founded anew begins at the beginning.
    for number in 1..=3 {
        let asked = client.ask(number, &bytes(b"second life"));
        assert_eq!(asked, Ok(bytes(b"second life")));
    }
}

#[test]
fn members_are_asked_one_after_the_other_and_data_outlives_their_processes() {
    let mut server = running();
    let nobody = format!("http://127.0.0.1:{}", free_port());
    let mut client = client(&[nobody.clone(), server.url(), nobody], 7);
    let (own, other) = (Bytes::from_static(b"own"), Bytes::from_static(b"other"));
    assert_eq!(client.ask(1, &own).as_ref(), Ok(&own));
    server.kill();
    let began = Instant::now();
    let asked = client.ask(1, &other);
    assert!(
        matches!(asked, Err(CoordinationError::Unreachable(_))),
        "{asked:?}"
    );
    assert!(began.elapsed() < Duration::from_secs(2));
    server.start(etcd());
    assert_eq!(client.ask(1, &other), Ok(own));
}

/// Three nodes that keep their votes in memory.
struct Nodes {
    config: NodeConfig,
    nodes: Vec<Node>,
}

impl Nodes {
    fn start(url: String) -> Self {
        let mut config = NodeConfig::loopback(3, 24_800);
        config.engine = EngineName::URingPaxos;
        config.paxos = Some(PaxosConfig {
            storage: VoteStorage::Memory,
            coordination: CoordinationName::Etcd,
            etcd: Some(vec![url]),
            ..PaxosConfig::default()
        });
        config.check().unwrap();
        let mut this = Self {
            config,
            nodes: Vec::new(),
        };
        this.restart();
        this
    }

    fn restart(&mut self) {
        self.nodes.clear();
        let start = |id| Node::start(self.config.clone(), NodeId::new(id).unwrap()).unwrap();
        self.nodes = (1..=3).map(start).collect();
    }

    /// Every node submits, and all deliver the same, within so long.
    fn order(&self, within: Duration) -> bool {
        for node in &self.nodes {
            node.submit(Service::Agreed, b"message").unwrap();
        }
        let until = Instant::now() + within;
        let take = |node: &Node| {
            let mut messages = Vec::new();
            while messages.len() < 3 {
                let left = until.saturating_duration_since(Instant::now());
                match node.recv_timeout(left).ok()? {
                    Delivery::Message(message) => messages.push((message.id, message.seq)),
                    _ => continue,
                }
            }
            Some(messages)
        };
        let orders: Vec<Option<Vec<_>>> = self.nodes.iter().map(take).collect();
        assert!(orders.windows(2).all(|two| two[0] == two[1]), "{orders:?}");
        orders[0].is_some()
    }

    fn counter(&self, name: &str) -> u64 {
        let statuses = self.nodes.iter().filter_map(Node::status);
        statuses.map(|status| status.engine.counters[name]).sum()
    }
}

/// What is stored outlives a cluster that has forgotten everything: nothing is ordered until somebody deletes it.
#[test]
fn a_cluster_that_lost_all_stores_is_founded_anew_when_the_keys_are_deleted() {
    let server = running();
    let mut nodes = Nodes::start(server.url());
    assert!(nodes.order(PATIENCE));
    assert!(nodes.counter("coordination_requests") > 0);
    assert_eq!(nodes.counter("coordination_away"), 0);
    nodes.restart();
    assert!(!nodes.order(Duration::from_secs(2)));
    nodes.nodes.clear();
    delete_all(&server, nodes.config.cluster);
    nodes.restart();
    assert!(nodes.order(PATIENCE));
}

//! Configurations in a real etcd: the package etcd-server has to be there (`cargo xtask setup`).

mod login;
mod server;

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rota_core::contract::{Delivery, MessageId, NodeId, Seq, Service};
use rota_node::{
    Coordination, CoordinationError, CoordinationName, EngineName, Etcd, EtcdTls, Node, NodeConfig,
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

/// Lets a process stand still, or go on.
fn signal(server: &Server, signal: libc::c_int) {
    let pid = server.child.as_ref().expect("it runs").id();
    let status = Command::new("kill")
        .args([format!("-{signal}"), pid.to_string()])
        .status();
    assert!(status.unwrap().success());
}

fn client(urls: &[String], cluster: u32) -> Etcd {
    Etcd::new(urls, cluster)
}

fn delete_all(server: &Server, cluster: u32) {
    let first = format!("/rota/{cluster}/configurations/");
    let behind = format!("/rota/{cluster}/configurations0");
    delete(server, &first, &behind);
}

fn delete(server: &Server, first: &str, behind: &str) {
    let range = json!({
        "key": BASE64_STANDARD.encode(first),
        "range_end": BASE64_STANDARD.encode(behind),
    });
    let url = format!("{}/v3/kv/deleterange", server.url());
    let answer = ureq::post(&url).send(range.to_string());
    assert!(answer.unwrap().status().is_success());
}

fn put(server: &Server, key: &str, value: &str) {
    let pair = json!({
        "key": BASE64_STANDARD.encode(key),
        "value": BASE64_STANDARD.encode(value),
    });
    let url = format!("{}/v3/kv/put", server.url());
    let answer = ureq::post(&url).send(pair.to_string());
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

/// A node that has lost everything asks for the first one, and the oldest keys may be deleted.
#[test]
fn as_long_as_there_is_any_configuration_nobody_stores_a_first_one() {
    let server = running();
    let bytes = Bytes::from_static;
    // Others, before and behind this one.
    for cluster in [6, 70, 8] {
        let asked = client(&[server.url()], cluster).ask(1, &bytes(b"other"));
        assert_eq!(asked, Ok(bytes(b"other")));
    }
    let mut client = client(&[server.url()], 7);
    for number in 1..=9 {
        client.ask(number, &bytes(b"first life")).unwrap();
    }
    assert_eq!(client.ask(1, &bytes(b"anew")), Ok(bytes(b"first life")));
    for kept in [5, 9] {
        let key = |number| format!("/rota/7/configurations/{number:020}");
        delete(&server, &key(0), &key(kept));
        let founded = CoordinationError::Founded("/rota/7/configurations/".to_owned());
        assert_eq!(client.ask(1, &bytes(b"anew")), Err(founded));
        assert_eq!(client.ask(9, &bytes(b"late")), Ok(bytes(b"first life")));
    }
    delete_all(&server, 7);
    assert_eq!(client.ask(1, &bytes(b"anew")), Ok(bytes(b"anew")));
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

/// It takes connections and says nothing. The next one is asked after two seconds, and first from then on.
#[test]
fn a_member_that_hangs_is_waited_for_once() {
    let (hung, well) = (running(), running());
    let mut client = client(&[hung.url(), well.url()], 7);
    let own = Bytes::from_static(b"own");
    signal(&hung, libc::SIGSTOP);
    for (number, longest) in [(1, 4), (2, 1), (3, 1)] {
        let began = Instant::now();
        assert_eq!(client.ask(number, &own).as_ref(), Ok(&own));
        assert!(began.elapsed() < Duration::from_secs(longest));
    }
    signal(&hung, libc::SIGCONT);
}

/// Of three members one after the other ends, the leader among them, and comes back: what was chosen stays, and with two
/// of them there is always an answer.
#[test]
fn two_of_three_members_go_on() {
    let ports = [(); 3].map(|()| (free_port(), free_port()));
    let mut servers = Server::members(Ipv4Addr::LOCALHOST.into(), &ports);
    let launched: Vec<_> = servers
        .iter_mut()
        .map(|server| server.launch(etcd()))
        .collect();
    for (server, lines) in servers.iter().zip(&launched) {
        server.expect_ready(lines);
    }
    let urls: Vec<String> = servers.iter().map(Server::url).collect();
    let mut client = client(&urls, 7);
    let value = |number: u64| Bytes::from(number.to_string());
    // An election of etcd's takes a second, in which there are no answers.
    let mut ask = |number: u64| {
        let until = Instant::now() + PATIENCE;
        loop {
            match client.ask(number, &value(number)) {
                Ok(chosen) => return chosen,
                Err(error) => assert!(Instant::now() < until, "{error}"),
            }
        }
    };
    let mut number = 0;
    for victim in [0, 1, 2] {
        servers[victim].kill();
        for _ in 0..3 {
            number += 1;
            assert_eq!(ask(number), value(number));
        }
        servers[victim].start(etcd());
        for old in 1..=number {
            assert_eq!(ask(old), value(old));
        }
    }
    servers[0].kill();
    servers[1].kill();
    let asked = Etcd::new(&urls, 7).ask(number + 1, &value(0));
    assert!(
        matches!(asked, Err(CoordinationError::Unreachable(_))),
        "{asked:?}"
    );
}

/// Certificates in files: `NAME.pem` and `NAME.key`.
struct Pki(tempfile::TempDir);

impl Pki {
    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    fn root(&self, name: &str) -> Issuer<'static, KeyPair> {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        fs::write(self.path(&format!("{name}.pem")), pem).unwrap();
        Issuer::new(params, key)
    }

    fn issue(&self, name: &str, by: &Issuer<'static, KeyPair>) {
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let pem = params.signed_by(&key, by).unwrap().pem();
        fs::write(self.path(&format!("{name}.pem")), pem).unwrap();
        fs::write(self.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }

    fn tls(&self, ca: &str, own: Option<(&str, &str)>) -> EtcdTls {
        EtcdTls {
            ca: self.path(ca),
            certificate: own.map(|(certificate, _)| self.path(certificate)),
            key: own.map(|(_, key)| self.path(key)),
        }
    }
}

/// An etcd that asks for certificates of this root.
fn server_by_tls(pki: &Pki, root: &Issuer<'static, KeyPair>) -> Server {
    pki.issue("server", root);
    let ports = (free_port(), free_port());
    let mut server = Server::new(Ipv4Addr::LOCALHOST.into(), ports);
    server.scheme = "https";
    let mut command = etcd();
    for (option, file) in [
        ("--trusted-ca-file", "ca.pem"),
        ("--cert-file", "server.pem"),
        ("--key-file", "server.key"),
    ] {
        command.arg(option).arg(pki.path(file));
    }
    command.arg("--client-cert-auth");
    server.start(command);
    server
}

/// A certificate that is renewed is shown without a restart; one that does not fit its key yet, as while both are
/// replaced, does not take the place of the one before.
#[test]
fn certificates_are_renewed_while_a_node_runs() {
    let pki = Pki(tempfile::tempdir().unwrap());
    let (root, other) = (pki.root("ca"), pki.root("other-ca"));
    let server = server_by_tls(&pki, &root);
    for name in ["new", "newer"] {
        pki.issue(name, &root);
    }
    // As etcd sees it, this is no better than one that has expired.
    pki.issue("node", &other);
    let own = Some(("node.pem", "node.key"));
    let tls = pki.tls("ca.pem", own);
    let mut client = Etcd::open(&[server.url()], 7, Some(&tls), None).unwrap();
    let replace = |new: &str, kinds: &[&str]| {
        for kind in kinds {
            let (from, to) = (format!("{new}.{kind}"), format!("node.{kind}"));
            fs::rename(pki.path(&from), pki.path(&to)).unwrap();
        }
    };
    let mut ask = |number: u64| client.ask(number, &Bytes::from(number.to_string()));
    let refused = ask(1);
    assert!(
        matches!(refused, Err(CoordinationError::Unreachable(_))),
        "{refused:?}"
    );
    replace("new", &["pem", "key"]);
    assert_eq!(ask(1), Ok(Bytes::from("1")));
    replace("newer", &["pem"]);
    assert_eq!(ask(2), Ok(Bytes::from("2")), "by the one before");
    replace("newer", &["key"]);
    assert_eq!(ask(3), Ok(Bytes::from("3")));
}

#[test]
fn by_tls_both_sides_have_to_be_who_they_say() {
    let pki = Pki(tempfile::tempdir().unwrap());
    let (root, other) = (pki.root("ca"), pki.root("other-ca"));
    let server = server_by_tls(&pki, &root);
    pki.issue("node", &root);
    pki.issue("stranger", &other);
    let ask = |tls: EtcdTls| {
        let mut client = Etcd::open(&[server.url()], 7, Some(&tls), None).unwrap();
        client.ask(1, &Bytes::from_static(b"own"))
    };
    let own = Some(("node.pem", "node.key"));
    assert_eq!(ask(pki.tls("ca.pem", own)), Ok(Bytes::from_static(b"own")));
    for (ca, shown) in [
        ("other-ca.pem", own),
        ("ca.pem", Some(("stranger.pem", "stranger.key"))),
        ("ca.pem", None),
    ] {
        let asked = ask(pki.tls(ca, shown));
        assert!(
            matches!(asked, Err(CoordinationError::Unreachable(_))),
            "{asked:?}"
        );
    }
}

#[test]
fn a_file_that_is_none_is_said_before_anybody_is_asked() {
    let pki = Pki(tempfile::tempdir().unwrap());
    let root = pki.root("ca");
    pki.issue("node", &root);
    pki.issue("other", &root);
    fs::write(pki.path("empty.pem"), "").unwrap();
    for (ca, own, culprit) in [
        ("missing.pem", None, "missing.pem"),
        ("empty.pem", None, "empty.pem: no certificate"),
        (
            "ca.pem",
            Some(("empty.pem", "node.key")),
            "empty.pem: no certificate",
        ),
        ("ca.pem", Some(("node.pem", "node.pem")), "node.pem"),
        ("ca.pem", Some(("node.pem", "other.key")), "other.key"),
    ] {
        let made = Etcd::open(&[], 7, Some(&pki.tls(ca, own)), None);
        let said = made.unwrap_err().to_string();
        assert!(said.contains(culprit), "{said}");
    }
    let mut config = NodeConfig::loopback(3, 24_840);
    config.engine = EngineName::URingPaxos;
    config.paxos = Some(PaxosConfig {
        storage: VoteStorage::Memory,
        coordination: CoordinationName::Etcd,
        etcd: Some(vec!["https://127.0.0.1:2379".to_owned()]),
        etcd_tls: Some(pki.tls("missing-{node}.pem", None)),
        ..PaxosConfig::default()
    });
    let node = NodeId::new(2).unwrap();
    let said = config.check_etcd_files(node).unwrap_err().to_string();
    assert!(said.contains("missing-2.pem"), "{said}");
    let said = Node::start(config, node).unwrap_err().to_string();
    assert!(
        said.contains("etcd_tls: ") && said.contains("missing-2.pem"),
        "{said}"
    );
}

/// Three nodes.
struct Nodes {
    config: NodeConfig,
    nodes: Vec<Node>,
    /// The deliveries of each node in its present life.
    delivered: [Vec<(MessageId, Seq)>; 3],
}

impl Nodes {
    fn start(url: String, base_port: u16, state: Option<&Path>) -> Self {
        let mut config = NodeConfig::loopback(3, base_port);
        config.engine = EngineName::URingPaxos;
        config.state_dir = state.map(Path::to_owned);
        let storage = state.map_or(VoteStorage::Memory, |_| VoteStorage::Async);
        config.paxos = Some(PaxosConfig {
            storage,
            coordination: CoordinationName::Etcd,
            etcd: Some(vec![url]),
            ..PaxosConfig::default()
        });
        Self::with_config(config)
    }

    fn with_config(config: NodeConfig) -> Self {
        config.check().unwrap();
        let mut this = Self {
            config,
            nodes: Vec::new(),
            delivered: Default::default(),
        };
        this.restart();
        this
    }

    /// Ends all, and starts them anew; each submits a message.
    fn restart(&mut self) {
        self.nodes.clear();
        self.delivered = Default::default();
        let start = |id| Node::start(self.config.clone(), NodeId::new(id).unwrap()).unwrap();
        self.nodes = (1..=3).map(start).collect();
        for node in &self.nodes {
            node.submit(Service::Agreed, b"message").unwrap();
        }
    }

    /// Whether all deliver so many in one order, within so long.
    fn all_have(&mut self, count: usize, within: Duration) -> bool {
        let until = Instant::now() + within;
        for (node, delivered) in self.nodes.iter().zip(&mut self.delivered) {
            while delivered.len() < count {
                let left = until.saturating_duration_since(Instant::now());
                match node.recv_timeout(left) {
                    Ok(Delivery::Message(message)) => delivered.push((message.id, message.seq)),
                    Ok(_) => {}
                    Err(_) => break,
                }
            }
        }
        let longest = self
            .delivered
            .iter()
            .max_by_key(|order| order.len())
            .unwrap();
        let agrees = |order: &Vec<_>| longest.starts_with(order);
        assert!(self.delivered.iter().all(agrees), "{:?}", self.delivered);
        self.delivered.iter().all(|order| order.len() == count)
    }

    /// The values of this counter at the nodes.
    fn counters(&self, name: &str) -> Vec<u64> {
        let statuses = self.nodes.iter().map(|node| node.status().unwrap());
        statuses
            .map(|status| status.engine.counters[name])
            .collect()
    }
}

/// The stored configurations outlive a cluster that has forgotten everything: nothing is ordered until an operator
/// deletes them.
#[test]
fn a_cluster_that_lost_all_stores_is_founded_anew_when_the_keys_are_deleted() {
    let server = running();
    let mut nodes = Nodes::start(server.url(), 24_800, None);
    assert!(nodes.all_have(3, PATIENCE));
    assert!(nodes.counters("coordination_requests").iter().sum::<u64>() > 0);
    assert_eq!(nodes.counters("coordination_away"), [0; 3]);
    nodes.restart();
    assert!(!nodes.all_have(1, Duration::from_secs(2)));
    nodes.nodes.clear();
    delete_all(&server, nodes.config.cluster);
    nodes.restart();
    assert!(nodes.all_have(3, PATIENCE));
}

/// As the manual says: all logs are lost, and what etcd has is learnt by the new ones before anybody does something.
#[test]
fn a_cluster_on_disk_is_founded_anew_when_the_logs_and_the_keys_are_deleted() {
    let (server, state) = (running(), tempfile::tempdir().unwrap());
    let lose_logs = || {
        for id in 1..=3 {
            fs::remove_dir_all(state.path().join(format!("node-{id}.votes"))).unwrap();
        }
    };
    let mut nodes = Nodes::start(server.url(), 24_860, Some(state.path()));
    assert!(nodes.all_have(3, PATIENCE));
    nodes.nodes.clear();
    lose_logs();
    nodes.restart();
    assert!(!nodes.all_have(1, Duration::from_secs(2)));
    // The keys alone are not enough.
    nodes.nodes.clear();
    delete_all(&server, nodes.config.cluster);
    nodes.restart();
    assert!(!nodes.all_have(1, Duration::from_secs(2)));
    let state_of = |node: &Node| node.status().unwrap().engine.state;
    let differs = "; what the coordination service has stored is not of this cluster as it is";
    assert!(
        nodes
            .nodes
            .iter()
            .any(|node| state_of(node).ends_with(differs))
    );
    nodes.nodes.clear();
    lose_logs();
    delete_all(&server, nodes.config.cluster);
    nodes.restart();
    assert!(nodes.all_have(3, PATIENCE));
}

/// Nobody goes on by a configuration that another may have been chosen for. Once the key that all miss is there, the
/// order goes on where it was.
#[test]
fn an_etcd_that_lost_its_data_is_told_where_the_cluster_is() {
    let (server, state) = (running(), tempfile::tempdir().unwrap());
    let mut nodes = Nodes::start(server.url(), 24_820, Some(state.path()));
    assert!(nodes.all_have(3, PATIENCE));
    let before = nodes.delivered[0].clone();
    nodes.nodes.clear();
    delete_all(&server, nodes.config.cluster);
    nodes.restart();
    nodes.all_have(6, Duration::from_secs(2));
    let numbers = nodes.counters("uring_configuration");
    assert!(numbers[0] > 0 && numbers == [numbers[0]; 3], "{numbers:?}");
    let failures = nodes.counters("coordination_failures");
    assert!(failures.iter().any(|count| *count > 0), "{failures:?}");
    assert!(nodes.delivered.iter().all(|order| order.len() <= 3));
    let key = format!(
        "/rota/{}/configurations/{:020}",
        nodes.config.cluster, numbers[0]
    );
    put(&server, &key, "lost");
    assert!(nodes.all_have(6, PATIENCE));
    assert_eq!(nodes.delivered[0][..3], before);
}

//! `rota doctor` on nodes of this host, each a process.

use std::net::{Ipv4Addr, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use serde_json::Value;
use tempfile::TempDir;

/// How many ports the tests of this process have looked at.
static LOOKED_AT: AtomicU16 = AtomicU16::new(0);

/// The first of some ports that nobody has, below those that the system hands out by itself.
fn free_port() -> u16 {
    let is_free = |port: u16| UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    let next = || 28_600 + LOOKED_AT.fetch_add(10, Ordering::Relaxed) % 200;
    let mut bases = std::iter::repeat_with(next).take(20);
    let free = bases.find(|base| (*base..base + 10).all(is_free));
    free.expect("there are free ports")
}

struct Cluster {
    dir: TempDir,
    port: u16,
}

impl Cluster {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().expect("a directory"),
            port: free_port(),
        }
    }

    /// The configuration of three nodes, with these settings, for node `node`; `change` is for that node alone.
    fn file(&self, node: u16, settings: &str, change: impl Fn(String) -> String) -> PathBuf {
        let mut text = format!(
            "cluster = 7\ninsecure = true\ntransport = \"unicast\"\ntiming = \"relaxed\"\nreceive_buffer_bytes = 100000\n{settings}\n"
        );
        for id in 1..=3 {
            let port = self.port + 2 * (id - 1);
            text += &format!(
                "[[node]]\nid = {id}\naddress = \"127.0.0.1\"\ndata_port = {port}\ntoken_port = {}\n",
                port + 1
            );
        }
        let path = self.dir.path().join(format!("node-{node}.toml"));
        std::fs::write(&path, change(text)).expect("a file");
        path
    }

    fn look(&self, node: u16, settings: &str, change: impl Fn(String) -> String) -> Child {
        let file = self.file(node, settings, change);
        let child = Command::new(env!("CARGO_BIN_EXE_rota"))
            .args([
                "doctor",
                "--for",
                "4s",
                "--json",
                "--node",
                &node.to_string(),
                "--config",
            ])
            .arg(file)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        child.expect("the binary")
    }
}

fn report(child: Child) -> Value {
    let output: Output = child.wait_with_output().expect("it ends");
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let wrong = report["wrong"].as_array().expect("a list");
    let code = i32::from(!wrong.is_empty());
    assert_eq!(output.status.code(), Some(code), "{report}");
    report
}

/// The sentences about the network: how late the hosts of this test are is not its affair.
fn about_the_network(report: &Value) -> Vec<String> {
    let wrong = report["wrong"].as_array().expect("a list");
    let wrong = wrong
        .iter()
        .map(|one| one.as_str().expect("text").to_owned());
    let about_hosts = [
        "stood still",
        "stolen",
        "descriptors",
        "gets lost",
        "not answered",
        "and back takes",
    ];
    wrong
        .filter(|text| !about_hosts.iter().any(|word| text.contains(word)))
        .collect()
}

#[test]
fn three_hosts_that_reach_each_other_say_so() {
    let cluster = Cluster::new();
    let children: Vec<Child> = (1..=3)
        .map(|node| cluster.look(node, "", |text| text))
        .collect();
    for (at, child) in children.into_iter().enumerate() {
        let report = report(child);
        assert_eq!(report["node"], at as u64 + 1);
        assert_eq!(report["datagram_bytes"], 1472);
        assert_eq!(about_the_network(&report), [""; 0], "{report}");
        let peers = report["peers"].as_array().expect("a list");
        assert_eq!(peers.len(), 2);
        for peer in peers {
            let seen = &peer["seen"];
            for counted in ["answers", "small_arrived", "full_arrived"] {
                assert!(
                    seen[counted].as_u64().is_some_and(|count| count > 0),
                    "{counted}: {report}"
                );
            }
            // It is the same clock.
            let offset = seen["clock_offset_ms"].as_f64().expect("a number");
            assert!(offset.abs() < 1000.0, "{report}");
        }
        assert_eq!(report["host"]["receive_buffer_bytes"], 100_000);
    }
}

#[test]
fn a_host_that_is_not_there_and_data_that_goes_astray_are_told_apart() {
    let cluster = Cluster::new();
    let (right, wrong) = (cluster.port + 2, cluster.port + 8);
    // Node 1 sends data for node 2 where nobody is.
    let astray = move |text: String| {
        text.replace(
            &format!("data_port = {right}\n"),
            &format!("data_port = {wrong}\n"),
        )
    };
    let one = cluster.look(1, "", astray);
    let two = cluster.look(2, "", |text| text);
    let said = about_the_network(&report(one));
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        said[0].starts_with("data does not pass: nothing that node 1 sends"),
        "{said:?}"
    );
    assert!(
        said[1].starts_with("node 3 does not answer at 127.0.0.1:"),
        "{said:?}"
    );
    let said = about_the_network(&report(two));
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("node 3 does not answer"), "{said:?}");
}

#[test]
fn a_port_that_is_in_use_and_another_cluster_are_named() {
    let cluster = Cluster::new();
    let taken = UdpSocket::bind((Ipv4Addr::LOCALHOST, cluster.port + 1)).expect("it is free");
    let refused = cluster
        .look(1, "", |text| text)
        .wait_with_output()
        .expect("it ends");
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("is in use: a daemon runs here"), "{said}");
    drop(taken);
    // Datagrams of another cluster are nobody's.
    let one = cluster.look(1, "", |text| text.replace("cluster = 7", "cluster = 8"));
    let two = cluster.look(2, "", |text| text);
    for (child, other) in [(one, 2), (two, 1)] {
        let said = about_the_network(&report(child));
        let silent = format!("node {other} does not answer");
        assert!(
            said.iter().any(|text| text.starts_with(&silent)),
            "{said:?}"
        );
    }
}

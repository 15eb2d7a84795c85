//! All daemons through one of them.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::access::free_address;
use crate::cluster::Cluster;
use crate::metrics::get;
use crate::native::{PATIENCE, client, meet};
use crate::operate::rota;

/// Asks through a daemon until so many have answered; their statuses.
fn asked(cluster: &Cluster, through: u16, daemons: usize) -> Vec<Value> {
    let socket = cluster.socket(through).display().to_string();
    let until = Instant::now() + PATIENCE;
    loop {
        let output = rota(&["status", "--cluster", &socket, "--json"]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let read = |line: &str| serde_json::from_str(line).expect("JSON");
        let statuses: Vec<Value> = said.lines().map(read).collect();
        if statuses.len() == daemons && output.status.success() {
            return statuses;
        }
        assert!(Instant::now() < until, "{output:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn one_daemon_answers_for_all_and_for_those_that_are_left() {
    let mut cluster = Cluster::start(3, "cluster_status = true");
    meet(&cluster, &[1, 2, 3]);
    let _ann = client(&cluster, 2, "ann");
    let statuses = asked(&cluster, 1, 3);
    let nodes = statuses.iter().map(|status| status["node"].as_u64());
    assert_eq!(nodes.collect::<Vec<_>>(), [Some(1), Some(2), Some(3)]);
    let second = statuses[1]["clients"].as_array().expect("a list");
    assert!(
        second.iter().any(|client| client["name"] == "#ann#n2"),
        "{second:?}"
    );

    let socket = cluster.socket(3).display().to_string();
    let output = rota(&[
        "status",
        "--explain",
        "--interval",
        "200",
        "--cluster",
        &socket,
    ]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    // On a crowded host something may be slow; that all were asked is said if nothing is.
    assert!(
        said.contains("(3 of them asked)") || output.status.code() == Some(1),
        "{output:?}"
    );
    let output = rota(&["top", "--once", "--interval", "200", "--cluster", &socket]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    for name in ["n1", "n2", "n3"] {
        assert!(
            said.lines()
                .any(|line| line.split_whitespace().nth(1) == Some(name)),
            "{said}"
        );
    }
    cluster.kill(2);
    let statuses = asked(&cluster, 1, 2);
    assert_eq!(statuses[1]["node"], 3);
}

#[test]
fn the_page_of_one_daemon_shows_all() {
    let address = free_address();
    let mut cluster = Cluster::start(2, "cluster_status = true");
    let metrics = format!("[daemon]\nmetrics = \"{address}\"\n");
    cluster.restart_with(1, |text| text.replacen("[daemon]\n", &metrics, 1));
    meet(&cluster, &[1, 2]);
    let until = Instant::now() + PATIENCE;
    loop {
        let (code, body) = get(address, "GET /page HTTP/1.0\r\n\r\n");
        assert_eq!(code, "200");
        let page: Value = serde_json::from_str(&body).expect("JSON");
        let rows = page["daemons"].as_array().expect("a list");
        let nodes: Vec<_> = rows.iter().map(|row| row["node"].as_u64()).collect();
        if nodes == [Some(1), Some(2)] && page["asked"] == 2 {
            assert_eq!(rows[1]["name"], "n2");
            assert_eq!(rows[1]["members"], 2);
            return;
        }
        assert!(Instant::now() < until, "{page}");
        std::thread::sleep(Duration::from_millis(400));
    }
}

#[test]
fn daemons_tell_nothing_through_others_unless_they_are_to() {
    let cluster = Cluster::start(1, "");
    let socket = cluster.socket(1).display().to_string();
    let output = rota(&["status", "--cluster", &socket]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("cluster_status = true"), "{said}");
}

#[test]
fn rules_say_who_may_ask() {
    let uid = rustix::process::geteuid().as_raw();
    let rule = |gives: &str| format!("[[daemon.access]]\nwho = {{ uid = {uid} }}\n{gives}\n");
    let telling = rule("join = [\"rota-tell\"]\nsend = [\"#*\", \"rota-tell\"]");
    let cluster = Cluster::start(1, &format!("cluster_status = true\n{telling}"));
    assert_eq!(asked(&cluster, 1, 1)[0]["node"], 1);
    // Who may not see the group is told of nobody.
    let blind = rule("join = [\"other\"]\nsend = [\"other\"]");
    let cluster = Cluster::start(1, &format!("cluster_status = true\n{blind}"));
    let socket = cluster.socket(1).display().to_string();
    let output = rota(&["status", "--cluster", &socket]);
    assert_eq!(output.status.code(), Some(1));
}

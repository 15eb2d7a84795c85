//! `rota bench`, as a script runs it: short, on loopback.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn bench(options: &[&str]) -> (Output, Value) {
    let short = [
        "--nodes",
        "2",
        "--duration",
        "200ms",
        "--warm-up",
        "50ms",
        "--json",
    ];
    let output = Command::new(env!("CARGO_BIN_EXE_rota"))
        .arg("bench")
        .args(short)
        .args(options)
        .output()
        .expect("the binary runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last();
    let last = last.unwrap_or_else(|| panic!("no report: {output:?}"));
    let report = serde_json::from_str(last).expect("JSON");
    (output, report)
}

#[test]
fn a_load_that_all_nodes_deliver_is_a_success() {
    let (output, report) = bench(&["--rate", "5mbit"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(
        (&report["complete"], &report["identical"]),
        (&true.into(), &true.into())
    );
    assert_eq!(report.get("failure"), None);
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn who_votes_may_be_said() {
    let engine = ["--engine", "ring-paxos", "--acceptors", "2"];
    let options = ["--rate", "5mbit", "--senders", "1"];
    let (output, report) = bench(&[engine.as_slice(), &options].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(report["acceptors"], serde_json::json!([2]));
    assert_eq!(report["complete"], true);
}

#[test]
fn messages_that_do_not_arrive_are_a_failure_that_is_reported_all_the_same() {
    // Node 2 receives no data at all.
    let (output, report) = bench(&["--rate", "5mbit", "--senders", "1", "--loss", "1"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(
        (&report["complete"], &report["identical"]),
        (&false.into(), &true.into())
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("not complete"), "{said}");
    assert!(said.contains("node 2 delivered 0;"), "{said}");
    assert!(
        said.contains(report["failure"].as_str().expect("a sentence")),
        "{said}"
    );
}

#[test]
fn hops_over_a_ring_of_links_are_measured_and_add_up() {
    let options = [
        "raw",
        "--pattern",
        "hop",
        "--nodes",
        "3",
        "--size",
        "10000",
        "--rate",
        "4mbit",
        "--duration",
        "400ms",
        "--warm-up",
        "100ms",
        "--json",
    ];
    let output = Command::new(env!("CARGO_BIN_EXE_rota"))
        .arg("bench")
        .args(options)
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    // 4 Mbit/s of 10 kB are 50 messages a second.
    let rounds = report["rounds"].as_u64().expect("a number");
    assert!((1..=20).contains(&rounds), "{report}");
    let number = |value: &Value| value.as_f64().expect("a number");
    let hops = &report["hops"];
    let (message, word) = (
        number(&hops["message_hop_us"]),
        number(&hops["word_hop_us"]),
    );
    let whole = number(&report["latency_us"]["mean"]);
    assert!(message > 0.0 && word > 0.0, "{report}");
    assert!(
        (2.0 * (message + word) - whole).abs() < whole * 0.01,
        "{report}"
    );
    let at_sender = number(&hops["at_sender_us"]["mean"]);
    assert!(
        2.0 * message < at_sender && at_sender < whole,
        "the word reaches its sender on its way: {report}"
    );
}

fn figures(options: &[&str], output: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(["bench", "figures", "--json", "--output"])
        .arg(output)
        .args(options)
        .output()
        .expect("the binary runs")
}

/// What a table has in one column for what is compared.
fn column<'a>(csv: &'a str, series: &str, column: usize) -> Vec<&'a str> {
    let rows = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let rows = rows.filter(|row| row.get(1) == Some(&series));
    rows.map(|row| row[column]).collect()
}

#[test]
fn figures_are_measured_written_drawn_and_drawn_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = "--testbed loopback --only 6,7,8 --series lcr,raw-tcp,raw-all-ack,raw-hop --nodes 2 \
                   --loads 20mbit --duration 1s --warm-up 100ms --rounds 1";
    let options: Vec<&str> = options.split_whitespace().collect();
    let output = figures(&options, folder.path());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows: Vec<&Value> = (0..3).map(|at| &report["figures"][at]["rows"]).collect();
    assert_eq!(rows, [2, 2, 3]);
    let file = |name: &str| {
        let path = folder.path().join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    for (stem, compared) in [
        ("figure-6-throughput", &["lcr", "raw-tcp"][..]),
        ("figure-7-response-time", &["lcr", "raw-all-ack"]),
        ("figure-8-latency", &["lcr", "raw-all-ack", "raw-hop"]),
    ] {
        let csv = file(&format!("{stem}.csv"));
        assert!(csv.contains("# testbed loopback: mtu 65536"), "{csv}");
        for series in compared {
            let command = format!("\n# {series}: rota bench ");
            assert!(csv.contains(&command), "{stem} {series}: {csv}");
            let mbps = column(&csv, series, 3);
            assert_eq!(mbps.len(), 1, "{stem} {series}: {csv}");
            let mbps: f64 = mbps[0].parse().expect("a number");
            assert!(mbps > 0.1, "{stem} {series}: {csv}");
        }
        assert_eq!(column(&csv, "lcr", 12), ["yes"], "identical: {csv}");
        let svg = file(&format!("{stem}.svg"));
        assert!(
            svg.starts_with("<svg ") && svg.contains("\nlcr\n"),
            "{stem}: {svg}"
        );
    }
    // A second time only on demand; drawn again, it is the same drawing.
    assert_eq!(figures(&options, folder.path()).status.code(), Some(2));
    let again = tempfile::tempdir().expect("a folder");
    let from = folder.path().to_str().expect("a plain name");
    let output = figures(&["--from", from], again.path());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let drawn = |folder: &Path| fs::read(folder.join("figure-8-latency.svg")).expect("a drawing");
    assert_eq!(drawn(folder.path()), drawn(again.path()));
}

#[test]
fn a_figure_of_shares_needs_links() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = figures(&["--testbed", "loopback"], &folder.path().join("new"));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--testbed netns"), "{said}");
}

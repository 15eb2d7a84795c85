//! `rota bench`, as a script runs it: short, on loopback.

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

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

//! `rota check`, as a person and as a script run it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

/// A line of a node's trace.
fn put_line(text: &mut String, node: u16, mut event: Value) {
    event["t"] = json!(text.len());
    event["node"] = json!(node);
    event["inc"] = json!(7);
    *text += &format!("{event}\n");
}

/// Two processes that form a ring; node 1 orders a message, and whoever is `receiver` delivers it.
fn traces(dir: &Path, delivered: &str) {
    let alone = |node: u16| format!("1.{node}.7");
    for node in [1, 2] {
        let mut text = String::new();
        let mut line = |event: Value| put_line(&mut text, node, event);
        let (old, new) = (alone(node), "5.1.7");
        let between = format!("{old}>{new}");
        let members = json!([[1, 7], [2, 7]]);
        let payload = |event: &str, message: &str| {
            json!({"ev": event, "msg": message, "conf": new, "seq": 65536, "service": "agreed",
                "hash": "00000000000000ff"})
        };
        line(json!({"ev": "start"}));
        line(json!({"ev": "conf", "kind": "regular", "id": old, "members": [[node, 7]]}));
        line(
            json!({"ev": "conf", "kind": "transitional", "id": between, "old": old, "new": new,
            "members": [[node, 7]]}),
        );
        line(json!({"ev": "conf", "kind": "regular", "id": new, "members": members}));
        if node == 1 {
            line(payload("orig", "1.7.1"));
            line(payload("deliver", "1.7.1"));
        } else {
            line(payload("deliver", delivered));
        }
        fs::write(dir.join(format!("node-{node}.jsonl")), text).expect("room");
    }
}

fn check(dir: &Path, options: &[&str]) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new(env!("CARGO_BIN_EXE_rota"))
        .arg("check")
        .args([dir.join("node-1.jsonl"), dir.join("node-2.jsonl")])
        .args(options)
        .output()
        .expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (status.code(), text(stdout), text(stderr))
}

fn report(out: &str) -> Value {
    serde_json::from_str(out.lines().last().expect("a line")).expect("JSON")
}

#[test]
fn a_run_in_which_all_holds() {
    let dir = tempfile::tempdir().expect("a directory");
    traces(dir.path(), "1.7.1");
    let (code, out, err) = check(dir.path(), &[]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(!out.contains("VIOLATED"), "{out}");
    let line = |name: &str| {
        let line = out.lines().find(|line| line.starts_with(name));
        line.unwrap_or_else(|| panic!("{name}: {out}")).to_owned()
    };
    assert!(line("E1 ").ends_with("holds     2 checked"), "{out}");
    assert!(line("F1 ").ends_with("holds     no case"), "{out}");

    let (code, out, _) = check(dir.path(), &["--json", "--quiescent"]);
    assert_eq!(code, Some(0));
    let report = report(&out);
    assert_eq!(report["violations"], json!([]));
    assert_eq!(report["events"], 11);
    assert_eq!(report["processes"], 2);
    assert_eq!(report["configurations"], 3);
    assert_eq!(report["agreed"], 2);
    assert_eq!(report["unknown_ends"], 0);
}

#[test]
fn a_violation_is_told_with_its_property() {
    let dir = tempfile::tempdir().expect("a directory");
    traces(dir.path(), "1.7.2");
    let (code, out, _) = check(dir.path(), &[]);
    assert_eq!(code, Some(1), "{out}");
    let found = "E1      no creation                VIOLATED  1 found\n        process 2.7 delivered message 1.7.2";
    assert!(out.contains(found), "{out}");

    let (code, out, _) = check(dir.path(), &["--json"]);
    assert_eq!(code, Some(1));
    let report = report(&out);
    let first = &report["violations"][0];
    assert_eq!(first["property"], "E1");
    assert!(
        first["detail"]
            .as_str()
            .is_some_and(|detail| detail.contains("1.7.2"))
    );
}

#[test]
fn at_rest_everybody_has_to_be_where_the_others_are() {
    let dir = tempfile::tempdir().expect("a directory");
    traces(dir.path(), "1.7.1");
    let file = dir.path().join("node-2.jsonl");
    let text = fs::read_to_string(&file).expect("just written");
    let first_lines: String = text.split_inclusive('\n').take(2).collect();
    fs::write(&file, first_lines).expect("room");
    assert_eq!(check(dir.path(), &[]).0, Some(0));
    let (code, out, _) = check(dir.path(), &["--quiescent", "--json"]);
    assert_eq!(code, Some(1));
    assert_eq!(report(&out)["violations"][0]["property"], "C4");
}

#[test]
fn what_is_no_trace_is_wrong_use() {
    let dir = tempfile::tempdir().expect("a directory");
    traces(dir.path(), "1.7.1");
    let (code, out, err) = check(dir.path(), &["/no/such/file"]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.contains("/no/such/file"), "{err}");
    fs::write(dir.path().join("node-2.jsonl"), "{\"t\":1}\n").expect("room");
    let (code, _, err) = check(dir.path(), &[]);
    assert_eq!(code, Some(2));
    assert!(err.contains("node-2.jsonl line 1: "), "{err}");
}

/// Three processes with one order over primary views: node 3 is excluded, and comes back; `forced` is what it
/// delivers of its first view before that.
fn views(dir: &Path, forced: &str) {
    for node in [1, 2, 3] {
        let mut text = String::new();
        let mut conf = String::new();
        let mut line = |mut event: Value| {
            event["t"] = json!(text.len());
            event["node"] = json!(node);
            event["inc"] = json!(7);
            if let Some(id) = event["id"].as_str() {
                conf = id.to_owned();
            } else if event["msg"].is_string() {
                event["conf"] = json!(conf);
                event["service"] = json!("safe");
                event["hash"] = json!("00000000000000ff");
            }
            text += &format!("{event}\n");
        };
        let members = json!([[1, 7], [2, 7], [3, 7]]);
        line(json!({"ev": "start"}));
        if node == 1 {
            line(json!({"ev": "send", "msg": "1.7.1"}));
            line(json!({"ev": "orig", "msg": "1.7.1"}));
        }
        line(json!({"ev": "conf", "kind": "regular", "id": "5.1.7", "members": members}));
        line(json!({"ev": "primary", "conf": "5.1.7"}));
        let message = if node == 3 {
            line(json!({"ev": "excluded", "conf": "7.3.7"}));
            forced
        } else {
            "1.7.1"
        };
        line(json!({"ev": "deliver", "msg": message, "seq": 65536}));
        line(json!({"ev": "conf", "kind": "regular", "id": "9.1.7", "members": members}));
        line(json!({"ev": "primary", "conf": "9.1.7"}));
        fs::write(dir.join(format!("node-{node}.jsonl")), text).expect("room");
    }
}

#[test]
fn one_order_over_primary_views() {
    let dir = tempfile::tempdir().expect("a directory");
    views(dir.path(), "1.7.1");
    let third = dir.path().join("node-3.jsonl");
    let third = third.to_str().expect("UTF-8");
    // It shows which order is meant; it can be said, too.
    for options in [
        &[third, "--quiescent"][..],
        &[third, "--quiescent", "--order", "uniform"],
    ] {
        let (code, out, err) = check(dir.path(), options);
        assert_eq!(code, Some(0), "{out}{err}");
        assert!(
            out.starts_with("order: uniform (one order over primary views)\n"),
            "{out}"
        );
        let vs4 = out.lines().find(|line| line.starts_with("VS4 "));
        assert!(
            vs4.is_some_and(|line| line.ends_with("holds     2 checked")),
            "{out}"
        );
    }
    let (code, out, _) = check(dir.path(), &[third, "--json"]);
    assert_eq!(code, Some(0));
    let good = report(&out);
    assert_eq!(good["order"], "uniform");
    assert_eq!(
        (&good["views"], &good["survived_by_two"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(good["delivered_while_excluded"], 1);

    let (code, out, _) = check(dir.path(), &[third, "--order", "evs"]);
    assert_eq!(code, Some(1), "{out}");
    assert!(
        out.starts_with("order: evs (Extended Virtual Synchrony)\n"),
        "{out}"
    );
}

#[test]
fn what_breaks_one_order_over_primary_views_is_told() {
    let dir = tempfile::tempdir().expect("a directory");
    views(dir.path(), "1.7.2");
    let third = dir.path().join("node-3.jsonl");
    let third = third.to_str().expect("UTF-8");
    let (code, out, _) = check(dir.path(), &[third, "--order", "uniform"]);
    assert_eq!(code, Some(1), "{out}");
    for property in ["UI ", "UTO ", "VS2 ", "VS4 "] {
        let line = out.lines().find(|line| line.starts_with(property));
        assert!(
            line.is_some_and(|line| line.contains("VIOLATED")),
            "{property}: {out}"
        );
    }
    // The others have nothing of what is left out.
    let (_, json, _) = check(dir.path(), &["--order", "uniform", "--json"]);
    let without = report(&json);
    assert_eq!(
        (&without["holds"], &without["untraced"]),
        (&json!(true), &json!(1))
    );
}

/// Two processes of two rings; the second one delivers these messages of the rings, in this order.
fn ring_traces(dir: &Path, second: [(u64, &str); 2]) {
    for (node, order) in [(1, [(1, "1.7.1"), (2, "1.8.1")]), (2, second)] {
        let mut text = String::new();
        let mut line = |event: Value| put_line(&mut text, node, event);
        line(json!({"ev": "start"}));
        for ring in [1, 2] {
            line(json!({"ev": "sub", "part": "1+2", "ring": ring, "from": 0}));
            line(
                json!({"ev": "genesis", "ring": ring, "rank": ring, "m": 1, "origin": 0, "founded": 5}),
            );
        }
        if node == 1 {
            for (_, message) in order {
                line(json!({"ev": "send", "msg": message, "to": [], "hash": "00ff"}));
            }
        }
        for (ring, message) in order {
            line(
                json!({"ev": "deliver", "msg": message, "part": "1+2", "ring": ring, "founded": 5,
                "inst": 1, "idx": 0, "round": 0, "first": 1, "hash": "00ff"}),
            );
        }
        fs::write(dir.join(format!("node-{node}.jsonl")), text).expect("room");
    }
}

#[test]
fn traces_of_several_rings_are_known_and_judged() {
    let dir = tempfile::tempdir().expect("a directory");
    ring_traces(dir.path(), [(1, "1.7.1"), (2, "1.8.1")]);
    let (code, out, err) = check(dir.path(), &["--json"]);
    assert_eq!(code, Some(0), "{out}{err}");
    let good = report(&out);
    assert_eq!(
        (&good["order"], &good["deliveries"]),
        (&json!("multicast"), &json!(4))
    );
    ring_traces(dir.path(), [(2, "1.8.1"), (1, "1.7.1")]);
    let (code, out, _) = check(dir.path(), &[]);
    assert_eq!(code, Some(1), "{out}");
    assert!(out.contains("AM-M") && out.contains("VIOLATED"), "{out}");
}

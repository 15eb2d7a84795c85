//! Runs the binary as a user would.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

fn rota(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(args)
        .output()
        .expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a demo that has to succeed, and gives its JSON.
fn demo(args: &[&str]) -> Value {
    let output = rota(&[&["demo", "--json"], args].concat());
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{args:?}\n{out}\n{err}");
    let last = out.lines().last().expect("a line");
    let report: Value = serde_json::from_str(last).expect("JSON");
    assert_eq!(report["complete"], true, "{args:?}");
    assert_eq!(report["identical"], true, "{args:?}");
    report
}

fn scratch() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn sorted_lines(bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<_> = bytes
        .strip_suffix(b"\n")
        .unwrap_or(bytes)
        .split(|b| *b == b'\n')
        .collect();
    lines.sort_unstable();
    lines
}

#[test]
fn four_nodes_deliver_the_same() {
    let report = demo(&["--messages", "2000"]);
    assert_eq!(report["engine"], "accelerated-ring");
    assert_eq!(report["mode"], "daemon");
    assert_eq!(report["service"], "agreed");
    assert_eq!(
        (&report["nodes"], &report["messages"]),
        (&4.into(), &2000.into())
    );
    assert_eq!(report["size_bytes"], 64);
    assert_eq!(report["digest"].as_str().map(str::len), Some(64));
    for key in ["mean", "p50", "p90", "p99", "p999", "max", "worst5_mean"] {
        assert!(
            report["latency_us"][key]
                .as_f64()
                .is_some_and(|us| us > 0.0),
            "{key}"
        );
    }
    assert!(
        report["goodput_mbps"]
            .as_f64()
            .is_some_and(|rate| rate > 0.0)
    );
    assert!(
        report["seconds"]
            .as_f64()
            .is_some_and(|seconds| seconds > 0.0)
    );
}

#[test]
fn text_says_what_every_node_has() {
    let output = rota(&["demo", "--nodes", "3", "--messages", "300"]);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{out}");
    assert_eq!(
        out.lines()
            .filter(|line| line.contains("300 messages  sha256"))
            .count(),
        3
    );
    assert!(out.contains("identical and complete: yes"), "{out}");
}

#[test]
fn lines_of_any_kind_arrive_everywhere() {
    let dir = scratch();
    let mut input = b"\n\nfirst\n\xff\xfe\x00 not UTF-8\r\n\n".to_vec();
    input.extend(std::iter::repeat_n(b'x', 60 * 1024));
    input.extend(b"\n\n");
    input.extend((0..500).flat_map(|n| format!("line {}\n", n % 50).into_bytes()));
    input.extend(std::iter::repeat_n(0xc3, 60 * 1024));
    input.extend(b"\nno newline at the end");
    let (file, out) = (dir.path().join("input"), dir.path().join("deep/out"));
    fs::write(&file, &input).expect("room");
    let report = demo(&["--input", path(&file), "--output", path(&out)]);
    assert_eq!(report["messages"], sorted_lines(&input).len());

    let first = fs::read(out.join("node-1.out")).expect("the first file");
    assert_eq!(sorted_lines(&first), sorted_lines(&input));
    for node in 2..=4 {
        let other = fs::read(out.join(format!("node-{node}.out"))).expect("a file for each node");
        assert!(other == first, "node {node} has another file");
    }
    use sha2::Digest;
    let digest: String = sha2::Sha256::digest(&first)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(report["digest"], digest);
}

#[test]
fn nothing_but_empty_lines_and_nothing_at_all() {
    let dir = scratch();
    let file = dir.path().join("input");
    fs::write(&file, "\n".repeat(101)).expect("room");
    assert_eq!(demo(&["--input", path(&file)])["messages"], 101);
    fs::write(&file, "").expect("room");
    assert_eq!(demo(&["--input", path(&file)])["messages"], 0);
}

#[test]
fn any_number_of_nodes() {
    for nodes in ["1", "2", "16"] {
        assert_eq!(
            demo(&["--nodes", nodes, "--messages", "200"])["messages"],
            200
        );
    }
}

#[test]
fn a_node_alone_is_not_slow() {
    let report = demo(&["--nodes", "1", "--messages", "30000"]);
    assert!(
        report["seconds"]
            .as_f64()
            .is_some_and(|seconds| seconds < 1.0),
        "{report}"
    );
}

#[test]
fn safe_and_the_original_protocol() {
    assert_eq!(
        demo(&["--service", "safe", "--messages", "1000"])["service"],
        "safe"
    );
    let report = demo(&["--engine", "totem-ring", "--messages", "1000"]);
    assert_eq!(report["engine"], "totem-ring");
    demo(&[
        "--engine",
        "totem-ring",
        "--service",
        "safe",
        "--messages",
        "500",
        "--nodes",
        "3",
    ]);
}

#[test]
fn one_order_over_views() {
    for engine in ["fastcast", "lcr", "ring-paxos", "u-ring-paxos"] {
        let report = demo(&["--engine", engine, "--messages", "2000"]);
        assert_eq!(report["engine"], engine);
        for nodes in ["1", "2", "7"] {
            let few = ["--engine", engine, "--messages", "210", "--nodes", nodes];
            assert_eq!(demo(&few)["messages"], 210);
        }
        let large = ["--engine", engine, "--size", "50000", "--messages", "200"];
        assert_eq!(demo(&large)["size_bytes"], 50_000);
    }
}

/// However many rings there are, and whatever goes to which of them.
#[test]
fn one_order_over_several_rings() {
    for (rings, nodes) in [("1", "1"), ("2", "3"), ("3", "4"), ("7", "2")] {
        let line = ["--engine", "multi-ring", "--rings", rings, "--nodes", nodes];
        let report = demo(&[&line[..], &["--messages", "2000"]].concat());
        assert_eq!(report["engine"], "multi-ring");
        assert_eq!(
            (&report["mode"], &report["service"]),
            (&"library".into(), &"safe".into())
        );
        let large = demo(&[&line[..], &["--size", "50000", "--messages", "200"]].concat());
        assert_eq!(large["size_bytes"], 50_000);
    }
    let output = rota(&["demo", "--engine", "multi-ring", "--kill-one"]);
    assert_eq!(output.status.code(), Some(2));
}

/// What must hold of a report in which this node was killed, who had `share` messages to send.
fn check_killed(report: &Value, node: u64, total: u64, share: u64) {
    assert_eq!(report["killed"], node, "{report}");
    let delivered = report["killed_delivered"].as_u64().expect("a count");
    assert!(delivered <= share / 2, "{report}");
    assert_eq!(report["messages"], total - share + delivered, "{report}");
    let reconfigurations = report["reconfigurations"].as_u64();
    assert!(reconfigurations.is_some_and(|count| count >= 1), "{report}");
}

#[test]
fn when_one_is_killed_the_others_go_on() {
    for node in [1, 3, 4] {
        let kill = format!("--kill-one={node}");
        let report = demo(&[&kill, "--messages", "20000"]);
        check_killed(&report, node, 20_000, 5000);
        // It had delivered a quarter of its own before it was killed; others may have had less of it.
        assert!(
            report["gap_ms"].as_f64().is_some_and(|gap| gap > 0.0),
            "{report}"
        );
    }
    let report = demo(&["--kill-one", "--nodes", "2", "--messages", "5001"]);
    let node = report["killed"].as_u64().expect("a node");
    check_killed(&report, node, 5001, if node == 1 { 2501 } else { 2500 });
    let other = ["--service", "safe", "--engine", "totem-ring"];
    let report = demo(&[&["--kill-one=2", "--messages", "3000"], &other[..]].concat());
    check_killed(&report, 2, 3000, 750);
}

#[test]
fn when_one_is_killed_the_others_go_on_in_a_view() {
    for engine in ["fastcast", "lcr", "ring-paxos", "u-ring-paxos"] {
        for node in [1, 2, 3] {
            let kill = format!("--kill-one={node}");
            let three = ["--nodes", "3", "--messages", "6000", "--engine", engine];
            let report = demo(&[&three[..], &[&kill]].concat());
            check_killed(&report, node, 6000, 2000);
        }
    }
}

/// One of two is no majority.
#[test]
fn nobody_can_be_killed_where_nobody_could_go_on() {
    for engine in ["fastcast", "lcr", "ring-paxos", "u-ring-paxos"] {
        let output = rota(&["demo", "--kill-one", "--nodes", "2", "--engine", engine]);
        assert_eq!(output.status.code(), Some(2), "{engine}");
        let err = text(&output.stderr);
        assert!(err.contains("at least 3 nodes"), "{err}");
        assert!(err.contains("majority"), "{err}");
    }
}

#[test]
fn little_or_nothing_to_send_is_enough_to_be_killed() {
    for messages in ["0", "1", "7"] {
        let report = demo(&["--kill-one=1", "--nodes", "3", "--messages", messages]);
        let total: u64 = messages.parse().expect("a number");
        check_killed(&report, 1, total, total.div_ceil(3));
    }
}

#[test]
fn the_survivors_files_are_the_input_without_the_rest_of_the_killed_ones() {
    let dir = scratch();
    let (file, out) = (dir.path().join("input"), dir.path().join("out"));
    let lines: Vec<String> = (0..9000).map(|n| format!("line {n}")).collect();
    fs::write(&file, lines.join("\n")).expect("room");
    let files = ["--input", path(&file), "--output", path(&out)];
    let report = demo(&[&["--kill-one=2", "--nodes", "3"], &files[..]].concat());
    check_killed(&report, 2, 9000, 3000);
    let read = |node: u16| fs::read(out.join(format!("node-{node}.out"))).expect("a file");
    let first = read(1);
    assert!(first == read(3));
    let text = text(&first);
    let of_killed = |line: &&str| {
        let number = line.strip_prefix("line ").and_then(|n| n.parse().ok());
        number.is_some_and(|n: usize| n % 3 == 1)
    };
    let killed: Vec<&str> = text.lines().filter(of_killed).collect();
    let whole: Vec<&str> = lines.iter().map(String::as_str).filter(of_killed).collect();
    assert_eq!(report["killed_delivered"], killed.len());
    assert_eq!(killed, whole[..killed.len()]);
    assert_eq!(text.lines().count(), 6000 + killed.len());
}

#[test]
fn text_says_who_was_killed() {
    let output = rota(&["demo", "--kill-one=1", "--messages", "9000", "--nodes", "3"]);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{out}");
    assert!(out.contains("node 1   killed midway"), "{out}");
    assert!(out.contains("nothing delivered for"), "{out}");
    assert!(
        out.contains("survivors identical and complete: yes"),
        "{out}"
    );
}

#[test]
fn many_demos_at_once_do_not_disturb_each_other() {
    let run = || demo(&["--nodes", "3", "--messages", "500"]);
    let threads: Vec<_> = (0..6).map(|_| std::thread::spawn(run)).collect();
    threads
        .into_iter()
        .for_each(|thread| drop(thread.join().expect("each is good")));
}

#[test]
fn wrong_use_is_status_2() {
    let cases: &[&[&str]] = &[
        &["demo", "--kill-one", "--nodes", "1"],
        &["demo", "--kill-one=5"],
        &["demo", "--kill-one=first"],
        &["demo", "--no-such-flag"],
        &["demo", "--nodes", "0"],
        &["demo", "--nodes", "65"],
        &["demo", "--service", "perfect"],
        &["demo", "--size", "2", "--messages", "1000"],
        &["demo", "--input", "/no/such/file"],
        &["demo", "--input", "x", "--messages", "3"],
        &["bench", "--rate", "fast"],
        &["bench", "--duration", "5"],
        &["bench", "--size", "1"],
        &["bench", "--acceptors", "1"],
        &["bench", "--engine", "u-ring-paxos", "--acceptors", "9"],
        &["bench", "--engine", "lcr", "--instance-per-message"],
        &["bench", "raw", "--pattern", "circle"],
        &["check"],
        &["check", "/no/such/trace"],
        &[],
    ];
    for case in cases {
        let output = rota(case);
        assert_eq!(output.status.code(), Some(2), "{case:?}");
        assert!(!output.stderr.is_empty(), "{case:?}");
    }
}

#[test]
fn every_command_has_help_with_an_example() {
    let commands: &[&[&str]] = &[
        &["demo"],
        &["bench"],
        &["bench", "raw"],
        &["bench", "figures"],
        &["check"],
        &["config", "check"],
        &["config"],
        &[],
    ];
    for command in commands {
        let output = rota(&[command, &["--help"][..]].concat());
        assert_eq!(output.status.code(), Some(0), "{command:?}");
        assert!(text(&output.stdout).contains("Example"), "{command:?}");
    }
}

fn config_file(dir: &TempDir, content: &str) -> PathBuf {
    let file = dir.path().join("rota.toml");
    fs::write(&file, content).expect("room");
    file
}

const CONFIG: &str = r#"
cluster = 7
insecure = true
timing = "lan-fast"
personal_window = 20
transport = { multicast = "239.192.0.1:7700" }
[[node]]
id = 1
address = "127.0.0.1"
data_port = 7701
token_port = 7702
[[node]]
id = 4
address = "127.0.0.4"
data_port = 7701
token_port = 7702
"#;

#[test]
fn a_good_configuration_is_explained() {
    let dir = scratch();
    let file = config_file(&dir, CONFIG);
    let output = rota(&["config", "check", path(&file), "--node", "4"]);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let words: Vec<&str> = out.split_whitespace().collect();
    let says = |name: &str, value: &str| words.windows(2).any(|pair| pair == [name, value]);
    assert!(says("personal_window", "20"), "{out}");
    assert!(says("accelerated_window", "20"), "{out}");
    assert!(says("token_loss_ms", "100"), "{out}");
    assert!(out.contains("this node"), "{out}");
}

#[test]
fn a_bad_configuration_is_status_2() {
    let dir = scratch();
    let bad = [
        CONFIG.replace("insecure = true", ""),
        CONFIG.replace("id = 4", "id = 1"),
        CONFIG.replace("personal_window = 20", "personal_window = 0"),
        CONFIG.replace("cluster = 7", "cluster = 7\nno_such_setting = 1"),
        "not toml".to_owned(),
    ];
    for content in bad {
        let file = config_file(&dir, &content);
        let output = rota(&["config", "check", path(&file)]);
        assert_eq!(output.status.code(), Some(2), "{content}");
        assert!(
            text(&output.stderr).contains("rota.toml"),
            "{}",
            text(&output.stderr)
        );
    }
    let file = config_file(&dir, CONFIG);
    assert_eq!(
        rota(&["config", "check", path(&file), "--node", "2"])
            .status
            .code(),
        Some(2)
    );
    assert_eq!(
        rota(&["config", "check", "/no/such/file"]).status.code(),
        Some(2)
    );
}

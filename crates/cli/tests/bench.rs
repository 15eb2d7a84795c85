//! `rota bench`, as a script runs it: short, on loopback.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// On loopback clusters that run at the same time may get the same ports.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs `rota bench` while no other test does.
fn rota<'a>(options: impl IntoIterator<Item = &'a str>) -> Output {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    Command::new(env!("CARGO_BIN_EXE_rota"))
        .arg("bench")
        .args(options)
        .output()
        .expect("the binary runs")
}

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
    let output = rota(short.iter().chain(options).copied());
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
    assert_parts(&report, 1);
}

/// What is counted is of both nodes together, and each decides everything.
#[test]
fn each_message_may_have_an_instance_of_its_own() {
    for (more, shares) in [(&[][..], true), (&["--instance-per-message"], false)] {
        let options = ["--engine", "u-ring-paxos", "--size", "100"];
        let (output, report) = bench(&[&options, more].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let number = |value: &Value| value.as_u64().expect("a number");
        let decided = number(&report["counters"]["uring_values_decided"]);
        let messages = number(&report["messages"]);
        // Nearly two: not all is decided at both when the time is over.
        let least = messages * 19 / 10;
        assert_eq!(decided < least, shares, "{report}");
    }
}

/// By Little's law: what all messages took together is no more than five at a time take from when the first of them was
/// submitted.
#[test]
fn a_closed_loop_has_no_more_under_way_than_is_said() {
    let engines = [
        "accelerated-ring",
        "totem-ring",
        "fastcast",
        "lcr",
        "ring-paxos",
        "u-ring-paxos",
    ];
    let library = engines.map(|engine| [engine, "library"]);
    for [engine, mode] in library.into_iter().chain([["lcr", "daemon"]]) {
        let (output, report) = bench(&["--engine", engine, "--mode", mode, "--outstanding", "5"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(report["load"], serde_json::json!({"Outstanding": 5}));
        let number = |value: &Value| value.as_f64().expect("a number");
        let latency = &report["latency_sender_us"];
        let seconds = |name| number(&latency[name]) / 1e6;
        let messages = number(&report["messages"]);
        let most = 5.0 * (number(&report["seconds"]) + seconds("max"));
        // What each node delivers while it measures differs by some.
        let took = (messages - 10.0) * seconds("mean");
        assert!(messages > 0.0 && took < 1.05 * most, "{engine}: {report}");
        assert!(number(&latency["p90"]) >= number(&latency["p50"]));
        assert_parts(&report, 2);
    }
}

/// Each sender has a part of the goodput, and together they have all of it; nodes do not measure at quite the same time.
fn assert_parts(report: &Value, senders: usize) {
    let parts = report["goodput_mbps_of_each"].as_array().expect("parts");
    let parts = parts.iter().map(|part| part.as_f64().expect("a number"));
    let parts: Vec<f64> = parts.collect();
    let whole = report["goodput_mbps"].as_f64().expect("a number");
    let sum: f64 = parts.iter().sum();
    assert_eq!(parts.len(), senders, "{report}");
    assert!(parts.iter().all(|part| *part > 0.0), "{report}");
    assert!((0.5 * whole..1.5 * whole).contains(&sum), "{report}");
}

#[test]
fn a_closed_loop_has_no_rate_and_no_silence() {
    for others in [["--rate", "5mbit"], ["--first-message", "2"]] {
        let output = rota(["--outstanding", "5"].into_iter().chain(others));
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("cannot be used with"), "{said}");
    }
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
    let output = rota(options);
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

#[test]
fn groups_of_records_are_made_durable_by_each_node_in_a_file_of_its_own() {
    let options = "raw --pattern disk --nodes 2 --size 1000 --outstanding 20 --duration 2s --json";
    let output = rota(options.split_whitespace());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let number = |value: &Value| value.as_f64().expect("a number");
    let each = report["disk"]["records_per_second_of_each"].as_array();
    let each: Vec<f64> = each.expect("a list").iter().map(number).collect();
    assert!(
        each.len() == 2 && each.iter().all(|rate| *rate > 0.0),
        "{report}"
    );
    let (groups, records) = (number(&report["rounds"]), number(&report["deliveries"]));
    assert_eq!(records, groups * 20.0, "{report}");
    let (sync, group) = (
        number(&report["disk"]["sync_us"]["p50"]),
        number(&report["latency_us"]["p50"]),
    );
    assert!(0.0 < sync && sync <= group, "{report}");
}

fn figures(options: &[&str], output: &Path) -> Output {
    let output = output.to_str().expect("a plain name");
    let begin = ["figures", "--json", "--output", output];
    rota(begin.iter().chain(options).copied())
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

#[test]
fn storages_are_compared_in_a_figure_of_another_paper() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = "--paper multi-ring --only 3 --testbed loopback --sizes 600 --storage memory,sync --duration 300ms \
                   --warm-up 100ms --rounds 1";
    let options: Vec<&str> = options.split_whitespace().collect();
    let output = figures(&options, folder.path());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let figure = &report["figures"][0];
    assert_eq!((&figure["figure"], &figure["rows"]), (&3.into(), &4.into()));
    let drawings = figure["drawings"].as_array().expect("a list");
    assert_eq!(drawings.len(), 4);
    let csv = fs::read_to_string(folder.path().join("multi-ring-figure-3.csv")).expect("a table");
    for engine in ["ring-paxos", "u-ring-paxos"] {
        assert_eq!(column(&csv, engine, 2), ["memory", "sync"]);
        // Throughput, the latency of one message of a hundred, and what the coordinator takes of a processor.
        for at in [4, 14, 10] {
            let values = column(&csv, engine, at);
            let positive = |value: &&str| value.parse::<f64>().is_ok_and(|value| value > 0.0);
            assert!(values.iter().all(positive), "{engine}: {values:?}");
        }
    }
    let again = tempfile::tempdir().expect("a folder");
    let from = folder.path().to_str().expect("text");
    let output = figures(&["--from", from, "--only", "3"], again.path());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    for drawing in drawings {
        let drawing = Path::new(drawing.as_str().expect("a path"));
        let name = drawing.file_name().expect("a file");
        assert_eq!(
            fs::read(drawing).expect("drawn"),
            fs::read(again.path().join(name)).expect("drawn again")
        );
    }
}

#[test]
fn a_figure_is_asked_for_in_its_paper() {
    let folder = tempfile::tempdir().expect("a folder");
    for (options, said) in [
        (
            ["--only", "3"].as_slice(),
            "not a figure of fastcast: 5 6 7 8",
        ),
        (
            &["--paper", "multi-ring", "--only", "6"],
            "not a figure of multi-ring: 3",
        ),
        (
            &["--paper", "multi-ring", "--sizes", "600,1"],
            "a size of requests is too small",
        ),
    ] {
        let output = figures(options, folder.path());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains(said), "{error}");
    }
}

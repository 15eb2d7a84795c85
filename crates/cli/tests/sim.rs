//! `rota sim run` and `rota sim replay`, from outside.

use std::path::PathBuf;
use std::process::{Command, Output};

fn rota(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rota"));
    command.args(arguments.split_whitespace());
    command.output().expect("the binary starts")
}

fn report(output: &Output) -> serde_json::Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().expect("it says something");
    serde_json::from_str(last).expect("it is JSON")
}

#[test]
fn a_campaign_reports_its_totals_and_does_not_depend_on_its_threads() {
    let one = rota("sim run --engine accelerated-ring --seeds 0..6 --json");
    assert_eq!(one.status.code(), Some(0));
    let one = report(&one);
    for key in [
        "virtual_seconds",
        "token_rounds",
        "configurations",
        "failed_recoveries",
        "deliveries",
        "coverage",
    ] {
        assert!(!one[key].is_null(), "{key} is missing in {one}");
    }
    assert_eq!(one["seeds"], 6);
    assert_eq!(one["violations"], serde_json::json!([]));
    assert!(one["vacuous"].is_array());
    let two = report(&rota("sim run --seeds 0..6 --jobs 2 --json"));
    assert_eq!(one["trace_hash"], two["trace_hash"]);
}

#[test]
fn a_replayed_seed_writes_what_each_node_saw() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().display();
    let output = rota(&format!(
        "sim replay --engine totem-ring --seed 3 --keep none --calm --json --trace {path}"
    ));
    assert_eq!(output.status.code(), Some(0));
    let files = directory.path().join("seed-3");
    let quiesce = std::fs::read_to_string(files.join("run.jsonl")).expect("it came to rest");
    assert!(quiesce.contains(r#""ev":"quiesce""#));
    let mut kinds = std::collections::BTreeSet::new();
    for entry in std::fs::read_dir(&files).expect("there are files") {
        let text = std::fs::read_to_string(entry.expect("a file").path()).expect("its text");
        for line in text.lines() {
            let event: serde_json::Value = serde_json::from_str(line).expect("a line is JSON");
            kinds.insert(event["ev"].as_str().unwrap_or_default().to_owned());
        }
    }
    let expected = ["conf", "deliver", "orig", "quiesce", "send", "start"];
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn engines_with_views_are_run_and_their_traces_are_sound() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().display();
    for engine in ["fastcast", "lcr"] {
        let output = rota(&format!(
            "sim run --engine {engine} --seeds 5..7 --groups none --json --trace {path}/{engine}"
        ));
        assert_eq!(output.status.code(), Some(0), "{engine}");
        assert!(report(&output)["coverage"]["views_installed"].as_u64() > Some(0));
        let traces = std::fs::read_dir(directory.path().join(engine).join("seed-5"));
        let traces = traces
            .expect("traces")
            .map(|entry| entry.expect("one").path());
        let is_node = |path: &PathBuf| path.display().to_string().contains("/node-");
        let texts = traces.filter(is_node).map(std::fs::read_to_string);
        let text: String = texts.map(|text| text.expect("a trace")).collect();
        let broadcast = text.lines().filter(|line| line.contains(r#""ev":"orig""#));
        assert!(broadcast.count() > 0 && text.contains(r#""ev":"deliver""#));
    }
}

/// What the simulator judged while it ran, `rota check` judges from files.
#[test]
fn traces_of_clients_over_views_are_checked_alike() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().display();
    for (engine, seed) in [("fastcast", 7), ("lcr", 7)] {
        let output = rota(&format!(
            "sim replay --engine {engine} --seed {seed} --groups all --json --trace {path}/{engine}"
        ));
        let simulated = report(&output);
        let traces = directory.path().join(engine).join(format!("seed-{seed}"));
        let files = std::fs::read_dir(traces).expect("traces");
        let files: Vec<String> = files
            .map(|entry| entry.expect("one").path().display().to_string())
            .collect();
        for order in ["", "--order uniform"] {
            let checked = rota(&format!("check --json {order} {}", files.join(" ")));
            assert_eq!(checked.status.code(), Some(0), "{engine}");
            let checked = report(&checked);
            assert_eq!(checked["order"], "uniform");
            let properties = checked["properties"].as_array().expect("properties");
            let of_clients = |property: &&serde_json::Value| {
                property["property"]
                    .as_str()
                    .is_some_and(|name| name.starts_with('K'))
            };
            for property in properties.iter().filter(of_clients) {
                let name = property["property"].as_str().expect("a name");
                assert_eq!(simulated["coverage"][name], property["checked"], "{name}");
            }
        }
        for property in ["K1", "K4", "K5", "K10", "UTO"] {
            assert!(
                simulated["coverage"][property].as_u64() > Some(0),
                "{property}"
            );
        }
    }
}

/// A search of consensus says what it has searched, and by its status whether something is wrong: a number of another cluster is.
#[test]
fn a_search_of_consensus_tells_what_it_has_found() {
    let right = rota("sim explore-paxos --start begun --depth 6 --json");
    assert_eq!(right.status.code(), Some(0));
    let right = report(&right);
    assert_eq!(right["complete"], true);
    assert!(right["states"].as_u64() > Some(500), "{right}");
    let wrong = rota("sim explore-paxos --start begun --stands 2 --disks 1 --foreign 1 --json");
    assert_eq!(wrong.status.code(), Some(1));
    let wrong = report(&wrong);
    assert_eq!(wrong["violations"][0]["property"], "proposal");
}

#[test]
fn wrong_use_is_told_apart_from_a_failed_check() {
    for arguments in [
        "sim run --seeds 0..3 --engine unheard-of",
        "sim run --seeds 3..3",
        "sim run --seeds some",
        "sim run --seeds 0..3 --mutant M01",
        "sim run --seeds 0..3 --faults unheard-of",
        "sim replay --seed 1 --keep first",
        "sim run --seeds 0..3 --engine fastcast --primary none",
        "sim explore --engine fastcast",
        "sim explore-paxos --acceptors 9",
        "sim explore-paxos --start older",
        "sim explore-paxos --only nothing",
        "sim explore-paxos --mutant N17",
    ] {
        assert_eq!(rota(arguments).status.code(), Some(2), "{arguments}");
    }
    let said = rota("sim run --seeds 0..3 --mutant M01").stderr;
    assert!(String::from_utf8_lossy(&said).contains("--features mutants"));
}

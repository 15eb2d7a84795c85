//! What `rota bench` can do beside a steady load: random arrivals, series, events, searches, comparisons, slow motion.

use std::fs;
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// On loopback clusters that run at the same time may get the same ports.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs `rota bench` with these words while no other test does.
fn rota(words: &str) -> Output {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    Command::new(env!("CARGO_BIN_EXE_rota"))
        .arg("bench")
        .args(words.split_whitespace())
        .output()
        .expect("the binary runs")
}

/// The report of a run that is a success.
fn report(words: &str) -> Value {
    let output = rota(&format!("{words} --json"));
    assert_eq!(output.status.code(), Some(0), "{words}: {output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(text.lines().last().expect("a report")).expect("JSON")
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("not a number: {value}"))
}

/// What wrong use says.
fn refused(words: &str) -> String {
    let output = rota(words);
    assert_eq!(output.status.code(), Some(2), "{words}: {output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const SHORT: &str = "--nodes 2 --duration 400ms --warm-up 100ms";

#[test]
fn random_arrivals_have_the_rate_and_the_sender_says_how_late_it_was() {
    let report = report(&format!("{SHORT} --rate 20mbit --random"));
    assert_eq!(report["random"], true);
    assert_eq!(number(&report["offered_mbps"]), 20.0);
    // 740 messages are expected in the measured time; the deviation of their number is 27.
    let taken = number(&report["submitted_mbps"]);
    assert!((16.0..24.0).contains(&taken), "{report}");
    let (late, all) = (&report["generator_late_us"], &report["latency_us"]);
    assert!(number(&late["p50"]) <= number(&all["p50"]), "{report}");
}

#[test]
fn a_series_has_a_point_for_each_slot_and_all_that_was_delivered() {
    let report = report(&format!("{SHORT} --rate 20mbit --series 50ms"));
    let series = report["series"].as_array().expect("points");
    // 100 ms before the measured time, and 400 ms of it.
    assert!(series.len() >= 10, "{report}");
    let mbit: f64 = series
        .iter()
        .map(|point| number(&point["mbps"]) * 0.05)
        .sum();
    // Each node delivers its own, too: 20 Mbit/s for half a second.
    assert!((9.0..11.0).contains(&mbit), "{mbit} Mbit: {report}");
    for point in &series[..10] {
        assert!(
            number(&point["mean_us"]) <= number(&point["max_us"]),
            "{point}"
        );
    }
    assert_eq!(number(&report["warm_up_s"]), 0.1);
}

#[test]
fn the_report_names_the_host_and_what_else_it_did() {
    let report = report(&format!("{SHORT} --rate 5mbit"));
    let host = &report["host"];
    assert!(!host["kernel"].as_str().expect("a release").is_empty());
    assert!(number(&host["processors"]) >= 1.0);
    for part in ["foreign_cpu_percent", "stolen_cpu_percent"] {
        assert!((0.0..=100.0).contains(&number(&host[part])), "{host}");
    }
}

#[test]
fn a_histogram_is_written_up_to_the_longest_latency() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("latencies.hgrm");
    let report = report(&format!(
        "{SHORT} --rate 20mbit --histogram {}",
        file.display()
    ));
    let text = fs::read_to_string(&file).expect("it is written");
    let max = text.lines().find_map(|line| line.strip_prefix("#[Max"));
    let max = max.expect("a last line").trim_start_matches([' ', '=']);
    let max: f64 = max
        .split(',')
        .next()
        .expect("a number")
        .trim()
        .parse()
        .expect("a number");
    let longest = number(&report["latency_us"]["max"]);
    assert!((max - longest).abs() <= longest * 0.002, "{max} {longest}");
    let nowhere = rota(&format!("{SHORT} --rate 5mbit --histogram /dev/full"));
    assert_eq!(nowhere.status.code(), Some(1), "{nowhere:?}");
}

#[test]
fn a_warm_up_that_is_found_is_reported() {
    let report = report("--nodes 2 --duration 300ms --warm-up auto --rate 20mbit");
    let warm_up = number(&report["warm_up_s"]);
    assert!((0.2..2.0).contains(&warm_up), "{report}");
}

#[test]
fn a_node_that_is_killed_or_stands_still_does_not_end_the_run() {
    let words = "--nodes 3 --duration 2s --warm-up 100ms --rate 5mbit --series 100ms";
    let report = report(&format!("{words} --event kill:3@500ms"));
    assert_eq!(report["events"][0], "kill:3@500ms");
    assert_eq!(number(&report["nodes"]), 3.0);
    let reconfigurations = number(&report["reconfigurations"]);
    assert!(reconfigurations >= 1.0, "the others notice: {report}");
    let series = report["series"].as_array().expect("points");
    let last = &series[18..20];
    assert!(
        last.iter().all(|point| number(&point["mbps"]) > 1.0),
        "they go on: {report}"
    );
}

#[test]
fn a_node_that_stands_still_delays_the_others_for_so_long() {
    let words = "--nodes 2 --duration 1s --warm-up 100ms --rate 5mbit --event pause:2@300ms+100ms";
    let report = report(words);
    let longest = number(&report["latency_us"]["max"]);
    // It notices messages late that came while it stood still.
    assert!((90_000.0..1_000_000.0).contains(&longest), "{report}");
}

#[test]
fn the_highest_rate_within_a_bound_keeps_it() {
    let report = report("--nodes 2 --duration 200ms --warm-up 50ms --within p50=20ms");
    let best = number(&report["best_mbps"]);
    assert!(
        best > 0.0 && best < number(&report["full_mbps"]),
        "{report}"
    );
    let tries = report["tries"].as_array().expect("tries");
    assert!((6..=18).contains(&tries.len()), "{report}");
    let kept = |one: &&Value| number(&one["offered_mbps"]) == best && one["kept"] == true;
    assert!(tries.iter().filter(kept).count() >= 2, "{report}");
    let output = rota("--nodes 2 --duration 200ms --warm-up 50ms --within p50=1us");
    assert_eq!(
        output.status.code(),
        Some(1),
        "nothing is so fast: {output:?}"
    );
}

#[test]
fn a_program_beside_itself_is_no_different_and_waste_is_found() {
    let load = "--nodes 2 --duration 300ms --warm-up 100ms --rate 10mbit";
    let same = format!("compare --margin 50 --rounds 30 --json -- {load}");
    let output = rota(&same);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["verdict"], "no-difference", "{report}");
    let words: Vec<&str> = "compare --margin 50 --rounds 30 --json --but"
        .split_whitespace()
        .chain(["--waste-ns 500000", "--"])
        .chain(load.split_whitespace())
        .collect();
    let output = {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        Command::new(env!("CARGO_BIN_EXE_rota"))
            .arg("bench")
            .args(words)
            .output()
            .expect("the binary runs")
    };
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["verdict"], "worse", "{report}");
}

/// Needs namespaces, and root.
#[test]
fn slow_motion_is_told_at_full_speed() {
    let words =
        "--testbed netns --link-rate 1gbit --nodes 3 --duration 20ms --warm-up 5ms --rate 300mbit";
    let report = report(&format!("{words} --slow 20"));
    assert_eq!(number(&report["slow"]), 20.0);
    assert_eq!(number(&report["testbed"]["link_rate"]), 50e6);
    let goodput = number(&report["goodput_mbps"]);
    assert!((250.0..350.0).contains(&goodput), "{report}");
    assert!(
        (0.015..0.030).contains(&number(&report["seconds"])),
        "{report}"
    );
    assert_eq!(number(&report["warm_up_s"]), 0.005);
}

#[test]
fn options_that_do_not_fit_together_are_refused_in_words() {
    for (words, said) in [
        ("--random --rate max", "a load with a rate"),
        ("--event kill:9@1s", "there are nodes 1 to 4"),
        ("--event pause:1@4s+2s", "would not be over"),
        ("--event cut:1-2@1s+1s", "--testbed netns"),
        ("--event kill:1@1s --mode daemon", "--mode library"),
        ("--delay 1ms --engine lcr", "links of TCP"),
        ("--delay 1ms --loss 0.1", "one of them"),
        ("--series 1us", "at least 1ms"),
        ("--slow 20", "--link-rate"),
        ("--within p99=1ms --rate 5mbit", "cannot be used with"),
        ("--within 5ms", "a bound on latency"),
        ("--connect tls:host:1", "tcp:HOST:PORT"),
        ("--connect /nowhere --testbed netns", "no testbed"),
        ("compare --rounds 2", "at least 5"),
        ("compare --margin 0", "0.1 to 50"),
        ("compare --rounds 5 -- --nodes 1", "failed"),
    ] {
        let error = refused(words);
        assert!(error.contains(said), "{words}: {error}");
    }
}

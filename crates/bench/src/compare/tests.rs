use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::report::verdict;
use super::*;

fn options(by: Metric) -> CompareOptions {
    let side = Side::new(Path::new("rota"), &[]);
    CompareOptions {
        first: side.clone(),
        second: side,
        by,
        margin: 0.025,
        rounds: 60,
    }
}

/// A program that prints the next of these reports each time, and then begins again.
fn program(dir: &Path, name: &str, cpu: &[f64]) -> Side {
    let path = dir.join(name);
    let lines: Vec<String> = cpu
        .iter()
        .map(|cpu| format!("{{\"cpu_ns_per_delivery\": {cpu}, \"goodput_mbps\": 100}}"))
        .collect();
    fs::write(dir.join(format!("{name}.lines")), lines.join("\n")).expect("a file");
    let script = format!(
        "#!/bin/sh\ncd {dir}\nn=$(cat {name}.n 2>/dev/null || echo 0)\necho $((n + 1)) > {name}.n\n\
         sed -n \"$((n % {len} + 1))p\" {name}.lines\n",
        dir = dir.display(),
        len = cpu.len(),
    );
    fs::write(&path, script).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our file");
    Side::new(&path, &[])
}

fn compare(first: &[f64], second: &[f64]) -> Result<CompareReport, BenchError> {
    let dir = tempfile::tempdir().expect("a directory");
    let options = CompareOptions {
        first: program(dir.path(), "first", first),
        second: program(dir.path(), "second", second),
        ..options(Metric::Cpu)
    };
    run_compare(&options, &mut |_| {})
}

#[test]
fn ways_that_cost_the_same_have_no_difference() {
    let same = [700.0, 720.0, 690.0, 705.0, 710.0];
    let report = compare(&same, &same).expect("it runs");
    assert_eq!(report.verdict, CompareVerdict::NoDifference, "{report}");
    assert_eq!(report.failure, None);
    assert!(report.rounds < 60, "it ended when it knew: {report}");
}

#[test]
fn five_percent_more_are_found_either_way() {
    let (less, more) = ([700.0, 705.0, 695.0], [735.0, 742.0, 731.0]);
    let report = compare(&less, &more).expect("it runs");
    assert_eq!(report.verdict, CompareVerdict::Worse, "{report}");
    assert!(report.failure.is_some());
    let report = compare(&more, &less).expect("it runs");
    assert_eq!(report.verdict, CompareVerdict::Better, "{report}");
}

#[test]
fn rounds_that_contradict_each_other_are_undecided() {
    let report = compare(&[500.0, 900.0, 300.0], &[700.0, 200.0, 800.0, 1000.0]).expect("it runs");
    assert_eq!(report.verdict, CompareVerdict::Undecided, "{report}");
    assert_eq!(report.rounds, 60);
}

#[test]
fn a_run_that_fails_ends_the_comparison_with_its_words() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("rota");
    fs::write(&path, "#!/bin/sh\necho nodes disagree >&2\nexit 1\n").expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our file");
    let options = CompareOptions {
        first: Side::new(&path, &[]),
        ..options(Metric::Cpu)
    };
    let error = run_compare(&options, &mut |_| {}).expect_err("it fails");
    assert!(error.to_string().contains("nodes disagree"), "{error}");
}

#[test]
fn a_figure_that_the_load_does_not_have_is_wrong_use() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = CompareOptions {
        first: program(dir.path(), "first", &[1.0]),
        second: program(dir.path(), "second", &[1.0]),
        ..options(Metric::P99)
    };
    let error = run_compare(&options, &mut |_| {}).expect_err("no latencies");
    assert!(matches!(error, BenchError::Usage(_)), "{error}");
}

#[test]
fn an_interval_gives_its_verdict() {
    let of = |low: f64, high: f64, by| {
        let ratio = (low * high).sqrt();
        verdict(Some(Ratio { ratio, low, high }), &options(by))
    };
    assert_eq!(of(0.99, 1.01, Metric::Cpu), CompareVerdict::NoDifference);
    assert_eq!(of(1.04, 1.06, Metric::Cpu), CompareVerdict::Worse);
    assert_eq!(of(1.04, 1.06, Metric::Goodput), CompareVerdict::Better);
    assert_eq!(of(0.94, 0.96, Metric::P50), CompareVerdict::Better);
    assert_eq!(of(0.99, 1.05, Metric::Cpu), CompareVerdict::Undecided);
    assert_eq!(of(1.001, 1.12, Metric::Cpu), CompareVerdict::Undecided);
    assert_eq!(of(1.5, 3.0, Metric::Cpu), CompareVerdict::Worse);
    assert_eq!(
        verdict(None, &options(Metric::Cpu)),
        CompareVerdict::Undecided
    );
}

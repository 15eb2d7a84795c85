//! `rota model`, from outside. Its values are tested in `rota-model`.

use std::process::{Command, Output};

fn rota(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rota"));
    command.args(arguments.split_whitespace());
    command.output().expect("the binary starts")
}

fn text(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn report(arguments: &str) -> serde_json::Value {
    let text = text(&rota(arguments));
    serde_json::from_str(text.trim()).expect("one object")
}

fn near(value: &serde_json::Value, wanted: f64) {
    let is = value.as_f64().expect("a number");
    assert!((is / wanted - 1.0).abs() < 1e-4, "{is} instead of {wanted}");
}

#[test]
fn both_protocols_stand_side_by_side() {
    let ring = "model --nodes 8 --personal-window 30 --accelerated-window 20 --burst-us 356.25 --hop-us 100";
    let full = report(&format!("{ring} --json"));
    near(&full["original"]["rotation_us"], 3650.0);
    near(&full["accelerated"]["goodput_mbps"], 1481.143);
    near(&full["accelerated"]["safe_us"]["average"], 4679.660);
    let light = report(&format!("{ring} --load light --exact --json"));
    near(&light["accelerated"]["safe_us"]["average"], 2500.0);
    assert!(light["accelerated"]["goodput_mbps"].is_null());
    let rate = report("model --hop-us 78 --load 100mbit --json");
    near(&rate["original"]["agreed_us"]["average"], 433.339);
    let bounded = report(&format!("{ring} --bounded 11.65 --json"));
    near(&bounded["accelerated"]["goodput_mbps"], 1059.473);
    near(&bounded["original"]["goodput_mbps"], 710.137);
    let shown = text(&rota(ring));
    for line in [
        "rotation, us                3650.0        1750.0",
        "safe, worst, us            10493.8        7237.5",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
}

#[test]
fn what_was_measured_stands_beside_the_model() {
    let shown = text(&rota("model --check"));
    assert!(shown.contains("1698 / 1592 (-6 %)"), "{shown}");
    let rows = report("model --check --json");
    assert_eq!(rows["rows"].as_array().map(Vec::len), Some(9));
}

#[test]
fn a_sweep_is_drawn() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("drawings");
    let sweep = format!(
        "model --sweep accelerated-window --output {} --json",
        path.display()
    );
    let report = report(&sweep);
    let points = report["points"].as_array().expect("points");
    // One for each step of five from none to all.
    assert_eq!(points.len(), 2 + 3 + 5 + 7 + 9 + 11 + 15 + 21);
    for name in ["throughput", "agreed", "safe"] {
        let drawn = std::fs::read_to_string(path.join(format!("model-{name}.svg")));
        let drawn = drawn.expect("it is written");
        assert_eq!(drawn.matches("personal window").count(), 8);
    }
    let csv = std::fs::read_to_string(path.join("model.csv")).expect("it is written");
    assert_eq!(csv.lines().count(), 1 + points.len());
}

#[test]
fn what_cannot_be_is_said() {
    for (wrong, says) in [
        ("model --nodes 1", "two participants"),
        (
            "model --accelerated-window 31",
            "at most the personal window",
        ),
        ("model --hop-us 0", "positive"),
        ("model --load 900mbit", "more than its window"),
        ("model --load much", "light, full"),
        ("model --bounded 1,2", "11.65"),
        ("model --check --load light", "cannot be used with"),
        ("model --output x", "--sweep"),
    ] {
        let output = rota(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(says), "{wrong}: {said}");
    }
}

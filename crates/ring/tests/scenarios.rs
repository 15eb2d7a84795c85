//! Runs the scripts in `testdata/ring`.

#[path = "../../core/tests/script/mod.rs"]
mod script;
mod support;

use support::script::Interpreter;

#[test]
fn every_scenario_goes_as_written() {
    script::run_all(
        env!("CARGO_MANIFEST_DIR"),
        "ring",
        10,
        Interpreter::default,
        Interpreter::run,
    );
}

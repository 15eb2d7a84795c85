//! Runs the scripts in `testdata/ring`. `ROTA_BLESS=1` writes their output into them, for a review of the diff.

mod support;

use std::fs;
use std::path::Path;

use support::script::Interpreter;

/// Runs a script; answers with the script as it should read.
fn replay(text: &str) -> String {
    let mut interpreter = Interpreter::default();
    let mut result = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        result += line;
        result.push('\n');
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let printed = interpreter.run(line);
        result += "----\n";
        result += &printed;
        // What the script says until the next empty line is the old expectation.
        if lines.peek() == Some(&"----") {
            lines.next();
            while lines.peek().is_some_and(|next| !next.is_empty()) {
                lines.next();
            }
        }
    }
    result
}

#[test]
fn every_scenario_goes_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/ring");
    let bless = std::env::var_os("ROTA_BLESS").is_some();
    let mut scripts: Vec<_> = fs::read_dir(&folder)
        .expect("the scenarios are there")
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    scripts.sort();
    assert!(scripts.len() >= 10, "only {} scenarios", scripts.len());
    let mut wrong = Vec::new();
    for path in scripts {
        let text = fs::read_to_string(&path).expect("a readable scenario");
        let replayed = replay(&text);
        if replayed != text {
            if bless {
                fs::write(&path, &replayed).expect("a writable scenario");
            } else {
                wrong.push(format!("{}:\n{replayed}", path.display()));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "these went otherwise:\n{}",
        wrong.join("\n")
    );
}

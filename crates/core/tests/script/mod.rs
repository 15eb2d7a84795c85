//! Scenarios: text files of commands, each followed by what it printed.
//!
//! A command stands in a line of its own, then `----`, then its output, then an empty line. `#` begins a comment.
//! `ROTA_BLESS=1` writes the output of today into the files; the diff is what to review.

use std::fs;
use std::path::Path;

/// Runs the commands of a script; answers with the script as it should read.
fn replay(text: &str, run: &mut dyn FnMut(&str) -> String) -> String {
    let mut result = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        result += line;
        result.push('\n');
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let printed = run(line);
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

/// Runs the scripts in `testdata/FOLDER` of the crate at `crate_dir`, of which there are at least `least`, each with an
/// interpreter of its own, and fails with those that went otherwise than is written.
pub fn run_all<I>(
    crate_dir: &str,
    folder: &str,
    least: usize,
    mut interpreter: impl FnMut() -> I,
    mut run: impl FnMut(&mut I, &str) -> String,
) {
    let folder = Path::new(crate_dir).join("testdata").join(folder);
    let bless = std::env::var_os("ROTA_BLESS").is_some();
    let mut scripts: Vec<_> = fs::read_dir(&folder)
        .expect("the scenarios are there")
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    scripts.sort();
    assert!(scripts.len() >= least, "only {} scenarios", scripts.len());
    let mut wrong = Vec::new();
    for path in scripts {
        let text = fs::read_to_string(&path).expect("a readable scenario");
        let mut its = interpreter();
        let replayed = replay(&text, &mut |line| run(&mut its, line));
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

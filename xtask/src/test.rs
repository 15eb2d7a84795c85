//! The test command: the gate, every test of the workspace, the demo of the README, one total.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::failures::{self, Reports};
use crate::workspace::Workspace;
use crate::{deb, gate, install, python, setup, simulate, smoke};

/// Results added up over all test programs.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        )
    }
}

impl Totals {
    /// Adds the summary of one test program, if this line is one.
    fn add_line(&mut self, line: &str) {
        let Some(summary) = without_colours(line)
            .trim()
            .strip_prefix("test result: ")
            .map(str::to_owned)
        else {
            return;
        };
        let counts = summary.split_once(". ").map_or("", |(_, counts)| counts);
        for part in counts.split(';') {
            match part.trim().split_once(' ') {
                Some((count, "passed")) => self.passed += count.parse().unwrap_or(0),
                Some((count, "failed")) => self.failed += count.parse().unwrap_or(0),
                Some((count, "ignored")) => self.skipped += count.parse().unwrap_or(0),
                _ => {}
            }
        }
    }

    fn add_cases(&mut self, cases: Vec<bool>) {
        for passed in cases {
            *(if passed {
                &mut self.passed
            } else {
                &mut self.failed
            }) += 1;
        }
    }

    fn add(&mut self, (passed, failed, skipped): python::Counts) {
        self.passed += passed;
        self.failed += failed;
        self.skipped += skipped;
    }

    fn acceptable(self, ci: bool) -> bool {
        self.failed == 0 && self.passed > 0 && !(ci && self.skipped > 0)
    }
}

/// Runs everything, whatever failed before, and says whether all is well. The last line printed is the
/// total; a check of the gate enters it when it fails. With `ci` nothing that is built is meant for a second build.
pub fn run(workspace: Workspace, ci: bool) -> bool {
    let workspace = &if ci {
        workspace.built_once()
    } else {
        workspace
    };
    if ci && setup::is_root() && !setup::run() {
        println!("test: the set-up failed; going on with what is here");
    }
    let mut totals = Totals::default();
    stage("gate", || totals.failed = gate::run(workspace));
    println!();
    stage("tests", || run_tests(workspace, &mut totals, ci));
    stage("demo", || totals.add_cases(smoke::demo_smoke(workspace)));
    stage("librota", || totals.add_cases(install::smoke(workspace)));
    stage("package", || totals.add_cases(deb::smoke(workspace)));
    stage("Python", || totals.add(python::test(workspace)));
    stage("simulation", || {
        totals.add_cases(simulate::smoke(workspace));
    });
    stage("namespaces", || match smoke::namespaces_smoke(workspace) {
        Some(results) => totals.add_cases(results),
        None => totals.skipped += 1,
    });
    println!();
    if ci && totals.skipped > 0 {
        println!("test: no test may be skipped here");
    }
    failures::say();
    println!("{totals}");
    totals.acceptable(ci)
}

/// Tests of the crates without sockets, clock, threads and disks: all where they are quick.
const FAST: [&str; 2] = [
    "-p rota-core -p rota-ring -p rota-multiring -p rota-model -p rota-check --lib --tests",
    "-p rota-views -p rota-paxos --lib",
];

/// An answer within minutes: checks that compile nothing, and tests of the crates without the world. It says nothing of sockets, disks, daemons and
/// services, nor of worlds drawn from many seeds.
pub fn run_fast(workspace: &Workspace) -> bool {
    let mut totals = Totals {
        failed: gate::run_fast(workspace),
        ..Totals::default()
    };
    println!();
    stage("tests", || {
        for tests in FAST {
            let tests = format!("test {tests} --locked --no-fail-fast");
            if let Err(error) = cargo_test(workspace.cargo(&tests), &mut totals, false) {
                println!("test: {error}");
                failures::note(error);
                totals.failed = totals.failed.max(1);
            }
        }
    });
    println!();
    failures::say();
    println!("{totals}");
    totals.acceptable(false)
}

/// Runs a part of it, and says how long it took.
fn stage(name: &str, part: impl FnOnce()) {
    let started = Instant::now();
    part();
    println!("test: {name} took {:.0} s", started.elapsed().as_secs_f64());
}

fn run_tests(workspace: &Workspace, totals: &mut Totals, ci: bool) {
    let failed_before = totals.failed;
    if let Err(error) = run_cargo_test(workspace, totals, ci) {
        println!("test: {error}");
        failures::note(error);
        // A test program that dies writes no summary, and one that does not compile never starts.
        totals.failed = totals.failed.max(failed_before + 1);
    }
}

/// Builds all tests. Nothing watches over it: how long a build takes is the machine's affair, and what it says goes
/// to the standard error.
fn build_tests(workspace: &Workspace) -> Result<(), String> {
    let mut command = workspace.cargo("test --workspace --locked --no-run");
    let status = command.stdin(Stdio::null()).status();
    match status.map_err(|error| format!("cannot start cargo test: {error}"))? {
        status if status.success() => Ok(()),
        status => Err(format!("cargo test --no-run: {status}")),
    }
}

/// Runs `cargo test`, passing its output on line by line. An error means cargo failed.
fn run_cargo_test(workspace: &Workspace, totals: &mut Totals, ci: bool) -> Result<(), String> {
    build_tests(workspace)?;
    let mut command = workspace.cargo("test --workspace --locked --no-fail-fast");
    // Tests that make network namespaces are marked as ignored: without root they count as skipped.
    if setup::is_root() {
        command.args(["--", "--include-ignored"]);
    }
    cargo_test(command, totals, ci)
}

/// Runs this `cargo test`, and adds up what its programs say.
fn cargo_test(mut command: Command, totals: &mut Totals, ci: bool) -> Result<(), String> {
    if ci {
        // A terminal would not interrupt it there.
        command.process_group(0);
    }
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start cargo test: {error}"))?;
    let watchdog = ci.then(|| Watchdog::over(child.id()));
    if let Some(stdout) = child.stdout.take() {
        let mut reader = BufReader::new(stdout);
        let mut bytes = Vec::new();
        let mut reports = Reports::default();
        while reader
            .read_until(b'\n', &mut bytes)
            .is_ok_and(|length| length > 0)
        {
            watchdog.iter().for_each(Watchdog::pat);
            let line = String::from_utf8_lossy(&bytes);
            print!("{line}");
            totals.add_line(&line);
            reports
                .line(&without_colours(&line))
                .into_iter()
                .for_each(failures::note);
            bytes.clear();
        }
    }
    let status = child
        .wait()
        .map_err(|error| format!("cannot wait for cargo test: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("cargo test: {status}"))
    }
}

/// Ends a process group that has been silent for too long: a test that hangs is a failure with a name,
/// not a run without an end.
struct Watchdog(mpsc::Sender<()>);

impl Watchdog {
    /// The longest a test may say nothing.
    const SILENCE: Duration = Duration::from_mins(12);

    fn over(group: u32) -> Self {
        let (pats, patted) = mpsc::channel();
        thread::spawn(move || {
            loop {
                match patted.recv_timeout(Self::SILENCE) {
                    Ok(()) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => break,
                }
            }
            println!("test: nothing was heard for {:?}: killed", Self::SILENCE);
            let group = format!("-{group}");
            let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        });
        Self(pats)
    }

    fn pat(&self) {
        // It has ended only if it killed.
        let _ = self.0.send(());
    }
}

/// Takes out the escape sequences that colour a terminal.
fn without_colours(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            // `ESC [ … m`: the first letter ends it.
            characters.by_ref().find(char::is_ascii_alphabetic);
        } else {
            out.push(character);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals_of(output: &str) -> Totals {
        let mut totals = Totals::default();
        output.lines().for_each(|line| totals.add_line(line));
        totals
    }

    #[test]
    fn summaries_of_all_programs_are_added_up() {
        let output = "running 2 tests\ntest a ... ok\n\
            test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.01s\n\
            \n   Doc-tests rota_core\n\
            test result: FAILED. 10 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(
            totals_of(output),
            Totals {
                passed: 12,
                failed: 3,
                skipped: 1
            }
        );
    }

    #[test]
    fn a_coloured_summary_counts() {
        let line = "test result: \u{1b}[32mok\u{1b}[m. 4 passed; 0 failed; 0 ignored; 0 measured";
        assert_eq!(
            totals_of(line),
            Totals {
                passed: 4,
                failed: 0,
                skipped: 0
            }
        );
    }

    #[test]
    fn other_lines_count_nothing() {
        let output =
            "test result_is_kept ... ok\n3 passed; 1 failed\nexpected test result: ok. 1 passed\n";
        assert_eq!(totals_of(output), Totals::default());
    }

    #[test]
    fn the_last_line_has_its_exact_form() {
        let totals = Totals {
            passed: 5,
            failed: 0,
            skipped: 2,
        };
        assert_eq!(totals.to_string(), "5 passed, 0 failed, 2 skipped");
    }

    #[test]
    fn a_skipped_test_is_a_failure_in_ci_only() {
        let totals = Totals {
            passed: 5,
            failed: 0,
            skipped: 1,
        };
        assert!(totals.acceptable(false));
        assert!(!totals.acceptable(true));
    }

    #[test]
    fn no_test_at_all_is_a_failure() {
        assert!(!Totals::default().acceptable(false));
    }
}

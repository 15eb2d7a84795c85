//! The gate: checks that read the sources and never write them, one line of report each.

use std::io::Write;
use std::time::Instant;

use crate::workspace::{Workspace, output_of};
use crate::{
    claims, commits, failures, header, hygiene, licences, pages, purity, ratchet, rules, simulate,
};

/// What a check found: a remark for its line when it passed, the whole complaint when it failed.
pub type Verdict = Result<String, String>;

/// Whether a check compiles, which is what takes time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cost {
    Compiles,
    Reads,
}

use Cost::{Compiles, Reads};

type Check = (&'static str, fn(&Workspace) -> Verdict, Cost);

const CHECKS: &[Check] = &[
    ("format", format, Reads),
    ("clippy", clippy, Compiles),
    ("broken versions", broken_versions, Compiles),
    ("fuzz targets", fuzz_targets, Compiles),
    ("documentation", documentation, Compiles),
    ("core dependencies", purity::dependencies, Reads),
    ("core sources", purity::sources, Reads),
    ("core without std", purity::builds_without_std, Compiles),
    ("unsafe in its places", purity::unsafe_in_its_places, Reads),
    ("C header", header::check, Reads),
    ("ratchet", ratchet::check, Reads),
    ("rules", rules::check, Reads),
    ("mutants", rules::mutants, Reads),
    ("claims", claims::check, Reads),
    ("paths in pages", pages::paths, Reads),
    ("glossary", pages::glossary, Reads),
    ("watched counters", pages::counters, Reads),
    ("hygiene", hygiene::check, Reads),
    ("licences", licences::check, Reads),
    ("commits", commits::check, Reads),
];

/// Runs every check, also after one failed, and returns how many failed.
pub fn run(workspace: &Workspace) -> u64 {
    run_some(workspace, |_| true)
}

/// The same without those that compile.
pub fn run_fast(workspace: &Workspace) -> u64 {
    run_some(workspace, |cost| cost == Reads)
}

fn run_some(workspace: &Workspace, is_wanted: impl Fn(Cost) -> bool) -> u64 {
    let mut failed = 0;
    for (name, check, _) in CHECKS.iter().filter(|(_, _, cost)| is_wanted(*cost)) {
        print!("gate: {name:<20} ");
        // The line shows which check is running; losing that to a closed pipe is no failure.
        let _ = std::io::stdout().flush();
        let started = Instant::now();
        let verdict = check(workspace);
        let seconds = started.elapsed().as_secs_f64();
        match verdict {
            Ok(remark) => println!("ok    {seconds:5.1} s  {remark}"),
            Err(complaint) => {
                failed += 1;
                failures::note(format!("{name}: {}", complaint.trim_end()));
                println!("FAIL  {seconds:5.1} s\n{}\n", complaint.trim_end());
            }
        }
    }
    failed
}

fn format(workspace: &Workspace) -> Verdict {
    output_of(&mut workspace.cargo("fmt --all --check"))
        .map(|_| String::new())
        .map_err(|said| format!("{said}\nrun `cargo fmt --all`"))
}

fn clippy(workspace: &Workspace) -> Verdict {
    let command = "clippy --workspace --all-targets --locked -- -D warnings";
    output_of(&mut workspace.cargo(command)).map(|_| String::new())
}

/// Builds that break the protocols on purpose compile; the test command runs them.
fn broken_versions(workspace: &Workspace) -> Verdict {
    let line = format!(
        "clippy --all-targets --locked {} -- -D warnings",
        simulate::BROKEN
    );
    output_of(&mut workspace.cargo(&line)).map(|_| String::new())
}

/// The fuzz targets compile: a workspace of their own, which no other command builds.
fn fuzz_targets(workspace: &Workspace) -> Verdict {
    let line = "clippy --manifest-path fuzz/Cargo.toml --target-dir target --no-default-features --locked \
                -- -D warnings";
    output_of(&mut workspace.cargo(line)).map(|_| String::new())
}

fn documentation(workspace: &Workspace) -> Verdict {
    let mut command = workspace.cargo("doc --workspace --no-deps --locked");
    output_of(command.env("RUSTDOCFLAGS", "-D warnings")).map(|_| String::new())
}

/// Joins findings into a verdict: none is a pass with this remark.
pub fn verdict(findings: &[String], remark: String) -> Verdict {
    if findings.is_empty() {
        Ok(remark)
    } else {
        Err(findings.join("\n"))
    }
}

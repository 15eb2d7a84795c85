//! Simulated faults: a slice of fresh seeds for the test command, the seeds that once failed, and the
//! mutants.

use std::process::{Command, Stdio};

use crate::failures;
use crate::install::target_directory;
use crate::workspace::{Workspace, output_of};

/// Fresh seeds for each engine in the test command: the long campaigns are run by hand.
const SEEDS: u64 = 300;

/// The same for the engines with views, whose worlds take longer.
const SEEDS_WITH_VIEWS: u64 = 60;

/// The same where disks are simulated, too.
const SEEDS_WITH_DISKS: u64 = 12;

/// The same where voters lose what they have in every seed.
const SEEDS_WITH_LOSSES: u64 = 10;

/// Seeds that are run twice, to see that a run depends on its seed only.
const TWICE: u64 = 25;

/// Mutants for the test command: each is found out within seconds.
const FEW_MUTANTS: [&str; 11] = [
    "M01", "M05", "M09", "M17", "M20", "R03", "G04", "G10", "M38", "V06", "L08",
];

/// Each with how many fresh seeds.
const ENGINES: [(&str, u64); 6] = [
    ("accelerated-ring", SEEDS),
    ("totem-ring", SEEDS),
    ("fastcast", SEEDS_WITH_VIEWS),
    ("lcr", SEEDS_WITH_VIEWS),
    ("ring-paxos", SEEDS_WITH_DISKS),
    ("u-ring-paxos", SEEDS_WITH_DISKS),
];

/// The packages that can be broken, so that they can be.
pub const BROKEN: &str = "-p rota-core -p rota-ring -p rota-views -p rota-paxos -p rota-sim -p rota-multiring -p rota-kv -p rota-log --features rota-core/mutants,rota-ring/mutants,rota-views/mutants,rota-paxos/mutants,rota-sim/mutants,rota-multiring/mutants,rota-kv/mutants,rota-log/mutants";

/// Tests that break what they look after, in minutes.
const WITH_MUTANTS: [&str; 19] = [
    "changes",
    "fastcast",
    "groups_model",
    "ill",
    "lcr",
    "merging",
    "moves",
    "outlook",
    "paxos",
    "replicas",
    "serving",
    "settings",
    "shares_model",
    "stale",
    "subscribing",
    "together",
    "uring",
    "views_model",
    "walks",
];

/// Those that search for too long for the test command.
const WITH_MUTANTS_FOR_LONG: [&str; 1] = ["explore_paxos"];

/// What the test command simulates. One result each.
pub fn smoke(workspace: &Workspace) -> Vec<bool> {
    let first = first_seed(workspace);
    let mut results = Vec::new();
    for (engine, fresh) in ENGINES {
        let seeds = format!("{first}..{}", first + fresh);
        let line = format!("sim run --engine {engine} --seeds {seeds} --jobs 2");
        results.push(report(&line, rota(workspace, &line).is_ok()));
        let line = format!(
            "sim run --engine {engine} --seeds 0..{} --json",
            TWICE.min(fresh)
        );
        let hash = |line: &str| {
            rota(workspace, line)
                .ok()
                .and_then(|text| trace_hash(&text))
        };
        let (one, other) = (hash(&line), hash(&format!("{line} --jobs 2")));
        results.push(report(
            &format!("{line}, twice"),
            one.is_some() && one == other,
        ));
    }
    let seeds = format!("{first}..{}", first + SEEDS_WITH_LOSSES);
    for engine in ["u-ring-paxos", "ring-paxos"] {
        let line = format!("sim run --engine {engine} --faults stores --seeds {seeds} --jobs 2");
        results.push(report(&line, rota(workspace, &line).is_ok()));
    }
    for line in regressions(workspace) {
        results.push(report(&line, rota(workspace, &line).is_ok()));
    }
    results.push(report(
        "mutants of rules and small worlds",
        rules(workspace, &[]),
    ));
    results.push(report(
        &format!("mutants {}", FEW_MUTANTS.join(" ")),
        built_mutants(workspace, &FEW_MUTANTS),
    ));
    results
}

/// Breaks what rules and small worlds look after, each mutant for itself, and shows that they notice.
fn rules(workspace: &Workspace, more: &[&str]) -> bool {
    let line = format!("test --profile campaign --locked {BROKEN}");
    let mut command = workspace.cargo(&line);
    for test in WITH_MUTANTS.iter().chain(more) {
        command.args(["--test", test]);
    }
    command.args(["--", "each_broken_version", "each_mutant"]);
    let status = command.stdin(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Breaks the protocols in all ways, and shows that the checks notice: simulations, rules and small worlds.
pub fn all_mutants(workspace: &Workspace) -> bool {
    let simulated = mutants(workspace, &[]);
    rules(workspace, &WITH_MUTANTS_FOR_LONG) && simulated
}

/// Breaks the protocol in these ways, or in all that simulations find out, and shows that the checks notice.
pub fn mutants(workspace: &Workspace, only: &[&str]) -> bool {
    let line =
        "run --profile campaign --locked -p rota-sim --features mutants --bin rota-mutants --";
    let mut command = workspace.cargo(line);
    let status = command.args(only).stdin(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// The same, with the program that [`rules`] has built, whose tests are of its package.
fn built_mutants(workspace: &Workspace, only: &[&str]) -> bool {
    let target = target_directory(workspace).unwrap_or_default();
    let mut program = Command::new(target.join("campaign/rota-mutants"));
    let status = program.args(only).stdin(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Other seeds for every commit, the same for the same one.
fn first_seed(workspace: &Workspace) -> u64 {
    let mut git = std::process::Command::new("git");
    git.args(["rev-parse", "HEAD"])
        .current_dir(workspace.root());
    let head = output_of(&mut git).unwrap_or_default();
    let digits = head.trim().get(..8).unwrap_or("0");
    1_000_000 + 1000 * u64::from_str_radix(digits, 16).unwrap_or(0)
}

/// Commands that once found something.
fn regressions(workspace: &Workspace) -> Vec<String> {
    let path = workspace.root().join("crates/sim/regressions.txt");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

/// Runs the release binary; answers with what it printed.
fn rota(workspace: &Workspace, line: &str) -> Result<String, String> {
    let mut command = workspace.cargo("run --release --locked --");
    command.args(line.split_whitespace()).stdin(Stdio::null());
    output_of(&mut command)
}

fn trace_hash(json: &str) -> Option<String> {
    let (_, rest) = json.split_once("\"trace_hash\":\"")?;
    rest.split('"').next().map(str::to_owned)
}

fn report(name: &str, passed: bool) -> bool {
    let verdict = if passed { "ok" } else { "FAILED" };
    println!("simulate: {name} ... {verdict}");
    if !passed {
        failures::note(name);
    }
    passed
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    #[test]
    fn the_hash_is_found_in_a_report() {
        let json = r#"{"seeds":1,"trace_hash":"00ff","violations":[]}"#;
        assert_eq!(trace_hash(json).as_deref(), Some("00ff"));
        assert_eq!(trace_hash("{}"), None);
    }

    /// The programs of tests in a folder that have a test of broken versions.
    fn breaking(tests: &Path) -> impl Iterator<Item = String> + use<> {
        let entries = fs::read_dir(tests).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter_map(|path| {
            let files = match path.is_dir() {
                true => fs::read_dir(&path)
                    .ok()?
                    .flatten()
                    .map(|entry| entry.path())
                    .collect(),
                false => vec![path.clone()],
            };
            let breaks = |file: &PathBuf| {
                let text = fs::read_to_string(file).unwrap_or_default();
                text.contains("fn each_broken_version") || text.contains("fn each_mutant")
            };
            let stem = path.file_stem()?.to_str()?.to_owned();
            files.iter().any(breaks).then_some(stem)
        })
    }

    #[test]
    fn all_tests_of_broken_versions_are_run_by_one_command() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
        let packages = BROKEN.split(" --features").next().unwrap_or_default();
        let packages = packages
            .split("-p rota-")
            .map(str::trim)
            .filter(|name| !name.is_empty());
        let found: BTreeSet<String> = packages
            .flat_map(|package| breaking(&crates.join(package).join("tests")))
            .collect();
        let run = WITH_MUTANTS.iter().chain(&WITH_MUTANTS_FOR_LONG);
        assert_eq!(found, run.map(|test| (*test).to_owned()).collect());
    }
}

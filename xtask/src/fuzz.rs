//! Runs the fuzz targets one after another.

use crate::workspace::{Workspace, output_of};

/// How long each target runs unless told otherwise.
pub const DEFAULT_SECONDS: u64 = 60;

/// Runs every target in `fuzz/fuzz_targets` for so many seconds; stops at the first that finds
/// something.
pub fn run(workspace: &Workspace, seconds: u64) -> bool {
    if output_of(&mut workspace.cargo("fuzz --version")).is_err() {
        eprintln!("fuzz: cargo-fuzz is not installed; try `cargo install --locked cargo-fuzz`");
        return false;
    }
    match targets(workspace) {
        Ok(targets) if targets.is_empty() => {
            eprintln!("fuzz: no target in fuzz/fuzz_targets");
            false
        }
        Ok(targets) => targets
            .iter()
            .all(|target| run_target(workspace, target, seconds)),
        Err(error) => {
            eprintln!("fuzz: {error}");
            false
        }
    }
}

fn targets(workspace: &Workspace) -> Result<Vec<String>, String> {
    let listing = output_of(&mut workspace.cargo("fuzz list"))?;
    Ok(listing
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect())
}

fn run_target(workspace: &Workspace, target: &str, seconds: u64) -> bool {
    println!("fuzz: {target} for {seconds} s");
    // The coverage instrumentation is a nightly flag; the variable lets the stable compiler take it.
    // No sanitizer: the code under test has no unsafe, and without one the run is several times faster.
    // Debug assertions stay on, as cargo-fuzz has them by default.
    let status = workspace
        .cargo("fuzz run --sanitizer none")
        .args([target, "--", &format!("-max_total_time={seconds}")])
        .env("RUSTC_BOOTSTRAP", "1")
        .status();
    status.is_ok_and(|status| status.success())
}

//! The README's demo, run as a newcomer runs it.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::failures;
use crate::setup::is_root;
use crate::workspace::Workspace;

/// A demo takes seconds; one that takes this long hangs.
const DEMO_LIMIT: Duration = Duration::from_secs(120);

const LINES: usize = 200;

/// Builds the release binary and runs the demo: without and with a file of input, and with a node that is
/// killed. One result each.
pub fn demo_smoke(workspace: &Workspace) -> Vec<bool> {
    let built = workspace.cargo("build --release --locked").status();
    let built = built.is_ok_and(|status| status.success());
    report(
        "cargo build --release",
        if built {
            Ok(())
        } else {
            Err("failed".to_owned())
        },
    );
    if !built {
        return vec![false];
    }
    let mut plain = workspace.cargo("run --release --locked -- demo");
    let plain = report("rota demo", succeeds(&mut plain));
    let with_input = report("rota demo --input FILE", with_input(workspace));
    let mut killing = workspace.cargo("run --release --locked -- demo --kill-one");
    let killing = report("rota demo --kill-one", succeeds(&mut killing));
    let mut rings =
        workspace.cargo("run --release --locked -- demo --engine multi-ring --rings 3 --nodes 3");
    let rings = report("rota demo --engine multi-ring", succeeds(&mut rings));
    let mut bench = workspace.cargo(
        "run --release --locked -- bench --engine multi-ring --rings 4 --nodes 3 --rate 20mbit --duration 1s",
    );
    let bench = report("rota bench --engine multi-ring", succeeds(&mut bench));
    vec![built, plain, with_input, killing, rings, bench]
}

/// The benchmark in namespaces of its own, on shaped links, with both engines: it exits 0 only if all
/// nodes delivered everything in the same order. `None` says, loudly, that it cannot run: it needs root.
pub fn namespaces_smoke(workspace: &Workspace) -> Option<Vec<bool>> {
    if !is_root() {
        println!("smoke: rota bench --testbed netns ... SKIPPED: it needs root");
        return None;
    }
    let bench = |engine: &str| {
        let line = "run --release --locked -- bench --testbed netns --nodes 3 --link-rate 100mbit";
        let mut command = workspace.cargo(line);
        command.args(["--duration", "1s", "--rate", "20mbit", "--engine", engine]);
        let name = format!("rota bench --testbed netns --engine {engine}");
        report(&name, succeeds(&mut command))
    };
    let engines = ["accelerated-ring", "totem-ring"].map(bench);
    let figures = report("rota bench figures --only 5", shares_figure(workspace));
    Some(engines.into_iter().chain([figures]).collect())
}

/// The figure that loopback cannot have, on slow links and in short: its table has each tenth of each second, and it
/// is drawn.
fn shares_figure(workspace: &Workspace) -> Result<(), String> {
    let folder = std::env::temp_dir().join(format!("rota-figures-{}", std::process::id()));
    let line = "run --release --locked -- bench figures --only 5 --link-rate 100mbit --phase 1s --rounds 1 --output";
    let mut command = workspace.cargo(line);
    let measured = succeeds(command.arg(&folder));
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let (csv, svg) = (read("figure-5-shares.csv"), read("figure-5-shares.svg"));
    let _ = fs::remove_dir_all(&folder);
    measured?;
    let slots = csv.lines().filter(|line| line.starts_with("1,")).count();
    match (slots, svg.contains("</svg>")) {
        (50, true) => Ok(()),
        (slots, drawn) => Err(format!("{slots} slots, not 50; drawn: {drawn}")),
    }
}

fn with_input(workspace: &Workspace) -> Result<(), String> {
    let folder = std::env::temp_dir().join(format!("rota-smoke-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let result = run_on_file(workspace, &folder.join("input.txt"));
    // Left-overs in the temporary folder do no harm.
    let _ = fs::remove_dir_all(&folder);
    result
}

fn run_on_file(workspace: &Workspace, input: &Path) -> Result<(), String> {
    let text: String = (1..=LINES)
        .map(|number| format!("line {number}\n"))
        .collect();
    fs::write(input, text).map_err(|error| format!("{}: {error}", input.display()))?;
    let mut command = workspace.cargo("run --release --locked -- demo --input");
    succeeds(command.arg(input))
}

fn succeeds(command: &mut Command) -> Result<(), String> {
    let child = command
        .stdin(Stdio::null())
        .spawn()
        .map_err(|error| format!("cannot start: {error}"))?;
    wait(child, DEMO_LIMIT)
}

/// Runs a command to its end, or kills it when its time is over; what came of it, and all that it said on
/// its standard error.
pub fn finish(command: &mut Command, limit: Duration) -> (Result<(), String>, String) {
    let spawned = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => return (Err(format!("cannot start: {error}")), String::new()),
    };
    let said = child.stderr.take().map(|mut pipe| {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            // What was read before an error is better than nothing.
            let _ = pipe.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        })
    });
    let result = wait(child, limit);
    let said = said.and_then(|reader| reader.join().ok());
    (result, said.unwrap_or_default())
}

fn wait(mut child: Child, limit: Duration) -> Result<(), String> {
    let started = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(status.to_string()),
            Ok(None) if started.elapsed() < limit => {
                thread::sleep(Duration::from_millis(50));
            }
            Ok(None) => {
                // Either the kill works or the child has just ended; both end the wait.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("still running after {} s", limit.as_secs()));
            }
            Err(error) => return Err(format!("cannot wait: {error}")),
        }
    }
}

/// Says on a line of its own what came of a case.
pub fn report(name: &str, result: Result<(), String>) -> bool {
    match &result {
        Ok(()) => println!("smoke: {name} ... ok"),
        Err(error) => {
            println!("smoke: {name} ... FAILED: {error}");
            failures::note(format!("{name}: {error}"));
        }
    }
    result.is_ok()
}

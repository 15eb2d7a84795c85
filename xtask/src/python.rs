//! The Python package: its wheel, its types, and its tests against the real binary.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::install::target_directory;
use crate::setup;
use crate::smoke::{finish, report};
use crate::workspace::{Workspace, output_of};

/// A suite of seconds; one that takes this long hangs.
const LIMIT: Duration = Duration::from_mins(5);

/// Tests of the daemons that do more where the package is there.
const WITH_PACKAGE: [&str; 3] = [
    "cuts_of_the_clients_for_python",
    "clients_of_all_languages",
    "copies_of_a_store",
];

/// An interpreter with the tools of `python/tests/requirements.txt`, and where things are.
struct Shop {
    /// Of the package.
    folder: PathBuf,
    /// Of the wheel.
    wheels: PathBuf,
    /// Of the interpreter and its tools.
    programs: PathBuf,
    /// Daemons for the tests.
    rota: PathBuf,
}

/// What the tests came to: passed, failed, skipped.
pub type Counts = (u64, u64, u64);

/// Builds the wheel, and runs all that is said of it against the release binary.
pub fn test(workspace: &Workspace) -> Counts {
    let built = open(workspace).and_then(|shop| shop.build(workspace).map(|()| shop));
    let shop = match built {
        Ok(shop) => shop,
        Err(error) => {
            report("the Python wheel", Err(error));
            return (0, 1, 0);
        }
    };
    let cases = [
        report("the Python wheel", Ok(())),
        report("mypy --strict rota tests examples", shop.types()),
        report("stubtest rota._native", shop.stubs()),
    ];
    let mut counts = (0, 0, 0);
    for passed in cases {
        *(if passed { &mut counts.0 } else { &mut counts.1 }) += 1;
    }
    let cut = report("clients for Python beside others", shop.cuts(workspace));
    *(if cut { &mut counts.0 } else { &mut counts.1 }) += 1;
    let (passed, failed, skipped) = shop.tests();
    (counts.0 + passed, counts.1 + failed, counts.2 + skipped)
}

/// The same by itself, with the binary that it needs.
pub fn run(workspace: &Workspace) -> bool {
    let built = workspace.cargo("build --release --locked").status();
    if !built.is_ok_and(|status| status.success()) {
        return false;
    }
    let (passed, failed, skipped) = test(workspace);
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    failed == 0
}

/// Builds the wheel alone, and says where it is.
pub fn wheel(workspace: &Workspace) -> bool {
    let built = open(workspace).and_then(|shop| shop.build(workspace).map(|()| shop));
    match built {
        Ok(shop) => {
            println!("wheel: in {}", shop.wheels.display());
            true
        }
        Err(error) => {
            eprintln!("wheel: {error}");
            false
        }
    }
}

/// Makes the interpreter's own place below the target directory, once.
fn open(workspace: &Workspace) -> Result<Shop, String> {
    let target = target_directory(workspace)?;
    let shop = Shop {
        folder: workspace.root().join("python"),
        wheels: target.join("wheels"),
        programs: target.join("python-venv/bin"),
        rota: target.join("release/rota"),
    };
    if !shop.programs.join("pip").is_file() {
        let mut python = Command::new("python3");
        python.args(["-m", "venv", "--clear"]);
        let made = output_of(python.arg(target.join("python-venv")));
        made.map_err(|error| format!("{error}\n{}", setup::VENV_HINT))?;
    }
    let mut pip = shop.program("pip");
    pip.args(["install", "--quiet", "--disable-pip-version-check", "-r"]);
    output_of(pip.arg("tests/requirements.txt"))?;
    Ok(shop)
}

impl Shop {
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.current_dir(&self.folder);
        command
    }

    /// The interpreter, away from the sources, which lack the compiled half.
    fn python(&self) -> Command {
        let mut command = self.program("python");
        command.current_dir(self.folder.join("tests"));
        // No compiled copies beside the sources.
        command.arg("-B");
        command
    }

    /// Builds the wheel, and installs it.
    fn build(&self, workspace: &Workspace) -> Result<(), String> {
        // There may be one of another version.
        let _ = fs::remove_dir_all(&self.wheels);
        let mut maturin = self.program("maturin");
        maturin.envs(workspace.settings().iter().copied());
        maturin.args(["build", "--release", "--locked", "--interpreter"]);
        maturin.arg(self.programs.join("python"));
        output_of(maturin.arg("--out").arg(&self.wheels))?;
        let wheel = only_wheel(&self.wheels)?;
        let mut pip = self.program("pip");
        pip.args(["install", "--quiet", "--disable-pip-version-check"]);
        pip.args(["--force-reinstall", "--no-deps"]);
        output_of(pip.arg(wheel)).map(drop)
    }

    /// Of the sources, all of them.
    fn types(&self) -> Result<(), String> {
        let mut mypy = self.program("mypy");
        mypy.arg("--cache-dir").arg(self.wheels.join("mypy"));
        mypy.args(["rota", "tests", "examples"]);
        output_of(mypy.env("MYPYPATH", "tests")).map(drop)
    }

    /// Whether the stubs say what the compiled half has.
    fn stubs(&self) -> Result<(), String> {
        let mut stubtest = self.python();
        output_of(stubtest.args(["-m", "mypy.stubtest", "rota._native"])).map(drop)
    }

    /// The tests in Rust that have clients of any library, for these.
    fn cuts(&self, workspace: &Workspace) -> Result<(), String> {
        let mut cuts = workspace.cargo("test --locked --quiet --workspace --test daemons --");
        cuts.args(WITH_PACKAGE);
        let (result, text) = finish(cuts.env("ROTA_PYTHON", self.programs.join("python")), LIMIT);
        result.map_err(|error| format!("{error}\n{text}"))
    }

    fn tests(&self) -> Counts {
        let mut tests = self.python();
        tests.args(["-X", "faulthandler", "-m", "unittest"]);
        let (result, text) = finish(tests.env("ROTA", &self.rota), LIMIT);
        print!("{text}");
        let counts = counts(&text);
        match (report("python -m unittest", result), counts) {
            (passed, Some(counts)) if passed == (counts.1 == 0) => counts,
            // It died, or said something that it should not.
            (_, Some((passed, failed, skipped))) => (passed, failed.max(1), skipped),
            (_, None) => (0, 1, 0),
        }
    }
}

fn only_wheel(folder: &Path) -> Result<PathBuf, String> {
    let entries = fs::read_dir(folder).map_err(|error| error.to_string())?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut wheels = paths.filter(|path| path.extension().is_some_and(|kind| kind == "whl"));
    match (wheels.next(), wheels.next()) {
        (Some(wheel), None) if wheel.to_string_lossy().contains("abi3") => Ok(wheel),
        _ => Err("there is not exactly one wheel for all versions of Python".to_owned()),
    }
}

/// Reads the summary of unittest: `Ran 9 tests in 1.2s`, then `OK (skipped=1)` or
/// `FAILED (failures=1, errors=2)`.
fn counts(text: &str) -> Option<Counts> {
    let mut lines = text.lines().rev();
    let verdict = lines.find(|line| line.starts_with("OK") || line.starts_with("FAILED"))?;
    let ran = text
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("Ran "))?;
    let ran: u64 = ran.split(' ').next()?.parse().ok()?;
    let details = verdict.split_once('(').map_or("", |(_, details)| details);
    let of = |name: &str| {
        let parts = details.trim_end_matches(')').split(", ");
        let found = parts.filter_map(|part| part.strip_prefix(name)?.strip_prefix('='));
        found
            .filter_map(|count| count.parse::<u64>().ok())
            .sum::<u64>()
    };
    let failed = of("failures") + of("errors") + of("unexpected successes");
    let skipped = of("skipped") + of("expected failures");
    Some((ran.saturating_sub(failed + skipped), failed, skipped))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_counted() {
        let text = "a ... ok\n\nRan 28 tests in 4.6s\n\nOK\nsys:1: a warning\n";
        assert_eq!(counts(text), Some((28, 0, 0)));
        let text = "Ran 9 tests in 0.1s\n\nOK (skipped=2, expected failures=1)\n";
        assert_eq!(counts(text), Some((6, 0, 3)));
        let text = "Ran 9 tests in 0.1s\n\nFAILED (failures=1, errors=2, skipped=1)\n";
        assert_eq!(counts(text), Some((5, 3, 1)));
    }

    #[test]
    fn what_ends_without_a_summary_counts_nothing() {
        assert_eq!(counts("Fatal Python error: Aborted\n"), None);
        assert_eq!(counts("Ran 3 tests in 0.1s\n"), None);
    }
}

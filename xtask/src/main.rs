//! Everything a contributor runs: the gate, the tests, the fuzzers, and the set-up they need.

#![forbid(unsafe_code)]

mod claims;
mod commits;
mod deb;
mod failures;
mod fuzz;
mod gate;
mod header;
mod hygiene;
mod install;
mod licences;
mod pages;
mod purity;
mod python;
mod ratchet;
mod rules;
mod setup;
mod simulate;
mod site;
mod smoke;
mod source;
mod test;
mod workspace;

use std::path::Path;
use std::process::ExitCode;

use workspace::Workspace;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  gate              every check that needs no test run; changes no source file
  test [--ci]       the gate, all tests, the README's demo, some simulation; with --ci a skipped test is a failure
  test --fast       checks that compile nothing, and tests of the protocols without sockets, disks and long campaigns
  fuzz [SECONDS]    each fuzz target for SECONDS (60)
  mutants [M...]    break the protocol on purpose, and see that the checks notice: all, or these
  header            make the header for C anew, with cbindgen
  install-c PREFIX  librota, its header and its pkg-config file below PREFIX
  deb [BINARY]      a package for Debian, below the target directory; of this binary or of an optimised one
  wheel             the Python package, as a wheel below the target directory
  python            the tests of the Python package alone
  site              the documentation as pages with a search, below the target directory
  setup             install what the tests need and this machine lacks
";

/// Failures of use, as opposed to failures of a check.
const WRONG_USE: u8 = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let workspace = match Workspace::find() {
        Ok(workspace) => workspace,
        Err(error) => {
            eprintln!("xtask: {error}");
            return ExitCode::FAILURE;
        }
    };
    let passed = match arguments.as_slice() {
        ["gate"] => gate::run(&workspace) == 0,
        ["test"] => test::run(workspace, in_ci()),
        ["test", "--fast"] => test::run_fast(&workspace),
        ["test", "--ci"] => test::run(workspace, true),
        ["fuzz"] => fuzz::run(&workspace, fuzz::DEFAULT_SECONDS),
        ["fuzz", seconds] => match seconds.parse() {
            Ok(seconds) => fuzz::run(&workspace, seconds),
            Err(_) => return wrong_use(),
        },
        ["mutants"] => simulate::all_mutants(&workspace),
        ["mutants", only @ ..] => simulate::mutants(&workspace, only),
        ["header"] => header::run(&workspace),
        ["install-c", prefix] => install::run(&workspace, Path::new(prefix)),
        ["deb"] => deb::run(&workspace, None),
        ["deb", binary] => deb::run(&workspace, Some(Path::new(binary))),
        ["python"] => python::run(&workspace),
        ["wheel"] => python::wheel(&workspace),
        ["setup"] => setup::run(),
        ["site"] => site::run(&workspace),
        ["--help" | "-h" | "help"] => {
            print!("{USAGE}");
            true
        }
        _ => return wrong_use(),
    };
    if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn wrong_use() -> ExitCode {
    eprint!("{USAGE}");
    ExitCode::from(WRONG_USE)
}

fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

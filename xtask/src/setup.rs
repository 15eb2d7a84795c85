//! What the tests need from the machine, installed where it is missing.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use crate::purity::{BARE_TARGET, bare_target_installed};

/// Programs the tests start, and the packages that have them.
const TOOLS: &[&str] = &[
    "ip",
    "tc",
    "python3",
    "pkg-config",
    "etcd",
    "strace",
    "nft",
    "go",
    "gofmt",
    "javac",
    "jar",
];
const PACKAGES: &[&str] = &[
    "iproute2",
    "python3",
    "python3-venv",
    "pkg-config",
    "etcd-server",
    "strace",
    "nftables",
    "golang-go",
    "default-jdk-headless",
];

/// What to do where Python cannot make an environment of its own.
pub const VENV_HINT: &str = "Python's venv is missing: `cargo xtask setup`";

/// Installs what is missing, saying what it does. False when something the tests need is still missing.
pub fn run() -> bool {
    add_with_rustup();
    let lacking = missing();
    if lacking.is_empty() {
        println!("setup: {} and Python's venv are here", TOOLS.join(", "));
        return true;
    }
    println!("setup: {} missing", lacking.join(", "));
    if !is_root() {
        println!("setup: as root: apt-get install {}", PACKAGES.join(" "));
        return false;
    }
    let install = [&["install", "-y", "--no-install-recommends"], PACKAGES].concat();
    succeeds("apt-get", &["update"]);
    succeeds("apt-get", &install) && missing().is_empty()
}

fn missing() -> Vec<&'static str> {
    let tools = TOOLS.iter().copied();
    let mut missing: Vec<&str> = tools.filter(|tool| !installed(tool)).collect();
    // Debian's Python has it in a package of its own.
    let mut python = Command::new("python3");
    let probe = python.args(["-c", "import venv, ensurepip"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        missing.push("Python's venv");
    }
    missing
}

/// The gate's tools. Without the bare target the gate still has its other two checks of the core, and
/// without the others it fails and says so; none of this is worth stopping for here.
fn add_with_rustup() {
    if !installed("rustup") {
        return;
    }
    for component in ["rustfmt", "clippy"] {
        let program = if component == "clippy" {
            "cargo-clippy"
        } else {
            component
        };
        let probe = Command::new(program).arg("--version").output();
        if !probe.is_ok_and(|output| output.status.success()) {
            succeeds("rustup", &["component", "add", component]);
        }
    }
    if !bare_target_installed() {
        succeeds("rustup", &["target", "add", BARE_TARGET]);
    }
}

/// Whether this process may install packages.
pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(|folder| Path::new(folder).to_path_buf());
    std::env::split_paths(&path)
        .chain(system)
        .any(|folder| folder.join(program).is_file())
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    println!("setup: {program} {}", arguments.join(" "));
    let status = Command::new(program)
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .status();
    let succeeded = status.is_ok_and(|status| status.success());
    if !succeeded {
        println!("setup: {program} failed");
    }
    succeeded
}

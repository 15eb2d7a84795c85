//! The crates of protocols stay sans-I/O: what they depend on, what they name, and that they build where no standard
//! library exists. And unsafe code stays in the crates that may hold it.

use crate::gate::{Verdict, verdict};
use crate::source;
use crate::workspace::{Workspace, output_of};

/// All that they may be built from. A crate earns its place here by reaching no socket, clock,
/// thread or file.
const ALLOWED: &[&str] = &[
    "rota-core",
    "rota-ring",
    "rota-views",
    "rota-paxos",
    "rota-multiring",
    "bytes",
];

/// The crates, and where they are.
const PURE: [(&str, &str); 5] = [
    ("rota-core", "crates/core/src/"),
    ("rota-ring", "crates/ring/src/"),
    ("rota-views", "crates/views/src/"),
    ("rota-paxos", "crates/paxos/src/"),
    ("rota-multiring", "crates/multiring/src/"),
];

/// Where unsafe code may be: system calls, memory that another process sees or that `fork` wipes, and what C
/// hands over.
const UNSAFE: &[&str] = &["crates/net/", "crates/memory/src/", "crates/ffi/src/"];

/// A target whose toolchain has no `std` to link.
pub const BARE_TARGET: &str = "x86_64-unknown-none";

/// Checks the dependency tree of each, alone and without the features that other members ask for.
pub fn dependencies(workspace: &Workspace) -> Verdict {
    let mut findings = Vec::new();
    for (name, _) in PURE {
        let mut command = workspace.cargo(&format!(
            "tree -p {name} -e normal,build --target all --prefix none --locked --format"
        ));
        let tree = output_of(command.arg("{p}|{f}"))?;
        findings.extend(judge_tree(name, &tree));
    }
    verdict(&findings, ALLOWED.join(", "))
}

/// Judges a crate's lines of `name version (path)|feature,feature`.
fn judge_tree(of: &str, tree: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for line in tree.lines().filter(|line| !line.trim().is_empty()) {
        let (package, features) = line.split_once('|').unwrap_or((line, ""));
        let name = package.split_whitespace().next().unwrap_or_default();
        if !ALLOWED.contains(&name) {
            findings.push(format!(
                "{of} depends on {package}, which is not on the allow-list"
            ));
        }
        if features
            .split(',')
            .any(|feature| feature.trim_end_matches(" (*)") == "std")
        {
            findings.push(format!(
                "{name} is built with its `std` feature: default-features = false"
            ));
        }
    }
    if !tree.contains(of) {
        findings.push(format!("cargo tree says nothing about {of}"));
    }
    findings
}

/// Checks that each says it needs no `std` and no `unsafe`, and names `std` in tests only.
pub fn sources(workspace: &Workspace) -> Verdict {
    let mut findings = Vec::new();
    for (_, place) in PURE {
        let path = format!("{place}lib.rs");
        let root = source::blank(&workspace.text(&path)?);
        for attribute in ["#![no_std]", "#![forbid(unsafe_code)]"] {
            if !root.lines().any(|line| line.trim() == attribute) {
                findings.push(format!("{path}: `{attribute}` is missing"));
            }
        }
    }
    let mut files = workspace.rust_files()?;
    let is_pure = |path: &String| PURE.iter().any(|(_, place)| path.starts_with(place));
    files.retain(|path| is_pure(path) && !source::is_test_file(path));
    for path in &files {
        let code = source::without_tests(&source::blank(&workspace.text(path)?));
        for line in source::lines_with_word(&code, "std") {
            findings.push(format!(
                "{path}:{line}: `std` outside a test; use `core` or `alloc`"
            ));
        }
    }
    verdict(&findings, format!("{} files", files.len()))
}

/// Checks them for [`BARE_TARGET`] where that is installed. Elsewhere the two checks above have
/// to do, and the report says so.
pub fn builds_without_std(workspace: &Workspace) -> Verdict {
    let packages = PURE.map(|(name, _)| format!("-p {name}")).join(" ");
    if !bare_target_installed() {
        output_of(&mut workspace.cargo(&format!("check {packages} --locked")))?;
        return Ok(format!(
            "for the host only: `cargo xtask setup` adds {BARE_TARGET}"
        ));
    }
    let mut command = workspace.cargo(&format!("check {packages} --lib --locked --target"));
    output_of(command.arg(BARE_TARGET)).map(|_| BARE_TARGET.to_owned())
}

/// Whether the toolchain in use has [`BARE_TARGET`]'s libraries.
pub fn bare_target_installed() -> bool {
    let mut rustc = std::process::Command::new("rustc");
    rustc.args(["--print", "target-libdir", "--target", BARE_TARGET]);
    output_of(&mut rustc).is_ok_and(|path| std::path::Path::new(path.trim()).is_dir())
}

/// Checks that the keyword `unsafe` occurs where it may be, and nowhere else.
pub fn unsafe_in_its_places(workspace: &Workspace) -> Verdict {
    let mut files = workspace.rust_files()?;
    files.retain(|path| !UNSAFE.iter().any(|place| path.starts_with(place)));
    let mut findings = Vec::new();
    for path in &files {
        let code = source::blank(&workspace.text(path)?);
        for line in source::lines_with_word(&code, "unsafe") {
            findings.push(format!(
                "{path}:{line}: `unsafe` belongs in crates/net, crates/memory or crates/ffi, behind a safe name"
            ));
        }
    }
    let remark = format!("{}; not in {} files", UNSAFE.join(", "), files.len());
    verdict(&findings, remark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_we_have_passes() {
        let tree = "rota-core v0.1.0 (somewhere/core)|\nbytes v1.12.0|\n";
        assert_eq!(judge_tree("rota-core", tree), Vec::<String>::new());
    }

    #[test]
    fn a_crate_off_the_list_is_named() {
        let findings = judge_tree("rota-core", "rota-core v0.1.0|\nlibc v0.2.0|default,std\n");
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings[0].contains("libc v0.2.0"));
        assert!(findings[1].contains("`std` feature"));
    }

    #[test]
    fn an_allowed_crate_with_std_is_refused_also_when_repeated() {
        assert_eq!(
            judge_tree(
                "rota-core",
                "rota-core v0.1.0|\nbytes v1.12.0|default,std (*)\n"
            )
            .len(),
            1
        );
    }

    #[test]
    fn an_empty_tree_proves_nothing() {
        assert_eq!(judge_tree("rota-core", "").len(), 1);
    }
}

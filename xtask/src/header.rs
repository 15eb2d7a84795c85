//! The header for C: made from the sources of `crates/ffi` by cbindgen, and kept beside them.
//!
//! cbindgen takes longer to build than all tests of the bindings, so the gate does not run it: the header's
//! last line says from which sources it was made and what it was, and the gate compares.

use std::process::Command;

use crate::gate::{Verdict, verdict};
use crate::workspace::{Workspace, output_of};

const CBINDGEN: &str = "0.29.4";
const CONFIG: &str = "crates/ffi/cbindgen.toml";
const SOURCES: &str = "crates/ffi/src/";
const ROOT: &str = "crates/ffi/src/lib.rs";

/// Where the header is.
pub const HEADER: &str = "crates/ffi/include/rota.h";

/// Makes the header anew.
pub fn run(workspace: &Workspace) -> bool {
    match make(workspace) {
        Ok(()) => {
            println!("header: {HEADER}");
            true
        }
        Err(error) => {
            eprintln!("header: {error}");
            false
        }
    }
}

fn make(workspace: &Workspace) -> Result<(), String> {
    let version = output_of(Command::new("cbindgen").arg("--version")).unwrap_or_default();
    if version.trim() != format!("cbindgen {CBINDGEN}") {
        return Err(format!(
            "cbindgen {CBINDGEN} is not installed: \
             `cargo install --locked cbindgen --version {CBINDGEN}`"
        ));
    }
    let mut command = Command::new("cbindgen");
    command.args(["--quiet", "--config", CONFIG, ROOT]);
    let body = output_of(command.current_dir(workspace.root()))?;
    let last = stamp(&sources(workspace)?, &body);
    let path = workspace.root().join(HEADER);
    std::fs::write(&path, body + &last).map_err(|error| format!("{HEADER}: {error}"))
}

/// Checks that the header was made from the sources as they are, and not changed since.
pub fn check(workspace: &Workspace) -> Verdict {
    let findings = judge(&sources(workspace)?, &workspace.text(HEADER)?);
    verdict(&findings, HEADER.to_owned())
}

fn judge(sources: &[(String, Vec<u8>)], header: &str) -> Vec<String> {
    let text = header.trim_end_matches('\n');
    let body = &text[..text.rfind('\n').map_or(0, |at| at + 1)];
    if text.len() > body.len() && header[body.len()..] == stamp(sources, body) {
        return Vec::new();
    }
    vec![format!(
        "{HEADER} is not what its sources say: `cargo xtask header`"
    )]
}

/// Paths, and what is there.
type Sources = Vec<(String, Vec<u8>)>;

/// What the header is made from.
fn sources(workspace: &Workspace) -> Result<Sources, String> {
    let mut paths = workspace.rust_files()?;
    paths.retain(|path| path.starts_with(SOURCES));
    paths.push(CONFIG.to_owned());
    let read = |path: String| workspace.read(&path).map(|bytes| (path, bytes));
    paths.into_iter().map(read).collect()
}

/// The last line of a header that was made from these sources.
fn stamp(sources: &[(String, Vec<u8>)], body: &str) -> String {
    let mut digest = Digest::new();
    for (path, bytes) in sources {
        digest.add(path.as_bytes());
        digest.add(bytes);
    }
    digest.add(body.as_bytes());
    format!("/* cbindgen {CBINDGEN}, {:016x} */\n", digest.0)
}

/// FNV-1a: against oversight, not against malice.
struct Digest(u64);

impl Digest {
    const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        // The length keeps what is side by side apart.
        for byte in (bytes.len() as u64).to_le_bytes().iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(text: &str) -> Sources {
        vec![("a.rs".to_owned(), text.as_bytes().to_vec())]
    }

    #[test]
    fn a_header_is_current_until_it_or_its_sources_change() {
        let body = "#ifndef A_H\nint a(void);\n";
        let header = body.to_owned() + &stamp(&sources("fn a()"), body);
        assert_eq!(judge(&sources("fn a()"), &header), Vec::<String>::new());
        assert_eq!(judge(&sources("fn b()"), &header).len(), 1);
        let changed = header.replace("int", "long");
        assert_eq!(judge(&sources("fn a()"), &changed).len(), 1);
        assert_eq!(judge(&sources("fn a()"), body).len(), 1);
        assert_eq!(judge(&sources("fn a()"), "").len(), 1);
    }

    #[test]
    fn a_file_that_moves_changes_the_stamp() {
        let mut moved = sources("fn a()");
        moved[0].0 = "b.rs".to_owned();
        assert_ne!(stamp(&moved, ""), stamp(&sources("fn a()"), ""));
    }
}

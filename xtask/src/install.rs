//! librota, its header and what pkg-config wants to know of it, where programs in C look for them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::header::HEADER;
use crate::smoke::report;
use crate::workspace::{Workspace, output_of};

/// What programs need beside librota.a.
const SYSTEM: &str = "-lgcc_s -lpthread -lm -ldl -lc";

/// Builds the library and installs it below a directory.
pub fn run(workspace: &Workspace, prefix: &Path) -> bool {
    match install(workspace, prefix) {
        Ok(()) => {
            println!("install-c: {}", prefix.display());
            true
        }
        Err(error) => {
            eprintln!("install-c: {error}");
            false
        }
    }
}

fn install(workspace: &Workspace, prefix: &Path) -> Result<(), String> {
    // Alone, without the library for Rust that the tests want beside them, they are optimised as a whole.
    let line = "rustc --release --locked -p rota-ffi --lib --crate-type cdylib,staticlib";
    let status = workspace.cargo(line).stdin(Stdio::null()).status();
    if !status.is_ok_and(|status| status.success()) {
        return Err("it does not build".to_owned());
    }
    let built = target_directory(workspace)?.join("release");
    let header = workspace.root().join(HEADER);
    lay_out(&built, &header, prefix).map_err(|error| format!("{}: {error}", prefix.display()))
}

/// Puts everything where it belongs.
fn lay_out(built: &Path, header: &Path, prefix: &Path) -> io::Result<()> {
    let libraries = prefix.join("lib");
    fs::create_dir_all(libraries.join("pkgconfig"))?;
    fs::create_dir_all(prefix.join("include"))?;
    fs::copy(header, prefix.join("include/rota.h"))?;
    fs::copy(built.join("librota_ffi.a"), libraries.join("librota.a"))?;
    let version = env!("CARGO_PKG_VERSION");
    let names = [
        "librota.so".to_owned(),
        soname(version),
        format!("librota.so.{version}"),
    ];
    // A program that runs keeps the file it has.
    for name in &names {
        match fs::remove_file(libraries.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    let [plain, soname, full] = &names;
    fs::copy(built.join("librota_ffi.so"), libraries.join(full))?;
    std::os::unix::fs::symlink(full, libraries.join(soname))?;
    std::os::unix::fs::symlink(soname, libraries.join(plain))?;
    let prefix = fs::canonicalize(prefix)?;
    fs::write(
        libraries.join("pkgconfig/rota.pc"),
        pkg_config(&prefix, version),
    )
}

/// What the library calls itself: before 1.0 each minor version may change what the header says.
fn soname(version: &str) -> String {
    let parts: Vec<&str> = version.split('.').take(2).collect();
    format!("librota.so.{}", parts.join("."))
}

fn pkg_config(prefix: &Path, version: &str) -> String {
    format!(
        "prefix={}\n\
         includedir=${{prefix}}/include\n\
         libdir=${{prefix}}/lib\n\n\
         Name: rota\n\
         Description: Groups and messages in one order: a client of a Rota daemon\n\
         Version: {version}\n\
         Cflags: -I${{includedir}}\n\
         Libs: -L${{libdir}} -lrota\n\
         Libs.private: {SYSTEM}\n",
        prefix.display()
    )
}

/// Where cargo puts what it builds.
pub fn target_directory(workspace: &Workspace) -> Result<PathBuf, String> {
    let metadata =
        output_of(&mut workspace.cargo("metadata --no-deps --format-version 1 --locked"))?;
    let rest = metadata.split_once("\"target_directory\":\"");
    let path = rest.and_then(|(_, rest)| rest.split('"').next());
    path.map(PathBuf::from)
        .ok_or_else(|| "cargo metadata names no target directory".to_owned())
}

/// Installs the library below the target directory, and compiles the example in C with what pkg-config says
/// of it. One result each.
pub fn smoke(workspace: &Workspace) -> Vec<bool> {
    let installed = target_directory(workspace).and_then(|target| {
        let prefix = target.join("install-c");
        install(workspace, &prefix).map(|()| prefix)
    });
    let compiled = match &installed {
        Ok(prefix) => compile(workspace, prefix),
        Err(_) => Err("there is no library".to_owned()),
    };
    vec![
        report("cargo xtask install-c", installed.map(drop)),
        report("cc chat.c $(pkg-config --cflags --libs rota)", compiled),
    ]
}

fn compile(workspace: &Workspace, prefix: &Path) -> Result<(), String> {
    let mut ask = Command::new("pkg-config");
    ask.args(["--cflags", "--libs", "rota"]);
    let flags = output_of(ask.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")))?;
    let program = prefix.join("chat");
    let mut compiler = Command::new("cc");
    compiler.arg(workspace.root().join("crates/ffi/examples/chat.c"));
    compiler.args(flags.split_whitespace());
    output_of(compiler.arg("-o").arg(&program))?;
    // Without arguments it says how it is used: its library was found.
    let mut chat = Command::new(&program);
    chat.env("LD_LIBRARY_PATH", prefix.join("lib"));
    let output = chat.output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(2) && said.starts_with("usage: chat") {
        Ok(())
    } else {
        Err(format!("{}: {said}", output.status))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_programs_look_for_changes_with_the_minor_version() {
        assert_eq!(soname("0.1.7"), "librota.so.0.1");
    }

    #[test]
    fn what_pkg_config_reads_has_no_line_but_its_own() {
        let text = pkg_config(Path::new("/opt/rota"), "0.1.7");
        assert!(text.starts_with("prefix=/opt/rota\n"));
        assert!(text.contains("\nLibs: -L${libdir} -lrota\n"));
        assert!(text.lines().all(|line| !line.starts_with(' ')));
    }
}

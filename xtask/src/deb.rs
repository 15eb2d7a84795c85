//! A package for Debian: the command, its service, completions and manual pages.
//!
//! `dpkg-deb` packs what is laid out here, with the files of `packaging/deb`: a package of one program needs no more of
//! Debian's tools.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::install::target_directory;
use crate::smoke::report;
use crate::workspace::{Workspace, output_of};

/// The version of the package of this version of the program.
const REVISION: &str = "1";

/// Scripts that dpkg runs.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Pages for whoever operates it: those of `docs/operations` as a whole, since they name each other.
const PAGES: [&str; 10] = [
    "docs/guide.md",
    "docs/operations.md",
    "docs/operations/installing.md",
    "docs/operations/kubernetes.md",
    "docs/operations/measuring.md",
    "docs/operations/members.md",
    "docs/operations/security.md",
    "docs/operations/states.md",
    "docs/operations/upgrading.md",
    "docs/operations/watching.md",
];

/// Builds the package; of this binary, if one is given, and else of an optimised one.
pub fn run(workspace: &Workspace, binary: Option<&Path>) -> bool {
    match build(workspace, binary) {
        Ok(package) => {
            println!("deb: {}", package.display());
            true
        }
        Err(error) => {
            eprintln!("deb: {error}");
            false
        }
    }
}

/// Builds the package of the program that the demo has run, and looks at what is in it. One result each.
pub fn smoke(workspace: &Workspace) -> Vec<bool> {
    let package = target_directory(workspace)
        .and_then(|target| build(workspace, Some(&target.join("release/rota"))));
    let contents = match &package {
        Ok(package) => output_of(Command::new("dpkg-deb").arg("--contents").arg(package)),
        Err(_) => Err("there is no package".to_owned()),
    };
    let whole = contents.and_then(|contents| {
        let missing = EXPECTED.iter().find(|path| !contents.contains(*path));
        missing.map_or(Ok(()), |path| Err(format!("{path} is not in it")))
    });
    vec![
        report("cargo xtask deb", package.map(drop)),
        report("dpkg-deb --contents", whole),
    ]
}

/// Some of what has to be in the package, as `dpkg-deb --contents` lists it.
const EXPECTED: [&str; 8] = [
    "drwxr-xr-x root/root",
    "-rwxr-xr-x root/root",
    "./usr/bin/rota\n",
    "./usr/lib/systemd/system/rota.service\n",
    "./usr/share/man/man1/rota-daemon.1.gz\n",
    "./usr/share/bash-completion/completions/rota\n",
    "./usr/share/doc/rota/copyright\n",
    "./etc/rota/\n",
];

fn build(workspace: &Workspace, binary: Option<&Path>) -> Result<PathBuf, String> {
    let target = target_directory(workspace)?;
    let binary = match binary {
        Some(binary) => fs::canonicalize(binary).map_err(|error| at(binary, &error))?,
        None => {
            let mut command = workspace.cargo("build --release --locked -p rota --bin rota");
            let status = command.stdin(Stdio::null()).status();
            if !status.is_ok_and(|status| status.success()) {
                return Err("it does not build".to_owned());
            }
            target.join("release/rota")
        }
    };
    let directory = target.join("deb");
    let root = directory.join("root");
    clear(&root).map_err(|error| at(&root, &error))?;
    let last = Commit::last(workspace)?;
    lay_out(workspace, &binary, &root, &last)?;
    let architecture = output_of(Command::new("dpkg").arg("--print-architecture"))?;
    let architecture = architecture.trim();
    let program = fs::read(root.join("usr/bin/rota")).map_err(|error| at(&root, &error))?;
    let control = workspace
        .text("packaging/deb/control")?
        .replace("@VERSION@", &version())
        .replace("@ARCHITECTURE@", architecture)
        .replace("@SIZE@", &kibibytes(&root)?.to_string())
        .replace("@DEPENDS@", &depends(&program)?);
    describe(workspace, &root, &control)?;
    set_modes(&root).map_err(|error| at(&root, &error))?;
    let package = directory.join(format!("rota_{}_{architecture}.deb", version()));
    let mut pack = Command::new("dpkg-deb");
    pack.args(["--root-owner-group", "-Zxz", "--build"]);
    pack.env("SOURCE_DATE_EPOCH", &last.seconds);
    output_of(pack.arg(&root).arg(&package))?;
    Ok(package)
}

fn at(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}

fn version() -> String {
    format!("{}-{REVISION}", env!("CARGO_PKG_VERSION"))
}

/// The last commit: packages of one commit are the same, whenever they are built.
struct Commit {
    /// Since 1970.
    seconds: String,
    /// As RFC 5322 has dates.
    date: String,
}

impl Commit {
    fn last(workspace: &Workspace) -> Result<Self, String> {
        let ask = |format: &str| {
            let mut git = Command::new("git");
            let log = ["log", "-1", &format!("--format={format}")];
            output_of(git.args(log).current_dir(workspace.root()))
                .map(|line| line.trim().to_owned())
        };
        Ok(Self {
            seconds: ask("%ct")?,
            date: ask("%cD")?,
        })
    }
}

/// An empty directory.
fn clear(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::create_dir_all(directory),
    }
}

/// Puts a file where it belongs.
fn put(root: &Path, path: &str, bytes: &[u8]) -> Result<(), String> {
    let path = root.join(path);
    let written = match path.parent() {
        Some(directory) => fs::create_dir_all(directory).and_then(|()| fs::write(&path, bytes)),
        None => fs::write(&path, bytes),
    };
    written.map_err(|error| at(&path, &error))
}

/// Everything that the package brings.
fn lay_out(workspace: &Workspace, binary: &Path, root: &Path, last: &Commit) -> Result<(), String> {
    let program = fs::read(binary).map_err(|error| at(binary, &error))?;
    put(root, "usr/bin/rota", &program)?;
    let installed = root.join("usr/bin/rota");
    output_of(
        Command::new("strip")
            .arg("--strip-unneeded")
            .arg(&installed),
    )?;
    for (shell, path) in [
        ("bash", "usr/share/bash-completion/completions/rota"),
        ("zsh", "usr/share/zsh/vendor-completions/_rota"),
        ("fish", "usr/share/fish/vendor_completions.d/rota.fish"),
    ] {
        let script = output_of(Command::new(binary).args(["completions", shell]))?;
        put(root, path, script.as_bytes())?;
    }
    let pages = root.join("usr/share/man/man1");
    output_of(Command::new(binary).args(["man", "--output"]).arg(&pages))?;
    for page in files_below(&pages).map_err(|error| at(&pages, &error))? {
        compress(&page)?;
    }
    let unit = workspace.read("packaging/systemd/rota.service")?;
    put(root, "usr/lib/systemd/system/rota.service", &unit)?;
    let etc = root.join("etc/rota");
    fs::create_dir_all(&etc).map_err(|error| at(&etc, &error))?;
    documents(workspace, root, last)
}

/// The directory with what Debian asks for, and the pages.
fn documents(workspace: &Workspace, root: &Path, last: &Commit) -> Result<(), String> {
    let doc = "usr/share/doc/rota";
    for page in PAGES {
        let name = page.strip_prefix("docs/").unwrap_or(page);
        put(root, &format!("{doc}/{name}"), &workspace.read(page)?)?;
    }
    let copyright = workspace.read("packaging/deb/copyright")?;
    put(root, &format!("{doc}/copyright"), &copyright)?;
    let control = workspace.text("packaging/deb/control")?;
    let maintainer = control
        .lines()
        .find_map(|line| line.strip_prefix("Maintainer: "));
    let maintainer = maintainer.ok_or("packaging/deb/control names no maintainer")?;
    let changes = format!(
        "rota ({}) unstable; urgency=medium\n\n  * The changes are in changelog.gz.\n\n -- {maintainer}  {}\n",
        version(),
        last.date
    );
    for (name, bytes) in [
        ("changelog.Debian", changes.into_bytes()),
        ("changelog", workspace.read("CHANGELOG.md")?),
    ] {
        let path = format!("{doc}/{name}");
        put(root, &path, &bytes)?;
        compress(&root.join(path))?;
    }
    Ok(())
}

/// Replaces a file by the same compressed, without names and times.
fn compress(path: &Path) -> Result<(), String> {
    output_of(Command::new("gzip").args(["-9", "-n"]).arg(path)).map(drop)
}

/// What dpkg reads.
fn describe(workspace: &Workspace, root: &Path, control: &str) -> Result<(), String> {
    let files = files_below(root).map_err(|error| at(root, &error))?;
    let names = files.iter().filter_map(|path| path.strip_prefix(root).ok());
    let sums = output_of(Command::new("md5sum").args(names).current_dir(root))?;
    put(root, "DEBIAN/md5sums", sums.as_bytes())?;
    put(root, "DEBIAN/control", control.as_bytes())?;
    for script in SCRIPTS {
        let text = workspace.read(&format!("packaging/deb/{script}"))?;
        put(root, &format!("DEBIAN/{script}"), &text)?;
    }
    Ok(())
}

/// All files below a directory, in order.
fn files_below(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Whatever the umask of whoever builds it.
fn set_modes(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            set_modes(&path)?;
            continue;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let runs = path.ends_with("usr/bin/rota") || SCRIPTS.contains(&&*name);
        let mode = if runs { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// The room that the files take, each in whole KiB.
fn kibibytes(root: &Path) -> Result<u64, String> {
    let files = files_below(root).map_err(|error| at(root, &error))?;
    let size = |path: &PathBuf| {
        path.metadata()
            .map_or(0, |metadata| metadata.len().div_ceil(1024))
    };
    Ok(files.iter().map(size).sum())
}

/// The libraries that a program asks the loader for, as Debian's packages.
fn depends(program: &[u8]) -> Result<String, String> {
    let newest = newest_glibc(program).ok_or("the program names no version of glibc")?;
    let (major, minor) = newest;
    let mut packages = vec![format!("libc6 (>= {major}.{minor})")];
    if contains(program, b"libgcc_s.so.1\0") {
        packages.push("libgcc-s1 (>= 4.2)".to_owned());
    }
    Ok(packages.join(", "))
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// The newest version of glibc that a symbol of the program asks for: the names are in its string table, each with a zero
/// behind it.
fn newest_glibc(program: &[u8]) -> Option<(u32, u32)> {
    let prefix = b"GLIBC_";
    let places = program.windows(prefix.len()).enumerate();
    let places = places.filter(|(_, window)| window == prefix);
    let versions = places.filter_map(|(at, _)| {
        let name = &program[at + prefix.len()..];
        let name = name.split(|byte| *byte == 0).next()?;
        let mut numbers = std::str::from_utf8(name).ok()?.split('.');
        let (major, minor) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
        Some((major, minor))
    });
    versions.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pages_for_operators_are_in_the_package() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let folder = fs::read_dir(root.join("docs/operations")).expect("pages");
        for page in folder {
            let name = page.expect("a page").file_name();
            let path = format!("docs/operations/{}", name.display());
            assert!(PAGES.contains(&path.as_str()), "{path}");
        }
        let is_there = |page: &str| root.join(page).is_file();
        assert!(PAGES.iter().all(|page| is_there(page)));
    }

    #[test]
    fn the_libraries_that_a_program_needs_are_those_that_its_symbols_name() {
        let program = b"\0GLIBC_2.9\0x\0GLIBC_2.34\0GLIBC_2.3.4\0GLIBC_PRIVATE\0\
                        _GLIBC_ABI\0libgcc_s.so.1\0";
        assert_eq!(newest_glibc(program), Some((2, 34)));
        let packages = depends(program).expect("there is a version");
        assert_eq!(packages, "libc6 (>= 2.34), libgcc-s1 (>= 4.2)");
        assert!(depends(b"a static one\0").is_err());
    }

    #[test]
    fn what_dpkg_is_told_leaves_no_place_open() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let control = fs::read_to_string(root.join("packaging/deb/control")).expect("it is there");
        for place in ["@VERSION@", "@ARCHITECTURE@", "@SIZE@", "@DEPENDS@"] {
            assert_eq!(control.matches(place).count(), 1, "{place}");
        }
        assert_eq!(
            control.matches('@').count(),
            2 * 4 + 1,
            "and one in an address"
        );
        for page in PAGES {
            assert!(root.join(page).is_file(), "{page}");
        }
    }
}

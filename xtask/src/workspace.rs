//! The workspace on disk: its root, its files, and the cargo that runs in it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The workspace being checked.
pub struct Workspace {
    root: PathBuf,
    cargo: OsString,
    built_once: bool,
}

impl Workspace {
    /// Finds the workspace of this xtask: the parent of its package when cargo started it, otherwise
    /// the working directory.
    pub fn find() -> Result<Self, String> {
        let root = match std::env::var_os("CARGO_MANIFEST_DIR") {
            Some(package) => Path::new(&package).parent().map(Path::to_path_buf),
            None => std::env::current_dir().ok(),
        };
        let root = root.filter(|root| root.join("xtask/Cargo.toml").is_file());
        let root = root.ok_or("start me as `cargo xtask`, inside the workspace")?;
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        Ok(Self {
            root,
            cargo,
            built_once: false,
        })
    }

    /// The same where nothing is built a second time.
    pub fn built_once(self) -> Self {
        Self {
            built_once: true,
            ..self
        }
    }

    /// Its root directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A cargo command in the root directory, with arguments split at spaces.
    pub fn cargo(&self, arguments: &str) -> Command {
        let mut command = Command::new(&self.cargo);
        command
            .args(arguments.split_whitespace())
            .current_dir(&self.root);
        command.envs(self.settings().iter().copied());
        command
    }

    /// What cargo is told where nothing is built a second time: nothing to make that faster, and release builds that
    /// are not optimised as a whole, which takes three times as long.
    pub fn settings(&self) -> &'static [(&'static str, &'static str)] {
        if self.built_once {
            &[
                ("CARGO_INCREMENTAL", "0"),
                ("CARGO_PROFILE_RELEASE_LTO", "off"),
                ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
            ]
        } else {
            &[]
        }
    }

    /// The files git tracks or would track, as paths relative to the root, in order.
    pub fn files(&self) -> Result<Vec<String>, String> {
        let mut git = Command::new("git");
        git.args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]);
        let listing = output_of(git.current_dir(&self.root))?;
        let mut files: Vec<String> = listing
            .split('\0')
            .filter(|path| !path.is_empty() && self.root.join(path).is_file())
            .map(str::to_owned)
            .collect();
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// The Rust files among [`Self::files`].
    pub fn rust_files(&self) -> Result<Vec<String>, String> {
        let mut files = self.files()?;
        files.retain(|path| path.ends_with(".rs"));
        Ok(files)
    }

    /// A file's bytes.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        std::fs::read(self.root.join(path)).map_err(|error| format!("{path}: {error}"))
    }

    /// A file's text; bytes that are not UTF-8 become replacement characters.
    pub fn text(&self, path: &str) -> Result<String, String> {
        Ok(String::from_utf8_lossy(&self.read(path)?).into_owned())
    }
}

/// Runs a command to its end and returns its standard output, or everything it said if it failed.
pub fn output_of(command: &mut Command) -> Result<String, String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot start {command:?}: {error}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(format!("{stdout}{stderr}{}", output.status))
}

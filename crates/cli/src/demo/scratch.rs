//! The directory of a demo: it goes when the demo does, however the demo ends.
//!
//! A signal that can be caught takes the directory away before it ends the process. The next demo finds and removes a
//! directory that a killed demo has left behind: nobody holds the lock in it any more.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::process::geteuid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use tempfile::TempDir;

/// The beginning of the names of these directories.
const PREFIX: &str = "rota-demo-";
/// The file in it that is locked as long as its demo lives.
const LOCK: &str = "lock";
/// The number of tries to remove a directory that is in use: daemons that end may write meanwhile.
const TRIES: u32 = 20;

/// A directory of this demo alone.
#[derive(Debug)]
pub struct Scratch {
    dir: TempDir,
    /// Locked.
    _lock: File,
}

impl Scratch {
    /// Makes one, and removes those of demos that were killed. From here on signals that end the process remove it first.
    pub fn new() -> io::Result<Self> {
        Self::of(&[SIGHUP, SIGINT, SIGTERM])
    }

    /// The same for who looks after SIGINT itself.
    pub fn with_own_interrupt() -> io::Result<Self> {
        Self::of(&[SIGHUP, SIGTERM])
    }

    fn of(ends: &[i32]) -> io::Result<Self> {
        sweep(&std::env::temp_dir());
        let dir = tempfile::Builder::new().prefix(PREFIX).tempdir()?;
        // A demo that sweeps sees no lock or one that is taken.
        let unlocked = dir.path().join("lock.new");
        let lock = File::create(&unlocked)?;
        lock.try_lock()?;
        fs::rename(unlocked, dir.path().join(LOCK))?;
        remove_on_signals(dir.path().to_owned(), ends)?;
        Ok(Self { dir, _lock: lock })
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Removes the directories of demos that are not there any more. One that cannot be removed stays.
fn sweep(place: &Path) {
    let Ok(entries) = fs::read_dir(place) else {
        return;
    };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry
                .metadata()
                .is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw());
        let lock = is_ours.then(|| File::open(entry.path().join(LOCK)));
        if let Some(Ok(lock)) = lock
            && lock.try_lock().is_ok()
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A signal that ends this process removes the directory first; the daemons end with it, as their input does.
fn remove_on_signals(dir: PathBuf, ends: &[i32]) -> io::Result<()> {
    let ends = ends.iter().copied();
    let mut signals = Signals::new(ends.filter(|signal| !is_ignored(*signal)))?;
    thread::Builder::new()
        .name("rota-signals".to_owned())
        .spawn(move || {
            for signal in signals.forever() {
                for _ in 0..TRIES {
                    match fs::remove_dir_all(&dir) {
                        Err(error) if error.kind() != io::ErrorKind::NotFound => {
                            thread::sleep(Duration::from_millis(10));
                        }
                        _ => break,
                    }
                }
                let _ = emulate_default_handler(signal);
            }
        })?;
    Ok(())
}

/// Whether this process was told to ignore a signal, as `nohup` does.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

//! Records that are answered as durable were handed to the disk: the test looks at the system calls of a real process.
//!
//! No other test would see a sync that does nothing: fakes have their own, and the power of real files is never cut. So this
//! one runs itself under `strace` (package strace, `cargo xtask setup`).

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rota_core::contract::{LogId, NodeId};
use rota_storage::acceptor::{BootId, DiskLog, Identity, Kind, LogOptions, Mode, RecordRef};
use rota_storage::{LifeFile, OnDamage, Opening, PrimaryFile, RingIdFile};

/// The variable with the directory in which the process that is looked at has its files.
const DIRECTORY: &str = "ROTA_SYNCED_DIRECTORY";
/// The file to which it writes when something is durable.
const ANSWERS: &str = "answers";
const NODE: NodeId = NodeId::new(1).unwrap();
const BOOT: BootId = [1; 16];

fn open(path: PathBuf, mode: Mode) -> DiskLog {
    let mut options = LogOptions::new(Identity {
        cluster: 7,
        node: NODE,
        log: LogId(1),
    });
    // So that segments end and serve again.
    (options.segment_bytes, options.mode, options.boot_id) = (64 << 10, mode, BOOT);
    DiskLog::open(path, options).unwrap()
}

fn append(log: &mut DiskLog, instance: u64) {
    let bytes = [7; 3000];
    let vote = RecordRef {
        kind: Kind::Vote,
        first: instance,
        last: instance,
        head: &[],
        bytes: &bytes,
    };
    log.append(&[vote]).unwrap();
}

/// The process that is looked at; without a directory it does nothing.
#[test]
fn lives_of_all_files() {
    let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) else {
        return;
    };
    let mut answers = File::create(directory.join(ANSWERS)).unwrap();
    let mut answer = |of: &str| answers.write_all(of.as_bytes()).unwrap();
    for (name, mode) in [("sync", Mode::Sync), ("async", Mode::ASYNC)] {
        let path = directory.join(name);
        fs::create_dir(&path).unwrap();
        for life in 0..2 {
            let mut log = open(path.clone(), mode);
            answer("mark");
            for instance in 40 * life..40 * (life + 1) {
                append(&mut log, instance);
                match mode {
                    Mode::Sync => log.commit().unwrap(),
                    _ => log.sync().unwrap(),
                }
                answer("segment-");
                if instance % 16 == 15 {
                    log.trim(instance - 8).unwrap();
                }
                log.maintain().unwrap();
            }
            log.close().unwrap();
            answer("mark");
        }
    }
    let path = |name: &str| directory.join(name);
    let mut ring_id = RingIdFile::open(path("ring"), NODE, OnDamage::Refuse).unwrap();
    let mut lives = LifeFile::open(path("life"), NODE).unwrap();
    let opening = Opening {
        first: b"first",
        lived_before: false,
        on_damage: OnDamage::Refuse,
    };
    let mut primaries = PrimaryFile::open(path("primary"), NODE, opening).unwrap();
    answer("primary");
    for number in 1..4 {
        ring_id.store(number).unwrap();
        answer("ring");
        lives.store(number).unwrap();
        answer("life");
        primaries.store(b"newer").unwrap();
        answer("primary");
    }
}

/// A call that has succeeded: its name, the path of its first descriptor, or of what it is given, and all of it.
fn call(line: &str) -> Option<(&str, &str, &str)> {
    let (_, call) = line.split_once(' ')?;
    let call = call.trim_start();
    let (name, arguments) = call.split_once('(')?;
    let is_good = call
        .rsplit_once(" = ")
        .is_some_and(|(_, result)| !result.starts_with('-'));
    let path = match arguments.split_once('<') {
        Some((descriptor, rest)) if descriptor.chars().all(|c| c.is_ascii_digit()) => {
            rest.split_once('>')?.0
        }
        _ => "",
    };
    is_good.then_some((name, path, call))
}

/// The changes of files that are not known to be on the disk.
#[derive(Default)]
struct Unsynced {
    /// Files that were written to.
    files: Vec<String>,
    /// A name was changed.
    names: bool,
    syncs: usize,
}

impl Unsynced {
    fn take(&mut self, (name, path, call): (&str, &str, &str)) {
        // A file is known by its directory and what it was opened as: names of segments change.
        match name {
            "write" | "pwrite64" => self.files.push(path.to_owned()),
            "fsync" | "fdatasync" => {
                self.files.retain(|file| file != path);
                self.names &= !Path::new(path).is_dir();
                self.syncs += 1;
            }
            // Nothing is lost with the name of a file that has nothing in it yet.
            "rename" | "renameat" | "renameat2" => {
                let to = call.rsplit('/').next().unwrap_or_default();
                self.names |= !to.starts_with("spare-");
            }
            _ => panic!("{call}"),
        }
    }
}

/// A program that shows the calls of another one; `None` where there is none, or it may not.
fn strace(output: &Path) -> Option<Command> {
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-s", "16", "-o"]).arg(output);
    command.args([
        "-e",
        "trace=write,pwrite64,fsync,fdatasync,rename,renameat,renameat2",
    ]);
    let mut try_it = Command::new("strace");
    let tried = try_it.args(["-o", "/dev/null", "true"]).output();
    tried
        .is_ok_and(|tried| tried.status.success())
        .then_some(command)
}

#[test]
fn what_is_answered_was_synced_before() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    let shown = path.join("calls");
    let Some(mut command) = strace(&shown) else {
        let said = "SKIPPED: nobody has looked whether files are synced: `strace` does not run here (`cargo xtask setup`)\n";
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{said}");
        // Not captured as what tests print is.
        std::io::stderr().write_all(said.as_bytes()).unwrap();
        return;
    };
    let run = command
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "lives_of_all_files", "--test-threads", "1"])
        .env(DIRECTORY, &path)
        .output()
        .unwrap();
    assert!(run.status.success(), "{run:?}");
    let (mut unsynced, mut answers) = (Unsynced::default(), 0);
    let shown = fs::read_to_string(&shown).unwrap();
    let answers_path = path.join(ANSWERS);
    for line in shown.lines() {
        let Some(found) = call(line) else {
            continue;
        };
        let is_rename = found.0.starts_with("rename");
        if !is_rename && !found.1.starts_with(path.to_str().unwrap()) {
            continue;
        }
        if found.1 != answers_path.to_str().unwrap() {
            unsynced.take(found);
            continue;
        }
        answers += 1;
        // The call itself names the file that the answer is about.
        let of = found.2.split('"').nth(1).unwrap();
        let is_of_it = |file: &&String| {
            let name = Path::new(file).file_name().unwrap().to_str().unwrap();
            name.starts_with(of)
        };
        let left: Vec<_> = unsynced.files.iter().filter(is_of_it).collect();
        assert!(left.is_empty(), "{left:?} before answer {answers}: {line}");
        assert!(!unsynced.names, "a name before answer {answers}");
        assert!(
            unsynced.syncs > 0,
            "nothing was synced before answer {answers}: {line}"
        );
        unsynced.syncs = 0;
    }
    assert_eq!(answers, 2 * 2 * (40 + 2) + 1 + 3 * 3);
}

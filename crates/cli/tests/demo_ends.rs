//! A demo that does not come to its end leaves nothing behind.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

const PATIENCE: Duration = Duration::from_secs(30);

/// A demo that takes long, with a directory of its own for temporary files.
fn demo(place: &Path) -> Child {
    // Whoever runs the tests may ignore signals, as a shell in the background does; the demo would then, too.
    Command::new("env")
        .args(["--default-signal=HUP,INT,TERM", env!("CARGO_BIN_EXE_rota")])
        .args(["demo", "--nodes", "2", "--messages", "3000000"])
        .env("TMPDIR", place)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary")
}

fn wait(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn directories(place: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(place).expect("a directory").flatten();
    entries
        .filter(|entry| {
            entry
                .file_name()
                .to_string_lossy()
                .starts_with("rota-demo-")
        })
        .map(|entry| entry.path())
        .collect()
}

/// Processes whose command line names a file in this place.
fn daemons(place: &Path) -> usize {
    let place = place.display().to_string();
    let processes = fs::read_dir("/proc").expect("Linux has it").flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines
        .filter(|line| String::from_utf8_lossy(line).contains(&place))
        .count()
}

fn started(place: &Path) -> Child {
    let demo = demo(place);
    wait("two daemons start", || daemons(place) == 2);
    demo
}

#[test]
fn nothing_is_left_of_a_demo_that_a_signal_ends() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let place = tempfile::tempdir().expect("a directory");
        let mut demo = started(place.path());
        kill_process(Pid::from_child(&demo), signal).expect("it runs");
        let status = demo.wait().expect("a child");
        assert!(!status.success());
        wait("its daemons end", || daemons(place.path()) == 0);
        assert!(directories(place.path()).is_empty());
    }
}

#[test]
fn what_a_killed_demo_leaves_the_next_one_removes() {
    let place = tempfile::tempdir().expect("a directory");
    let mut first = started(place.path());
    first.kill().expect("it runs");
    first.wait().expect("a child");
    wait("its daemons end", || daemons(place.path()) == 0);
    let left = directories(place.path());
    assert_eq!(left.len(), 1);
    let mut second = started(place.path());
    assert!(!left[0].exists());
    // One that runs is left alone.
    let own = directories(place.path());
    let mut third = demo(place.path());
    wait("all daemons start", || daemons(place.path()) == 4);
    assert!(own[0].exists());
    for demo in [&mut second, &mut third] {
        kill_process(Pid::from_child(demo), Signal::TERM).expect("it runs");
        demo.wait().expect("a child");
    }
    wait("all daemons end", || daemons(place.path()) == 0);
}

/// Files in the place of temporary ones, but for what is in directories.
fn files(place: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(place).expect("a directory").flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| !path.is_dir()).collect()
}

#[test]
fn nothing_is_left_of_the_input_whatever_ends_a_demo() {
    for signal in [Signal::KILL, Signal::TERM, Signal::HUP] {
        let place = tempfile::tempdir().expect("a directory");
        let input = tempfile::NamedTempFile::new().expect("a file");
        let line = [&[b'x'; 200][..], b"\n"].concat();
        let written = input.as_file().write_all(&line.repeat(300_000));
        written.expect("room");
        let path = input.path().display().to_string();
        let mut demo = Command::new(env!("CARGO_BIN_EXE_rota"))
            .args(["demo", "--nodes", "2", "--input", &path])
            .env("TMPDIR", place.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary");
        wait("two daemons start", || daemons(place.path()) == 2);
        kill_process(Pid::from_child(&demo), signal).expect("it runs");
        demo.wait().expect("a child");
        assert_eq!(files(place.path()), [] as [PathBuf; 0], "{signal:?}");
        wait("its daemons end", || daemons(place.path()) == 0);
    }
}

#[test]
fn nothing_is_left_of_input_that_has_not_all_come() {
    for signal in [Signal::KILL, Signal::TERM] {
        let place = tempfile::tempdir().expect("a directory");
        let mut demo = Command::new(env!("CARGO_BIN_EXE_rota"))
            .args(["demo", "--nodes", "2", "--input", "-"])
            .env("TMPDIR", place.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary");
        let mut input = demo.stdin.take().expect("a pipe");
        // More than a pipe takes: some of it was copied when this is done.
        input.write_all(&[b'x'; 1 << 20]).expect("it reads");
        kill_process(Pid::from_child(&demo), signal).expect("it runs");
        demo.wait().expect("a child");
        assert_eq!(files(place.path()), [] as [PathBuf; 0], "{signal:?}");
        assert!(directories(place.path()).is_empty());
    }
}

/// How a command ends that writes to this.
fn status_of(arguments: &[&str], out: Stdio) -> ExitStatus {
    Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(arguments)
        .stdout(out)
        .stderr(Stdio::null())
        .status()
        .expect("the binary")
}

#[test]
fn a_reader_that_has_gone_is_no_error_and_a_full_disk_is() {
    let commands: [&[&str]; 3] = [
        &["demo", "--nodes", "1", "--messages", "10"],
        &["demo", "--nodes", "1", "--messages", "10", "--json"],
        &[
            "bench",
            "--nodes",
            "2",
            "--duration",
            "200ms",
            "--warm-up",
            "100ms",
        ],
    ];
    for command in commands {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        assert_eq!(
            status_of(command, writer.into()).code(),
            Some(0),
            "{command:?}"
        );
        let full = File::options()
            .write(true)
            .open("/dev/full")
            .expect("Linux has it");
        assert_eq!(
            status_of(command, full.into()).code(),
            Some(1),
            "{command:?}"
        );
    }
}

#[test]
fn the_node_to_kill_is_named_in_either_way_and_suggestions_are_for_people() {
    for arguments in [&["--kill-one=9"][..], &["--kill-one", "9"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_rota"))
            .args([&["demo"], arguments].concat())
            .output()
            .expect("the binary");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("there are 4 nodes"), "{errors}");
    }
    for (typo, meant) in [("dmeo", "demo"), ("demonode", "demo")] {
        let output = Command::new(env!("CARGO_BIN_EXE_rota")).arg(typo).output();
        let output = output.expect("the binary");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            !errors.contains("demo-node") && output.status.code() == Some(2),
            "{errors}"
        );
        assert!(typo != "dmeo" || errors.contains(meant), "{errors}");
    }
}

#[test]
fn so_many_messages_that_nothing_would_be_seen_are_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(["demo", "--messages", "100000000000000000"])
        .output()
        .expect("the binary");
    assert_eq!(output.status.code(), Some(2));
}

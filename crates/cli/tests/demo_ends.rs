//! What a demo leaves behind that does not come to its end: nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

const PATIENCE: Duration = Duration::from_secs(30);

/// A demo that takes long, with a directory of its own for temporary files.
fn demo(place: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_rota"))
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

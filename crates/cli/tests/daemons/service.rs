//! A daemon as a service: what it tells the service manager, its log, its priority, the unit file.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, waitpid};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::cluster::config;
use crate::native::PATIENCE;

/// The command for one daemon with sockets in this directory, and these settings.
pub fn daemon(dir: &Path, settings: &str) -> Command {
    let sockets = dir.display();
    let section =
        format!("[daemon]\nsocket = \"{sockets}/sock\"\nadmin = \"{sockets}/admin\"\n{settings}\n");
    let file = dir.join("rota.toml");
    fs::write(&file, config(1, &section)).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_rota"));
    command
        .args(["daemon", "--node", "1", "--config"])
        .arg(file)
        .stderr(Stdio::piped());
    command
}

fn signal(daemon: &Child, signal: Signal) {
    kill_process(Pid::from_child(daemon), signal).expect("it runs");
}

/// The next thing that the service manager is told that is no sign of life.
fn told(manager: &UnixDatagram) -> String {
    loop {
        let mut bytes = [0; 1000];
        let length = manager.recv(&mut bytes).expect("it is told in time");
        let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
        if text != "WATCHDOG=1\n" {
            return text;
        }
    }
}

#[test]
fn a_service_manager_is_told_what_the_daemon_does() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("notify");
    let manager = UnixDatagram::bind(&path).expect("a socket");
    manager.set_read_timeout(Some(PATIENCE)).expect("not zero");
    let mut daemon = daemon(dir.path(), "")
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "300000")
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary");
    assert_eq!(told(&manager), "READY=1\n");
    assert!(dir.path().join("sock").exists(), "clients can connect");
    // Signs of life come by themselves.
    for _ in 0..3 {
        let mut bytes = [0; 100];
        let length = manager.recv(&mut bytes).expect("in time");
        assert_eq!(&bytes[..length], b"WATCHDOG=1\n");
    }
    signal(&daemon, Signal::HUP);
    let reloading = told(&manager);
    assert!(
        reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="),
        "{reloading}"
    );
    assert_eq!(told(&manager), "READY=1\n");
    signal(&daemon, Signal::TERM);
    assert_eq!(told(&manager), "STOPPING=1\n");
    assert!(daemon.wait().expect("a child").success());
}

#[test]
fn a_log_of_json_has_an_object_on_each_line() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut daemon = daemon(dir.path(), "")
        .args(["--log", "json"])
        .spawn()
        .expect("the binary");
    let log = BufReader::new(daemon.stderr.take().expect("a pipe"));
    let mut lines = log.lines().map_while(Result::ok);
    let mut object = || -> Value {
        let line = lines.next().expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"))
    };
    let mut started = object();
    while started["message"] != "a daemon has started" {
        started = object();
    }
    assert_eq!(
        (&started["level"], &started["node"]),
        (&Value::from("INFO"), &Value::from("1"))
    );
    signal(&daemon, Signal::TERM);
    assert!(daemon.wait().expect("a child").success());
}

/// The signal interrupts a thread that is not the ring's, as any signal may: the ring's slept on.
#[test]
fn a_signal_that_interrupts_another_thread_stops_the_daemon() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut daemon = daemon(dir.path(), "").spawn().expect("the binary");
    let log = BufReader::new(daemon.stderr.take().expect("a pipe"));
    let mut lines = log.lines().map_while(Result::ok);
    let has_started = lines.any(|line| line.contains("a daemon has started"));
    assert!(has_started);
    let tasks = format!("/proc/{}/task", daemon.id());
    let switches = || {
        let status = fs::read_to_string(format!("{tasks}/{}/status", daemon.id()));
        let status = status.expect("it runs");
        let count = status.lines().find(|line| line.starts_with("voluntary_"));
        count.expect("a count").to_owned()
    };
    let mut before = String::new();
    while switches() != before {
        before = switches();
        thread::sleep(Duration::from_millis(500));
    }
    let other = fs::read_dir(&tasks).expect("it runs").find_map(|task| {
        let task = task.expect("a directory");
        let name = fs::read_to_string(task.path().join("comm")).ok()?;
        let number = task.file_name().to_str()?.parse().ok()?;
        (name.trim() == "rota-memory").then_some(number)
    });
    let other = nix::unistd::Pid::from_raw(other.expect("another thread"));
    ptrace::attach(other).expect("it is ours");
    waitpid(other, Some(WaitPidFlag::__WALL)).expect("it stops");
    ptrace::detach(other, nix::sys::signal::Signal::SIGTERM).expect("it goes on");
    assert!(daemon.wait().expect("a child").success());
}

/// Policy and real-time priority of a thread, the last but one and the one before that.
fn schedule(stat: &str) -> (u32, u32) {
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .expect("a name")
        .1
        .split_whitespace()
        .collect();
    // The first of them is field 3 of proc(5).
    let field = |number: usize| fields[number - 3].parse().expect("a number");
    (field(41), field(40))
}

#[test]
fn a_real_time_priority_is_the_rings_alone_or_refused_with_words() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut daemon = daemon(dir.path(), "realtime = 7")
        .spawn()
        .expect("the binary");
    let mut log = BufReader::new(daemon.stderr.take().expect("a pipe"))
        .lines()
        .map_while(Result::ok);
    let said = log.find(|line| line.contains("a daemon has started") || line.contains("realtime"));
    let said = said.expect("it starts or says why not");
    if !said.contains("a daemon has started") {
        println!("no real-time priorities here: only the refusal is tested");
        assert!(
            said.contains("[daemon]: realtime = 7 was refused"),
            "{said}"
        );
        assert!(
            said.contains("CAP_SYS_NICE") && said.contains("LimitRTPRIO="),
            "{said}"
        );
        assert_eq!(daemon.wait().expect("a child").code(), Some(2));
        return;
    }
    let pid = daemon.id();
    let mut threads = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task")).expect("it runs") {
        let thread = thread.expect("an entry");
        let stat = fs::read_to_string(thread.path().join("stat")).expect("it runs");
        let ring = thread.file_name().to_string_lossy() == pid.to_string();
        let expected = if ring { (1, 7) } else { (0, 0) };
        assert_eq!(schedule(&stat), expected, "{stat}");
        threads += 1;
    }
    assert!(threads > 1, "others read signals");
    signal(&daemon, Signal::TERM);
    assert!(daemon.wait().expect("a child").success());
}

#[test]
fn the_unit_file_is_one() {
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd/rota.service");
    let text = fs::read_to_string(unit).expect("the unit file");
    let dir = tempfile::tempdir().expect("a directory");
    let copy = dir.path().join("rota.service");
    fs::write(
        &copy,
        text.replace("/usr/bin/rota", env!("CARGO_BIN_EXE_rota")),
    )
    .expect("a file");
    match Command::new("systemd-analyze")
        .arg("verify")
        .arg("--man=no")
        .arg(&copy)
        .output()
    {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let ours: Vec<&str> = said
                .lines()
                .filter(|line| line.contains("rota.service"))
                .collect();
            assert!(output.status.success() && ours.is_empty(), "{said}");
        }
        Err(error) => println!("NOT VERIFIED: there is no systemd-analyze here ({error})"),
    }
    // What it relies on is there.
    for line in [
        "Type=notify",
        "StartLimitIntervalSec=0",
        "LimitCORE=0",
        "ExecReload=/usr/bin/rota reload --socket /run/rota/admin.sock",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}");
    }
}

/// The name of a setting, if a line is one.
fn setting(line: &str) -> Option<&str> {
    let (name, _) = line.split_once('=')?;
    let is_name = name.chars().all(|letter| letter.is_ascii_alphanumeric());
    is_name.then_some(name)
}

#[test]
fn what_the_unit_file_says_to_uncomment_then_counts() {
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd/rota.service");
    let text = fs::read_to_string(unit).expect("the unit file");
    let mut found = 0;
    for (at, line) in text.lines().enumerate() {
        let Some(name) = line.strip_prefix('#').and_then(setting) else {
            continue;
        };
        found += 1;
        // A later line would take its place, and an empty one would take all away.
        let mut later = text.lines().skip(at + 1);
        assert!(!later.any(|line| setting(line) == Some(name)), "{name}");
    }
    assert_eq!(found, 4);
}

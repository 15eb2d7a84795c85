//! The words at three in the morning: in every engine, on what is ill, and on what is well.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rota_node::EngineName;
use rustix::process::{Pid, Signal, kill_process};

use crate::bad_clients::status;
use crate::cluster::Cluster;
use crate::native::{PATIENCE, client, meet};
use crate::operate::rota;

/// Standard output of a command, and its exit status.
fn said(output: &Output) -> (String, Option<i32>) {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (text, output.status.code())
}

/// What is said of one daemon.
fn explain(cluster: &Cluster, id: u16) -> (String, Option<i32>) {
    let socket = cluster.admin(id).display().to_string();
    said(&rota(&[
        "status",
        "--explain",
        "--interval",
        "500",
        "--socket",
        &socket,
    ]))
}

/// Restarts daemon `id` with metrics, and says where they are.
fn with_metrics(cluster: &mut Cluster, id: u16) -> SocketAddr {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = free.local_addr().expect("it is bound");
    drop(free);
    let metrics = format!("[daemon]\nmetrics = \"{address}\"\n");
    cluster.restart_with(id, |text| text.replacen("[daemon]\n", &metrics, 1));
    address
}

fn metrics(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
    let asked = stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    asked.expect("written");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text
}

/// Two of three acceptors are killed: status, words and metrics of the third say that nothing is ordered.
fn a_dead_majority_is_named(engine: EngineName) {
    let mut cluster = Cluster::voting(3, engine);
    let address = with_metrics(&mut cluster, 1);
    meet(&cluster, &[1, 2, 3]);
    assert!(metrics(address).contains("rota_ring_operational 1"));
    cluster.kill(2);
    cluster.kill(3);
    let until = Instant::now() + PATIENCE;
    let ring = |cluster: &Cluster| status(cluster, 1)["ring"].to_string();
    while !ring(&cluster).contains("no majority: nothing is ordered") {
        assert!(Instant::now() < until, "{}", ring(&cluster));
        thread::sleep(Duration::from_millis(50));
    }
    // It stays so: whoever looks half a minute later is told the same.
    thread::sleep(Duration::from_secs(3));
    assert!(
        ring(&cluster).contains("these are not there: "),
        "{}",
        ring(&cluster)
    );
    let (text, code) = explain(&cluster, 1);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("node 1 is in no majority: nothing is ordered"),
        "{text}"
    );
    let text = metrics(address);
    assert!(text.contains("rota_ring_operational 0"), "{text}");
    assert!(text.contains("rota_ring_members 0"), "{text}");
}

#[test]
fn a_dead_majority_of_u_ring_paxos_is_named() {
    a_dead_majority_is_named(EngineName::URingPaxos);
}

#[test]
fn a_dead_majority_of_ring_paxos_is_named() {
    a_dead_majority_is_named(EngineName::RingPaxos);
}

/// A client that sends as long as it is left.
struct Load {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Load {
    fn at(cluster: &Cluster, id: u16) -> Self {
        let mut client = client(cluster, id, "load");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                client.send("nobody", b"something").expect("sent");
                thread::sleep(Duration::from_millis(2));
            }
        });
        let thread = Some(thread);
        Self { stop, thread }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(thread::panicking() || !matches!(ended, Some(Err(_))));
    }
}

/// What `rota top` says in the column `sent/s` of each node.
fn sent(cluster: &Cluster) -> Vec<f64> {
    let file = cluster.file_of(1).display().to_string();
    let output = rota(&["top", "--once", "--interval", "500", "--config", &file]);
    let (text, code) = said(&output);
    assert_eq!(code, Some(0), "{text}");
    let row = |id: u16| {
        let begin = format!("{id} n{id} ");
        let mut lines = text.lines().map(str::trim_start);
        let line = lines.find(|line| line.starts_with(&begin));
        let words: Vec<&str> = line.expect("a row").split_whitespace().collect();
        let number = words[words.len() - 5].parse();
        number.expect("a number")
    };
    vec![row(1), row(2)]
}

/// Load is seen, whichever engine orders it, and its end.
fn load_is_seen(cluster: &Cluster) {
    meet(cluster, &[1, 2]);
    let load = Load::at(cluster, 1);
    let until = Instant::now() + PATIENCE;
    loop {
        let (text, code) = explain(cluster, 2);
        let rates = sent(cluster);
        if code == Some(0) && text.contains("a second are delivered") && rates[0] > 0.0 {
            break;
        }
        assert!(Instant::now() < until, "{text} {rates:?}");
    }
    drop(load);
    let until = Instant::now() + PATIENCE;
    while !explain(cluster, 2).0.contains("nothing is going on") {
        assert!(Instant::now() < until);
    }
}

#[test]
fn load_is_seen_with_engines_that_vote() {
    for engine in [EngineName::URingPaxos, EngineName::RingPaxos] {
        load_is_seen(&Cluster::voting(2, engine));
    }
}

#[test]
fn load_is_seen_with_engines_that_have_views() {
    for engine in [EngineName::Lcr, EngineName::FastCast] {
        load_is_seen(&Cluster::over(2, engine));
    }
}

#[test]
fn a_configuration_and_other_places_are_asked_together() {
    let mut cluster = Cluster::start(2, "");
    let address = with_metrics(&mut cluster, 1);
    meet(&cluster, &[1, 2]);
    let (file, url) = (
        cluster.file_of(2).display().to_string(),
        format!("http://{address}"),
    );
    let ask = ["status", "--explain", "--interval", "200"];
    let both = [&ask[..], &["--config", &file, "--socket", &url]].concat();
    let (text, code) = said(&rota(&both));
    // One of them was asked at two places, and counts once.
    assert!(
        text.contains("all well: 2 on one ring") && text.contains("(2 of them asked)"),
        "{text}"
    );
    assert_eq!(code, Some(0), "{text}");
    // No daemon of the configuration is here any more: the others are asked all the same.
    cluster.terminate(1);
    cluster.terminate(2);
    let (text, code) = said(&rota(&[&ask[..], &["--config", &file]].concat()));
    assert_eq!((text.as_str(), code), ("", Some(2)));
    let (_, code) = said(&rota(&both));
    assert_eq!(code, Some(1));
}

#[test]
fn a_daemon_that_is_stopped_is_said_to_be_and_keeps_nobody_waiting_for_the_others() {
    let cluster = Cluster::patient(2, "");
    meet(&cluster, &[1, 2]);
    let pids = [1, 2].map(|id| i32::try_from(cluster.pid(id)).expect("a number"));
    let pids = pids.map(|pid| Pid::from_raw(pid).expect("not 0"));
    let signal = |signal| {
        for pid in pids {
            kill_process(pid, signal).expect("it runs");
        }
    };
    signal(Signal::STOP);
    let before = Instant::now();
    let file = cluster.file_of(1).display().to_string();
    let output = rota(&["status", "--config", &file]);
    signal(Signal::CONT);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert_eq!(
        errors.matches("it is stopped, or stuck").count(),
        2,
        "{errors}"
    );
    // One after the other would take 20 s.
    assert!(before.elapsed() < Duration::from_secs(17), "{errors}");
}

#[test]
fn the_clients_socket_says_that_it_is_not_the_one_to_ask() {
    let cluster = Cluster::start(1, "handshake_ms = 300");
    let socket = cluster.socket(1).display().to_string();
    let output = rota(&["status", "--socket", &socket]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("this is not an admin socket"), "{errors}");
    assert_eq!(output.status.code(), Some(1));
}

/// What a command says on standard error, and its status, where standard output is a full disk.
fn on_a_full_disk(arguments: &[&str]) -> (String, Option<i32>) {
    let full = std::fs::File::options().write(true).open("/dev/full");
    let output = Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(arguments)
        .stdout(Stdio::from(full.expect("Linux has it")))
        .output()
        .expect("the binary");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (errors, output.status.code())
}

#[test]
fn output_that_a_full_disk_does_not_take_is_an_error() {
    let cluster = Cluster::start(1, "");
    let path = |path: std::path::PathBuf| path.display().to_string();
    let (admin, socket, file) = (
        path(cluster.admin(1)),
        path(cluster.socket(1)),
        path(cluster.file_of(1)),
    );
    let key = path(cluster.dir().join("some.key"));
    assert!(rota(&["key", "new", &key]).status.success());
    let _load = Load::at(&cluster, 1);
    let cases: [&[&str]; 7] = [
        &["status", "--json", "--socket", &admin],
        &[
            "status",
            "--explain",
            "--interval",
            "50",
            "--socket",
            &admin,
        ],
        &["top", "--once", "--interval", "50", "--socket", &admin],
        &["config", "check", &file],
        &["key", "show", &key],
        &["sub", "nobody", "--count", "3", "--socket", &socket],
        &["demo", "--nodes", "1", "--messages", "10"],
    ];
    for case in cases {
        let (errors, code) = on_a_full_disk(case);
        assert_eq!(code, Some(1), "{case:?}: {errors}");
        assert!(
            errors.contains("No space left on device"),
            "{case:?}: {errors}"
        );
    }
}

#[test]
fn top_ends_when_its_reader_has_gone() {
    let cluster = Cluster::start(1, "");
    let socket = cluster.admin(1).display().to_string();
    let mut top = Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(["top", "--interval", "50", "--socket", &socket])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary");
    let mut first = [0; 20];
    let mut out = top.stdout.take().expect("a pipe");
    out.read_exact(&mut first).expect("a table");
    // No escape sequences for a screen in a pipe.
    assert!(!first.contains(&0x1b), "{first:?}");
    drop(out);
    let until = Instant::now() + PATIENCE;
    let code = loop {
        if let Some(status) = top.try_wait().expect("a child") {
            break status.code();
        }
        assert!(Instant::now() < until, "it goes on for nobody");
        thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(code, Some(0));
}

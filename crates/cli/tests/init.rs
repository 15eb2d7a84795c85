//! `rota init`, as a person runs it: from nothing to a first message.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn rota(arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(arguments)
        .output();
    output.expect("the binary")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The first of six ports that nobody has, below those that the system hands out by itself.
fn free_port() -> String {
    let is_free = |port: u16| UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    let mut bases = (28_000..28_300).step_by(6);
    let base = bases.find(|base| (*base..base + 6).all(is_free));
    base.expect("there are free ports").to_string()
}

/// A configuration for three daemons on this host, in a directory of its own.
fn init(dir: &Path, more: &[&str]) -> Output {
    let [output, state, run] = ["etc", "state", "run"].map(|name| dir.join(name));
    for made in [&state, &run] {
        std::fs::create_dir_all(made).expect("a directory");
    }
    let [output, state, run] = [&output, &state, &run].map(|path| path.display().to_string());
    let port = free_port();
    let mut arguments = vec![
        "init",
        "--hosts",
        "left=127.0.0.1,127.0.0.1,right=127.0.0.1",
    ];
    arguments.extend([
        "--output",
        &output,
        "--state-dir",
        &state,
        "--run-dir",
        &run,
    ]);
    arguments.extend(["--port", &port]);
    arguments.extend(more);
    rota(&arguments)
}

/// A daemon that has started.
struct Daemon(Child);

impl Daemon {
    fn start(config: &str, node: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rota"))
            .args(["daemon", "--config", config, "--node", node])
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary");
        let log = child.stderr.take().expect("a pipe");
        let mut lines = BufReader::new(log).lines().map_while(Result::ok);
        let mut said = Vec::new();
        let started = lines.any(|line| {
            said.push(line);
            said.last()
                .is_some_and(|line| line.contains("a daemon has started"))
        });
        assert!(started, "node {node} has not started: {said:?}");
        // Its log must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self(child)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_init_writes_is_accepted_for_each_node_with_each_engine() {
    for engine in [
        "accelerated-ring",
        "totem-ring",
        "fastcast",
        "lcr",
        "ring-paxos",
        "u-ring-paxos",
    ] {
        let dir = tempfile::tempdir().expect("a directory");
        let output = init(dir.path(), &["--engine", engine]);
        assert!(output.status.success(), "{engine}: {output:?}");
        let config = dir.path().join("etc/rota.toml").display().to_string();
        assert!(
            text(&output.stdout).contains(&format!("{config}: a cluster of 3 nodes with {engine}"))
        );
        for node in ["1", "2", "3"] {
            let checked = rota(&["config", "check", &config, "--node", node]);
            assert!(
                checked.status.success(),
                "{engine}, node {node}: {checked:?}"
            );
            let said = text(&checked.stdout);
            assert!(
                said.contains(engine) && said.contains("sends with key 1"),
                "{said}"
            );
        }
    }
}

#[test]
fn the_key_is_its_owners_alone_and_nothing_is_written_over() {
    let dir = tempfile::tempdir().expect("a directory");
    let output = init(dir.path(), &["--json"]);
    assert!(output.status.success(), "{output:?}");
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let [config, key] = ["etc/rota.toml", "etc/cluster.key"].map(|name| dir.path().join(name));
    assert_eq!(said["config"].as_str().map(Path::new), Some(&*config));
    assert_eq!(said["key"].as_str().map(Path::new), Some(&*key));
    assert_eq!(said["nodes"][2]["name"], "right");
    assert_eq!(said["nodes"][1]["address"], "127.0.0.1");
    let mode = |path: &Path| {
        let metadata = std::fs::metadata(path).expect("it is there");
        metadata.permissions().mode() & 0o7777
    };
    assert_eq!((mode(&config), mode(&key)), (0o644, 0o600));
    let before = [&config, &key].map(|path| std::fs::read(path).expect("a file"));
    let again = init(dir.path(), &[]);
    assert_eq!(again.status.code(), Some(2), "{again:?}");
    assert!(
        text(&again.stderr).contains("it exists, and is not written over"),
        "{again:?}"
    );
    let after = [&config, &key].map(|path| std::fs::read(path).expect("a file"));
    assert_eq!(before, after);
}

#[test]
fn hosts_that_make_no_cluster_are_refused_and_nothing_is_written() {
    let dir = tempfile::tempdir().expect("a directory");
    let output = dir.path().join("etc").display().to_string();
    for (hosts, word) in [
        ("a=10.0.0.1,a=10.0.0.2", "two nodes could be called a"),
        ("a=some where", "no address of a host"),
        ("10.0.0.1,127.0.0.1", "loopback"),
    ] {
        let refused = rota(&["init", "--hosts", hosts, "--output", &output]);
        assert_eq!(refused.status.code(), Some(2), "{hosts}: {refused:?}");
        assert!(text(&refused.stderr).contains(word), "{hosts}: {refused:?}");
        assert!(!dir.path().join("etc").exists());
    }
}

#[test]
fn three_daemons_of_a_new_configuration_are_on_one_ring_and_a_message_passes() {
    let dir = tempfile::tempdir().expect("a directory");
    let output = init(dir.path(), &[]);
    assert!(output.status.success(), "{output:?}");
    let config = dir.path().join("etc/rota.toml").display().to_string();
    let daemons = ["1", "2", "3"].map(|node| Daemon::start(&config, node));
    let socket = |node: u8| format!("{}/run/rota-{node}.sock", dir.path().display());
    let mut sub = Command::new(env!("CARGO_BIN_EXE_rota"))
        .args([
            "sub",
            "orders",
            "--members",
            "--count",
            "1",
            "--socket",
            &socket(1),
        ])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary");
    let mut lines = BufReader::new(sub.stdout.take().expect("a pipe"));
    let mut joined = String::new();
    lines.read_line(&mut joined).expect("a view");
    // The first node is called what init was told.
    assert!(
        joined.starts_with("# view orders ") && joined.contains("#left"),
        "{joined}"
    );
    let mut publish = Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(["pub", "orders", "--socket", &socket(3)])
        .stdin(Stdio::piped())
        .spawn()
        .expect("the binary");
    let mut input = publish.stdin.take().expect("a pipe");
    input.write_all(b"first message\n").expect("written");
    drop(input);
    assert!(publish.wait().expect("it ends").success());
    let mut rest = String::new();
    lines.read_to_string(&mut rest).expect("a message");
    assert!(rest.ends_with("first message\n"), "{rest}");
    assert!(sub.wait().expect("it ends").success());
    drop(daemons);
}

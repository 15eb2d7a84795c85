//! The questions of operators: the troubles, and their places.

use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rota_client::ConnectError;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::native::{PATIENCE, builder, client, meet, next_text};

pub fn rota(arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(arguments)
        .output();
    output.expect("the binary")
}

/// What is said of all daemons, and whether something is wrong.
fn explain(cluster: &Cluster, nodes: u16, interval: &str) -> (String, bool) {
    let sockets: Vec<String> = (1..=nodes)
        .map(|id| cluster.admin(id).display().to_string())
        .collect();
    let mut arguments = vec!["status", "--explain", "--interval", interval];
    for socket in &sockets {
        arguments.extend(["--admin", socket]);
    }
    let output = rota(&arguments);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 1)), "{output:?}");
    (said, code == Some(1))
}

/// Asks until what is said has all of these words and none of those.
fn explained(cluster: &Cluster, words: &[&str], others: &[&str]) {
    let until = Instant::now() + PATIENCE;
    loop {
        let (said, wrong) = explain(cluster, 3, "1000");
        let has = |word: &&str| said.contains(*word);
        if words.iter().all(has) && !others.iter().any(has) {
            assert!(wrong, "{said}");
            return;
        }
        assert!(Instant::now() < until, "it is not found out: {said}");
    }
}

/// Clients of all daemons that send as long as they are left, and do not wait.
struct Traffic {
    stop: Arc<AtomicBool>,
    senders: Vec<JoinHandle<()>>,
}

impl Traffic {
    fn start(cluster: &Cluster) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let sender = |id: u16| {
            let mut client = client(cluster, id, "sender");
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    client.send("nobody", &[b'x'; 1000]).expect("sent");
                    thread::sleep(Duration::from_millis(1));
                }
            })
        };
        let senders = (1..=3).map(sender).collect();
        Self { stop, senders }
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for sender in self.senders.drain(..) {
            let ended = sender.join();
            assert!(thread::panicking() || ended.is_ok(), "a sender has failed");
        }
    }
}

/// A daemon that runs for a tenth of the time.
struct Pauses {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Pauses {
    fn of(cluster: &Cluster, id: u16) -> Self {
        let pid = i32::try_from(cluster.pid(id)).expect("a number");
        let daemon = Pid::from_raw(pid).expect("not 0");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                kill_process(daemon, Signal::STOP).expect("it runs");
                thread::sleep(Duration::from_millis(45));
                kill_process(daemon, Signal::CONT).expect("it runs");
                thread::sleep(Duration::from_millis(5));
            }
        });
        let thread = Some(thread);
        Self { stop, thread }
    }
}

impl Drop for Pauses {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(
            thread::panicking() || matches!(ended, Some(Ok(()))),
            "pauses failed"
        );
    }
}

/// A process that ends with the test.
struct Process(Child);

impl Process {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("it runs");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn status(cluster: &Cluster, id: u16) -> Value {
    let socket = cluster.admin(id).display().to_string();
    let output = rota(&["status", "--json", "--socket", &socket]);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn a_ring_that_is_well_is_said_to_be() {
    let cluster = Cluster::start(3, "");
    meet(&cluster, &[1, 2, 3]);
    let until = Instant::now() + PATIENCE;
    // They have just met, which is worth a word for a moment.
    loop {
        let (said, wrong) = explain(&cluster, 3, "300");
        if !wrong {
            assert!(said.starts_with("all well: 3 on one ring, "), "{said}");
            return;
        }
        assert!(Instant::now() < until, "{said}");
    }
}

#[test]
fn a_stopped_client_is_named() {
    let cluster = Cluster::start(3, "");
    meet(&cluster, &[1, 2, 3]);
    let socket = cluster.socket(1).display().to_string();
    let subscriber = Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(["sub", "g", "--name", "sleepy", "--socket", &socket])
        .stdout(Stdio::null())
        .spawn();
    let sleepy = Process(subscriber.expect("the binary"));
    let mut ann = client(&cluster, 2, "ann");
    let until = Instant::now() + PATIENCE;
    // It has joined when it is told something.
    while status(&cluster, 1)["clients"][0]["messages"]
        .as_u64()
        .unwrap_or(0)
        == 0
    {
        assert!(Instant::now() < until, "it does not join");
        ann.send("g", b"are you there?").expect("sent");
        thread::sleep(Duration::from_millis(10));
    }
    sleepy.signal(Signal::STOP);
    while status(&cluster, 1)["queues"]["client_bytes"].as_u64() < Some(1_000_000) {
        assert!(Instant::now() < until, "nothing waits for it");
        for _ in 0..20 {
            ann.send("g", &[b'x'; 10_000]).expect("sent");
        }
    }
    let words = ["client #sleepy#n1 of node 1 is stuck: it has not read for"];
    explained(&cluster, &words, &["is slow", "lossy"]);
    sleepy.signal(Signal::CONT);
    while status(&cluster, 1)["queues"]["client_bytes"] != 0 {
        assert!(Instant::now() < until, "it does not read");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_link_that_loses_datagrams_is_named() {
    let mut cluster = Cluster::start(3, "");
    cluster.restart_with(2, |text| text + "[faults]\nloss = 0.2\nloss_distance = 1\n");
    meet(&cluster, &[1, 2, 3]);
    let _traffic = Traffic::start(&cluster);
    let words = [
        "node 2 asks for many retransmissions: ",
        " of what node 1 sent (",
        ": lossy link: ",
    ];
    explained(
        &cluster,
        &words,
        &[
            "node 2 is slow",
            "stuck",
            "buffer was full: the node",
            "node 1 asks",
            "node 3 asks",
        ],
    );
}

#[test]
fn a_node_that_does_not_get_its_processor_is_named() {
    let cluster = Cluster::start(3, "");
    meet(&cluster, &[1, 2, 3]);
    let _traffic = Traffic::start(&cluster);
    let _pauses = Pauses::of(&cluster, 3);
    explained(
        &cluster,
        &[
            "node 3 is slow: it has the token ",
            "the token lies there and is not read",
        ],
        &["node 1 is slow", "node 2 is slow", "lossy", "stuck"],
    );
}

#[test]
fn top_shows_all_daemons_and_what_does_not_answer() {
    let cluster = Cluster::start(2, "");
    meet(&cluster, &[1, 2]);
    let file = cluster.dir().join("rota.toml").display().to_string();
    let output = rota(&["top", "--once", "--interval", "200", "--config", &file]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for id in 1..=2 {
        let row = format!("{id} n{id}");
        let row = text
            .lines()
            .find(|line| line.trim_start().starts_with(&row));
        assert!(row.is_some_and(|row| row.contains(" 1,2 ")), "{text}");
    }
    let gone = rota(&["top", "--once", "--interval", "10", "--socket", "/no/such"]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&gone.stdout).contains("/no/such: "),
        "{gone:?}"
    );
}

#[test]
fn what_can_change_is_reloaded_what_cannot_is_named_and_what_is_wrong_changes_nothing() {
    let cluster = Cluster::start(1, "clients = 2");
    let socket = cluster.admin(1).display().to_string();
    let file = cluster.file_of(1);
    let text = fs::read_to_string(&file).expect("a file");
    let reload = |text: &str| {
        fs::write(&file, text).expect("a file");
        let output = rota(&["reload", "--socket", &socket]);
        let said =
            [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
        (output.status.code(), said.concat())
    };
    let _one = client(&cluster, 1, "one");
    let mut two = client(&cluster, 1, "two");
    let refused = |name: &str| {
        matches!(
            builder(name).connect(cluster.socket(1)),
            Err(ConnectError::Refused { .. })
        )
    };
    assert!(refused("three"));
    assert_eq!(reload(&text), (Some(0), "nothing had changed\n".to_owned()));

    let more = text.replace("clients = 2", "clients = 3");
    assert_eq!(
        reload(&more),
        (Some(0), "changed: daemon.clients\n".to_owned())
    );
    let _three = client(&cluster, 1, "three");
    assert!(refused("four"));

    let slower = more
        .replace("clients = 3", "clients = 4")
        .replace("timing = \"default\"", "timing = \"relaxed\"");
    let (code, said) = reload(&slower);
    assert_eq!(
        said,
        "changed: daemon.clients; needs a restart, and is as it was: timing\n"
    );
    assert_eq!(code, Some(0));
    let _four = client(&cluster, 1, "four");

    for (wrong, why) in [
        (
            slower.replace("clients = 4", "clients = 0"),
            "clients must not be 0",
        ),
        (
            slower.replace("clients = 4", "clients = 9\nnonsense = 1"),
            "unknown field `nonsense`",
        ),
        (
            slower
                .replace("clients = 4", "clients = 9")
                .replace("insecure = true", "insecure = maybe"),
            "insecure",
        ),
    ] {
        let (code, said) = reload(&wrong);
        assert_eq!(code, Some(1), "{said}");
        assert!(
            said.contains("nothing was changed: ") && said.contains(why),
            "{said}"
        );
        assert!(refused("five"));
    }
    let last = &status(&cluster, 1)["reload"];
    assert_eq!(
        (&last["count"], &last["done"]),
        (&Value::from(6), &Value::from(false))
    );
    two.send("#two#n1", b"still here").expect("sent");
    assert_eq!(next_text(&mut two), "still here");
}

//! `rota kv`: a demo with its clients, a kill and its check; and commands against one that runs.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

fn rota() -> Command {
    Command::new(env!("CARGO_BIN_EXE_rota"))
}

fn words(output: &Output) -> String {
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    format!("{out}{err}")
}

#[test]
fn a_demo_with_a_kill_is_explained_by_one_order() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("history.jsonl");
    let demo = ["kv", "demo", "--for", "6s", "--clients", "24", "--json"];
    let output = rota().args(demo).arg("--history").arg(&file).output();
    let output = output.expect("it runs");
    assert!(output.status.success(), "{}", words(&output));
    let text = words(&output);
    assert!(text.contains("is started again"), "{text}");
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let last = out.lines().last().expect("a line");
    let report: serde_json::Value = serde_json::from_str(last).expect("an object");
    assert_eq!(report["identical"], true);
    let history = &report["history"];
    let several = history["several"].as_u64();
    assert!(several > Some(3), "{text}");
    // The history is judged again from its file; with a read that is another one it is not explained.
    let check = |file: &std::path::Path| rota().args(["kv", "check"]).arg(file).output();
    let checked = check(&file).expect("it runs");
    assert!(checked.status.success(), "{}", words(&checked));
    let history = std::fs::read_to_string(&file).expect("it was written");
    let read = history
        .lines()
        .find(|line| line.contains("\"reads\":[[\"key"));
    let read = read.expect("a read");
    let at = read.find("\"reads\":[[\"key").expect("a read");
    let wrong = format!("{}\"reads\":[[\"other", &read[..at]);
    let changed = read.replacen(&read[..at + 14], &wrong, 1);
    let changed = changed.replace(",null]", ",\"nothing\"]");
    let other = directory.path().join("other.jsonl");
    let is_null = read.contains(",null]");
    std::fs::write(&other, history.replacen(read, &changed, 1)).expect("it is ours");
    let checked = check(&other).expect("it runs");
    let is_found = !checked.status.success();
    assert!(is_found || is_null, "{changed}: {}", words(&checked));
    std::fs::write(&other, "no history").expect("it is ours");
    let checked = check(&other).expect("it runs");
    assert_eq!(checked.status.code(), Some(2));
}

/// One process, a majority of a partition, all of them: `kill -9`, again and again; and one of them loses its states.
#[test]
fn kills_lose_nothing_that_was_told() {
    let seconds = std::env::var("ROTA_SECONDS").unwrap_or_else(|_| "24".to_owned());
    let time = format!("{seconds}s");
    let demo = ["kv", "demo", "--kill-every", "3s", "--json", "--for", &time];
    let output = rota().args(demo).args(["--move-every", "500ms"]).output();
    let output = output.expect("it runs");
    assert!(output.status.success(), "{}", words(&output));
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let last = out.lines().last().expect("a line");
    let report: serde_json::Value = serde_json::from_str(last).expect("an object");
    println!("{report}");
    assert!(report["kills"].as_u64() > Some(3), "{report}");
    assert!(
        report["history"]["answered"].as_u64() > Some(100),
        "{report}"
    );
    assert_eq!(report["identical"], true);
    assert!(report["shifted"]["moves"].as_u64() > Some(0), "{report}");
}

/// A demo that runs until it is told to end.
struct Demo {
    child: Child,
    address: String,
}

impl Demo {
    fn start() -> Self {
        let mut child = rota()
            .args([
                "kv",
                "demo",
                "--partitions",
                "2",
                "--replicas",
                "1",
                "--clients",
                "1",
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let address = loop {
            let line = lines.next().expect("it says where").expect("text");
            if let Some((_, rest)) = line.split_once("partition 1): ") {
                let (address, _) = rest.split_once(';').expect("an address");
                break address.to_owned();
            }
        };
        // Whatever else it says is read, so that it does not wait.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }

    fn ask(&self, words: &[&str], input: &str) -> Output {
        let mut child = rota()
            .arg("kv")
            .args(words)
            .args(["--connect", &self.address])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut stdin = child.stdin.take().expect("piped");
        stdin.write_all(input.as_bytes()).expect("it reads");
        drop(stdin);
        child.wait_with_output().expect("it ends")
    }

    fn says(&self, words: &[&str], input: &str) -> String {
        let output = self.ask(words, input);
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Each workload is done and measured, and all that is read is there.
fn measured(demo: &Demo) {
    for workload in ["a", "b", "d", "e", "f", "batch"] {
        let small = ["--clients", "4", "--keys", "200", "--value-bytes", "100"];
        let short = ["--for", "300ms", "--warmup", "50ms", "--json"];
        let bench = ["bench", "--workload", workload];
        let said = demo.says(&[&bench[..], &small, &short].concat(), "");
        let last = said.lines().last().unwrap_or_default();
        let report: serde_json::Value = serde_json::from_str(last).expect("a report");
        assert!(report["rate"].as_f64() > Some(0.0), "{said}");
        for nothing in ["refused", "broken"] {
            assert_eq!(report[nothing], 0, "{said}");
        }
        // The last that are inserted may be on their way when they are read.
        assert!(workload == "d" || report["missing"] == 0, "{said}");
    }
    // Some a second, and no more.
    let slow = ["bench", "--workload", "get", "--rate", "100", "--no-fill"];
    let more = ["--keys", "200", "--clients", "2", "--for", "1s", "--json"];
    let said = demo.says(&[&slow[..], &more].concat(), "");
    let report: serde_json::Value =
        serde_json::from_str(said.lines().last().unwrap_or_default()).expect("a report");
    let rate = report["rate"].as_f64().expect("a rate");
    assert!(rate > 0.0 && rate <= 102.0, "{said}");
}

#[test]
fn commands_ask_a_store_that_runs() {
    let mut demo = Demo::start();
    assert_eq!(demo.says(&["put", "user:1", "alice"], ""), "");
    assert_eq!(demo.says(&["get", "user:1"], ""), "alice\n");
    let done = demo.says(
        &["batch"],
        "SET user:2 bob\nSET user:3 'the third'\nGET user:1\n",
    );
    assert_eq!(done, "OK\nOK\nalice\n");
    let listed = demo.says(&["scan", "user:", "user;"], "");
    assert_eq!(listed, "user:1\talice\nuser:2\tbob\nuser:3\tthe third\n");
    assert_eq!(
        demo.says(&["scan", "user:", "--limit", "1"], ""),
        "user:1\talice\n"
    );
    assert_eq!(demo.says(&["del", "user:1", "user:2", "user:9"], ""), "2\n");
    assert_eq!(demo.ask(&["get", "user:1"], "").status.code(), Some(1));
    // What is wrong in a batch leaves all of it undone.
    let wrong = demo.ask(&["batch"], "SET user:4 x\nSET user:4\n");
    assert_eq!(wrong.status.code(), Some(1));
    assert!(
        words(&wrong).contains("wrong number of arguments"),
        "{}",
        words(&wrong)
    );
    assert_eq!(demo.ask(&["get", "user:4"], "").status.code(), Some(1));
    assert_eq!(
        demo.ask(&["batch"], "SET user:4 x\nDISCARD\n")
            .status
            .code(),
        Some(2)
    );
    // More than is answered at once.
    let large = "x".repeat(100_000);
    for key in 0..12 {
        demo.says(&["put", &format!("large:{key:02}"), &large], "");
    }
    let listed = demo.says(&["scan", "large:", "large;"], "");
    assert_eq!(listed.lines().count(), 12);
    measured(&demo);
    // It ends with its check when it is told to.
    let id = rustix::process::Pid::from_child(&demo.child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).expect("it is there");
    let began = Instant::now();
    let status = loop {
        if let Some(status) = demo.child.try_wait().expect("a child") {
            break status;
        }
        assert!(began.elapsed() < PATIENCE, "it does not end");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(status.success(), "{status}");
}

#[test]
fn a_process_that_cannot_start_says_why() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("rota.toml");
    std::fs::write(&file, "cluster = 7\n").expect("it is ours");
    let serve = |node: &str| {
        let mut serve = rota();
        serve.args(["kv", "serve", "--config"]).arg(&file);
        serve.args(["--node", node]).output().expect("it runs")
    };
    let output = serve("1");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        words(&output).contains("no `[kv]` section"),
        "{}",
        words(&output)
    );
}

/// Ends with its process, whose words are in a file.
struct Served {
    child: Child,
    words: PathBuf,
}

impl Served {
    /// Fails with the words of the process if it has ended.
    fn has_not_ended(&mut self) {
        if let Some(status) = self.child.try_wait().expect("a child") {
            let words = std::fs::read_to_string(&self.words).expect("it is ours");
            panic!("a process has ended: {status}: {words}");
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process of a store with this file.
fn serve(file: &Path, node: &str) -> Served {
    let mut serve = rota();
    serve.args(["kv", "serve", "--node", node, "--config"]);
    let words = file.with_file_name(format!("said-{node}"));
    let said = std::fs::File::create(&words).expect("it is ours");
    let serve = serve.arg(file).stderr(said).spawn();
    let child = serve.expect("it starts");
    Served { child, words }
}

/// Tries until it is done, while these processes run.
fn until(what: &str, served: &mut [Served], mut is_done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_done() {
        served.iter_mut().for_each(Served::has_not_ended);
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The configuration of a store of so many partitions with so many replicas each, and its file; its directories are
/// made. Its address is of this process of tests alone: the demos of other tests, and the same test of another
/// checkout, choose from the ports of 127.0.0.1.
fn store(directory: &Path, of: (u16, u16), port: u16) -> (rota_kv::KvConfig, PathBuf) {
    let votes = (directory, rota_node::VoteStorage::Memory);
    let mut config = rota_kv::KvConfig::loopback(of, port, votes);
    // The number of a process has 22 bits, at most.
    let [_, a, b, c] = std::process::id().to_be_bytes();
    for node in &mut config.rings.common.nodes {
        node.address = IpAddr::from([127, 64 + a, b, c]);
    }
    let file = directory.join("rota.toml");
    std::fs::write(&file, config.to_toml().expect("a file")).expect("it is ours");
    for name in ["votes", "states"] {
        std::fs::create_dir(directory.join(name)).expect("it is ours");
    }
    (config, file)
}

/// Where clients of the first process connect.
fn address(config: &rota_kv::KvConfig) -> String {
    let node = config.rings.common.nodes[0].address;
    let port = config.kv.process[0].redis_port.expect("a port");
    SocketAddr::new(node, port).to_string()
}

#[test]
fn commands_say_who_they_are_and_speak_tls() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name);
    let (mut config, _) = store(directory.path(), (1, 1), 24_400);
    config.kv.tls = Some(rota_kv::TlsSection {
        certificate: file("own.pem"),
        key: file("own.key"),
        client_ca: None,
    });
    config.kv.user = vec![rota_kv::access::UserSection {
        name: "app".to_owned(),
        // Of "secret".
        password_sha256: "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
            .to_owned(),
        keys: None,
        read_only: false,
    }];
    let key = rcgen::KeyPair::generate().expect("a key");
    let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    let certificate = params.self_signed(&key).expect("a certificate");
    for (name, text) in [
        ("rota.toml", config.to_toml().expect("a file")),
        ("own.pem", certificate.pem()),
        ("own.key", key.serialize_pem()),
        ("right", "secret\n".to_owned()),
        ("wrong", "Secret\n".to_owned()),
    ] {
        std::fs::write(file(name), text).expect("it is ours");
    }
    let mut served = [serve(&file("rota.toml"), "1")];
    let address = address(&config);
    let ask = |words: &[&str], password: &str| {
        let mut ask = rota();
        ask.arg("kv").args(words).args(["--user", "app"]);
        ask.args(["--connect", &address]);
        ask.arg("--password-file").arg(file(password));
        ask.arg("--ca").arg(file("own.pem"));
        ask.args(["--server-name", "localhost"]);
        ask.output().expect("it ends")
    };
    until("it does not answer", &mut served, || {
        ask(&["put", "a", "1"], "right").status.success()
    });
    assert_eq!(ask(&["get", "a"], "right").stdout, b"1\n");
    let status = |password: &str| {
        let mut status = rota();
        status.args([
            "kv",
            "status",
            "--user",
            "app",
            "--server-name",
            "localhost",
        ]);
        status.arg("--config").arg(file("rota.toml"));
        status.arg("--password-file").arg(file(password));
        status.arg("--ca").arg(file("own.pem"));
        status.output().expect("it ends")
    };
    let well = status("right");
    assert!(well.status.success(), "{}", words(&well));
    assert!(words(&well).contains("well"), "{}", words(&well));
    assert_eq!(status("wrong").status.code(), Some(1));
    let refused = ask(&["get", "a"], "wrong");
    assert_eq!(refused.status.code(), Some(1));
    assert!(words(&refused).contains("WRONGPASS"), "{}", words(&refused));
    // The hash of "Secret": another password is in force when the file is read again; a file that is wrong changes nothing.
    config.kv.user[0].password_sha256 =
        "7e32a729b1226ed1270f282a8c63054d09b26bc9ec53ea69771ce38158dfade8".to_owned();
    let pid = served[0].child.id().to_string();
    let read_again = |text: &str| {
        std::fs::write(file("rota.toml"), text).expect("it is ours");
        let told = Command::new("kill").args(["-HUP", &pid]).status();
        assert!(told.expect("it is told").success());
    };
    read_again("no file");
    std::thread::sleep(Duration::from_millis(300));
    assert!(ask(&["get", "a"], "right").status.success());
    read_again(&config.to_toml().expect("a file"));
    until("it does not take the password", &mut served, || {
        ask(&["get", "a"], "wrong").status.success()
    });
    assert_eq!(ask(&["get", "a"], "right").status.code(), Some(1));
}

#[test]
fn slots_move_when_they_are_told_to() {
    let directory = tempfile::tempdir().expect("a directory");
    let (config, file) = store(directory.path(), (2, 1), 24_430);
    let mut served = ["1", "2"].map(|node| serve(&file, node));
    let address = address(&config);
    let ask = |words: &[&str]| {
        let mut ask = rota();
        ask.arg("kv").args(words).args(["--connect", &address]);
        ask.output().expect("it ends")
    };
    // One key of each partition.
    until("it does not answer", &mut served, || {
        let put = |key, value| ask(&["put", key, value]).status.success();
        put("foo", "1") && put("bar", "2")
    });
    let shift = |slots: &str, to: &str| {
        let mut shift = rota();
        shift.args(["kv", "move", "--slots", slots, "--to", to, "--config"]);
        shift.arg(&file).output().expect("it ends")
    };
    for (to, says) in [
        (
            "1",
            "8192 slots of partition 2 are of partition 1 now: 1 keys",
        ),
        ("1", "partition 1 has them already"),
        (
            "2",
            "16384 slots of partition 1 are of partition 2 now: 2 keys",
        ),
    ] {
        let output = shift("0-16383", to);
        assert!(output.status.success(), "{}", words(&output));
        assert!(words(&output).contains(says), "{}", words(&output));
        assert_eq!(ask(&["get", "foo"]).stdout, b"1\n");
        assert_eq!(ask(&["get", "bar"]).stdout, b"2\n");
    }
    let none = shift("0-5", "7");
    assert_eq!(none.status.code(), Some(1));
    assert!(
        words(&none).contains("there is no partition 7"),
        "{}",
        words(&none)
    );
    assert_eq!(shift("5-0", "1").status.code(), Some(2));
    rings_are_shown(&file);
}

/// The rings below the store are shown, with what they keep for whom; and an operator lets go of that.
fn rings_are_shown(file: &std::path::Path) {
    let rings = |words: &[&str]| {
        let mut rings = rota();
        rings.args(["kv", "rings", "--config"]).arg(file);
        rings.args(words).output().expect("it ends")
    };
    let shown = rings(&["--json"]);
    let text = words(&shown);
    assert!(shown.status.success(), "{text}");
    for says in [
        "process 1, delivered up to round ",
        "  ring 1: operational: 1 (configuration 1, coordinator 1), learnt ",
        "    kept for partition 1 (replicas 1): from instance ",
        "    kept for partition 2 (replicas 2): from instance ",
        "\"uring_instances_learnt\":",
    ] {
        assert!(text.contains(says), "{says}: {text}");
    }
    let wrong = rings(&["--abandon", "1"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", words(&wrong));
    // What would do harm, or nothing, is not ordered.
    for (asked, why) in [
        (
            &["--abandon", "9"][..],
            "process 1: REFUSED ring 3 keeps nothing for partition 9",
        ),
        (
            &["--abandon", "2"],
            "process 1: REFUSED node 2 has a replica of partition 2, and is there",
        ),
        (
            &["--replace", "2", "--replicas", "1,2"],
            "process 1: REFUSED node 1 has no replica of partition 2",
        ),
    ] {
        let refused = rings(&[&["--ring", "3"], asked].concat());
        assert_eq!(refused.status.code(), Some(1), "{}", words(&refused));
        assert!(words(&refused).contains(why), "{why}: {}", words(&refused));
    }
    let same = rings(&["--ring", "3", "--replace", "2", "--replicas", "2"]);
    assert!(same.status.success(), "{}", words(&same));
    let nowhere = rings(&["--ring", "77", "--abandon", "2"]);
    assert_eq!(nowhere.status.code(), Some(1), "{}", words(&nowhere));
}

/// A ring lets go what it keeps for a replica that is away, and for none that is there.
#[test]
fn a_ring_lets_go_of_nobody_who_is_there() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_, file) = store(directory.path(), (1, 3), 24_460);
    let mut served: Vec<Served> = ["1", "2", "3"].map(|node| serve(&file, node)).into();
    let rings = |words: &[&str]| {
        let mut rings = rota();
        rings.args(["kv", "rings", "--config"]).arg(&file);
        let rings = rings.args(["--ring", "1"]).args(words).output();
        rings.expect("it ends")
    };
    let until = |what: &str, served: &mut [Served], is: &dyn Fn() -> bool| {
        let began = Instant::now();
        while !is() {
            served.iter_mut().for_each(Served::has_not_ended);
            assert!(began.elapsed() < PATIENCE, "{what}: {}", words(&rings(&[])));
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    let shows = |replicas: &str| words(&rings(&[])).contains(replicas);
    until("all replicas", &mut served, &|| shows("(replicas 1, 2, 3)"));
    let replace = ["--replace", "1", "--replicas", "1,2"];
    let there = "node 3 has a replica of partition 1, and is there";
    for (asked, why) in [
        (&replace[..], there),
        (&["--abandon", "1"], "node 1 has a replica of partition 1"),
    ] {
        let refused = rings(asked);
        assert_eq!(refused.status.code(), Some(1), "{}", words(&refused));
        assert!(words(&refused).contains(why), "{}", words(&refused));
    }
    // It does not answer, and is there: the ring goes on without it, and has a link to its host.
    let third = served.pop().expect("it runs");
    let process = i32::try_from(third.child.id()).expect("a number");
    let process = rustix::process::Pid::from_raw(process).expect("not 0");
    rustix::process::kill_process(process, rustix::process::Signal::STOP).expect("it runs");
    until("a lost connection", &mut served, &|| {
        let status = rota()
            .args(["kv", "status", "--config"])
            .arg(&file)
            .output();
        words(&status.expect("it ends")).contains("1 of 2 other processes")
    });
    until("a ring without it", &mut served, &|| {
        shows("operational: 1, 2 (")
    });
    let said = [&replace[..], &["--absent", "3"]].concat();
    for asked in [&replace[..], &said] {
        let refused = rings(asked);
        assert_eq!(refused.status.code(), Some(1), "{}", words(&refused));
        assert!(words(&refused).contains(there), "{}", words(&refused));
    }
    drop(third);
    until("an order", &mut served, &|| {
        rings(&replace).status.success()
    });
    until("two replicas", &mut served, &|| shows("(replicas 1, 2)"));
}

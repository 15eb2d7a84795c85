//! `rota log`: a demo with its clients, a kill and its check; and commands against one that runs.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Output, Stdio};

fn rota() -> Command {
    Command::new(env!("CARGO_BIN_EXE_rota"))
}

fn words(output: &Output) -> String {
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    format!("{out}{err}")
}

fn report(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{}", words(output));
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let last = out.lines().last().expect("a line");
    serde_json::from_str(last).expect("an object")
}

#[test]
fn a_demo_with_a_kill_is_explained_by_what_the_logs_have() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("history.json");
    let demo = ["log", "demo", "--for", "6s", "--json", "--history"];
    let output = rota().args(demo).arg(&file).output().expect("it runs");
    let report = report(&output);
    assert!(words(&output).contains("is started again"));
    assert_eq!(
        (report["identical"].as_bool(), report["kills"].as_u64()),
        (Some(true), Some(1))
    );
    let history = &report["history"];
    for (of, least) in [
        ("acknowledged", 300),
        ("several", 50),
        ("reads", 20),
        ("read", 1_000),
    ] {
        assert!(history[of].as_u64() > Some(least), "{of}: {report}");
    }
    // The history is judged again from its file, and one that cannot be is found out.
    let check = |file: &std::path::Path| rota().args(["log", "check"]).arg(file).output();
    let checked = check(&file).expect("it runs");
    assert!(checked.status.success(), "{}", words(&checked));
    let text = std::fs::read_to_string(&file).expect("it was written");
    let mut history: serde_json::Value = serde_json::from_str(&text).expect("an object");
    let values = history["logs"]["orders"]["values"]
        .as_array_mut()
        .expect("values");
    let count = values.len();
    values.swap(count / 2, count / 2 + 1);
    let other = directory.path().join("other.json");
    std::fs::write(&other, history.to_string()).expect("it is ours");
    let checked = check(&other).expect("it runs");
    assert_eq!(checked.status.code(), Some(1), "{}", words(&checked));
    std::fs::write(&other, "no history").expect("it is ours");
    let checked = check(&other).expect("it runs");
    assert_eq!(checked.status.code(), Some(2));
}

/// One process, a majority, all of them: `kill -9`, again and again; and one of them loses its entries and its states.
#[test]
fn kills_lose_nothing_that_was_told() {
    let seconds = std::env::var("ROTA_SECONDS").unwrap_or_else(|_| "24".to_owned());
    let time = format!("{seconds}s");
    let demo = [
        "log",
        "demo",
        "--kill-every",
        "3s",
        "--json",
        "--for",
        &time,
    ];
    let output = rota().args(demo).output().expect("it runs");
    let report = report(&output);
    println!("{report}");
    assert!(report["kills"].as_u64() > Some(3), "{report}");
    assert!(
        report["history"]["acknowledged"].as_u64() > Some(100),
        "{report}"
    );
    assert_eq!(report["identical"], true);
    // The sixth kill and each sixth after it takes all that one has, if the others have states.
    let seconds: u64 = seconds.parse().expect("a number");
    assert!(
        seconds < 60 || report["lost_states"].as_u64() > Some(0),
        "{report}"
    );
}

/// A demo that runs until it is dropped.
struct Demo(Child, Vec<String>);

impl Demo {
    fn start() -> Self {
        let demo = [
            "log",
            "demo",
            "--writers",
            "0",
            "--readers",
            "0",
            "--tails",
            "0",
            "--keep-all",
        ];
        let mut child = rota()
            .args(demo)
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("it runs");
        let lines = BufReader::new(child.stderr.take().expect("it is ours")).lines();
        let address = |line: String| {
            line.split_once("process ")?
                .1
                .split_once(": ")
                .map(|of| of.1.to_owned())
        };
        let addresses = lines
            .map_while(Result::ok)
            .filter_map(address)
            .take(3)
            .collect();
        Self(child, addresses)
    }

    fn run(&self, at: usize, words: &[&str], input: &str) -> Output {
        let mut child = rota()
            .arg("log")
            .args(words)
            .args(["--connect", &self.1[at]])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut pipe = child.stdin.take().expect("it is ours");
        pipe.write_all(input.as_bytes()).expect("it reads");
        drop(pipe);
        child.wait_with_output().expect("it ends")
    }

    /// What it says.
    fn say(&self, at: usize, line: &[&str], input: &str) -> String {
        let output = self.run(at, line, input);
        assert!(output.status.success(), "{line:?}: {}", words(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn commands_do_what_they_say() {
    let demo = Demo::start();
    assert_eq!(demo.say(0, &["append", "a", "one", "two"], ""), "1\n2\n");
    assert_eq!(demo.say(1, &["append", "a"], "three\nfour\n"), "3\n4\n");
    assert_eq!(
        demo.say(2, &["append", "a", "five", "--expect", "5"], ""),
        "5\n"
    );
    let named = ["append", "b", "x", "y", "--producer", "me", "--name", "n"];
    assert_eq!(demo.say(0, &named, ""), "1\n2\n");
    assert_eq!(demo.say(1, &named, ""), "1\n2\n");
    assert_eq!(
        demo.say(2, &["read", "a", "--from", "4"], ""),
        "4\tfour\n5\tfive\n"
    );
    assert_eq!(demo.say(2, &["read", "a", "--count", "1"], ""), "1\tone\n");
    let tail = demo.say(1, &["tail", "a", "b", "--from", "1", "--count", "7"], "");
    assert_eq!(tail.lines().count(), 7);
    assert_eq!(tail.lines().next(), Some("a\t1\tone"));
    assert_eq!(demo.say(0, &["trim", "a", "--before", "3"], ""), "2\n");
    assert_eq!(demo.say(0, &["trim", "a", "--keep", "2"], ""), "1\n");
    assert_eq!(demo.say(1, &["list"], ""), "a\t4\t6\t2\nb\t1\t3\t2\n");
    assert_eq!(demo.say(1, &["list", "b*"], ""), "b\t1\t3\t2\n");
    demo.say(
        1,
        &["create", "c", "--entries", "3", "--age", "1h", "--new"],
        "",
    );
    demo.say(1, &["seal", "b"], "");
    for (line, why) in [
        (&["append", "b", "z"][..], "SEALED"),
        (
            &["append", "a", "z", "--expect", "9"],
            "not the next one, which is 6-0",
        ),
        (
            &["read", "a", "--from", "2"],
            "TRIMMED the first entry of a that is kept is 4-0",
        ),
        (&["create", "c", "--new"], "there is a log \"c\" already"),
        (&["delete", "nothing"], "there is no log"),
        (&["seal", "nothing"], "no such key"),
    ] {
        let output = demo.run(2, line, "");
        assert_eq!(
            output.status.code(),
            Some(1),
            "{line:?}: {}",
            words(&output)
        );
        assert!(words(&output).contains(why), "{line:?}: {}", words(&output));
    }
    demo.say(2, &["delete", "b"], "");
    assert_eq!(demo.say(0, &["list"], ""), "a\t4\t6\t2\nc\t1\t1\t0\n");
}

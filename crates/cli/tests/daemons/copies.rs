//! The examples of replicated state machines, each with copies in two languages: they stay equal, and go on, while processes and
//! daemons are killed.

#[allow(
    dead_code,
    unreachable_pub,
    reason = "the example has a `main` of its own"
)]
#[path = "../../../client/examples/lock.rs"]
mod lock;
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the example has a `main` of its own"
)]
#[path = "../../../client/examples/matching.rs"]
mod matching;
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the example has a `main` of its own"
)]
#[path = "../../../client/examples/store.rs"]
mod store;

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::cluster::Cluster;
use crate::languages::{Singer, go_program, java_program};
use crate::native::{PATIENCE, meet};

/// Tells a process of this program which example to be, with which arguments.
pub const ARGUMENTS: &str = "ROTA_COPY";

/// A process that is an example of `crates/client`: the test `a_copy` below.
fn example(name: &str, arguments: &[String]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command.args(["copies::a_copy", "--exact", "--nocapture"]);
    command.env(
        ARGUMENTS,
        [&[name.to_owned()], arguments].concat().join("\n"),
    );
    command
}

/// A process of the other tests; or what each example says to whoever starts it with nothing.
#[test]
fn a_copy() {
    let run = |name: &str, arguments: &[String]| match name {
        "store" => store::run(arguments),
        "lock" => lock::run(arguments),
        "matching" => matching::run(arguments),
        other => panic!("there is no {other}"),
    };
    if let Ok(text) = std::env::var(ARGUMENTS) {
        // The harness may have begun a line.
        println!();
        let mut words = text.lines().map(str::to_owned);
        let name = words.next().expect("a name");
        let arguments: Vec<String> = words.collect();
        return run(&name, &arguments).expect("it runs until its input ends");
    }
    for name in ["store", "lock", "matching"] {
        let said = run(name, &[]).expect_err("it was told nothing");
        assert!(said.to_string().starts_with("usage:"), "{said}");
    }
}

/// A process with these arguments.
type Program = fn(&[String]) -> Command;

fn with(mut command: Command, arguments: &[String]) -> Command {
    command.args(arguments);
    command
}

/// Copies of one machine, each at a daemon of its own.
struct Copies {
    cluster: Cluster,
    journals: TempDir,
    copies: Vec<Option<Singer>>,
    programs: Vec<Program>,
}

impl Copies {
    fn start(programs: [Program; 3]) -> Self {
        let cluster = Cluster::patient(3, "");
        meet(&cluster, &[1, 2, 3]);
        let mut all = Self {
            cluster,
            journals: tempfile::tempdir().expect("a directory"),
            copies: vec![None, None, None],
            programs: programs.to_vec(),
        };
        (0..3).for_each(|at| all.begin(at));
        (0..3).for_each(|at| drop(all.copy(at).until_ending("agreed", " of 3")));
        all
    }

    /// Starts a copy, or starts it again.
    fn begin(&mut self, at: usize) {
        let name = format!("copy{at}");
        let text = |path: &Path| path.display().to_string();
        let arguments = [
            text(&self.cluster.socket(at as u16 + 1)),
            name.clone(),
            "machine".to_owned(),
            "3".to_owned(),
            text(&self.journals.path().join(&name)),
        ];
        let command = self.programs[at](&arguments);
        self.copies[at] = Some(Singer::start(&name, command));
    }

    fn copy(&mut self, at: usize) -> &mut Singer {
        self.copies[at].as_mut().expect("it runs")
    }

    fn give(&mut self, at: usize, command: &str) {
        self.copy(at).tell(command);
    }

    /// The answers to this many commands.
    fn answers(&mut self, at: usize, count: usize) -> Vec<String> {
        (0..count).map(|_| self.copy(at).until("ok")).collect()
    }

    /// Waits until these copies are sure of the same state, with so many commands.
    fn are_equal(&mut self, which: &[usize], count: usize) {
        let until = Instant::now() + PATIENCE;
        loop {
            let states: Vec<String> = which.iter().map(|at| self.dump(*at)).collect();
            let begin = format!("state {count} ");
            let is_sure = states[0].starts_with(&begin) && states[0].ends_with(" sure");
            if is_sure && states.iter().all(|state| *state == states[0]) {
                return;
            }
            assert!(Instant::now() < until, "{states:?}, not {count}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn dump(&mut self, at: usize) -> String {
        self.give(at, "dump");
        self.copy(at).until("state")
    }

    /// Kills a daemon, and starts it again.
    fn kill_daemon(&mut self, at: usize) {
        self.cluster.kill(at as u16 + 1);
        self.cluster.restart(at as u16 + 1);
    }

    fn close(&mut self) {
        for copy in &mut self.copies {
            copy.take().into_iter().for_each(Singer::close);
        }
    }
}

/// In Python, where the package is there; `cargo xtask python` runs this test again.
fn store_in_python(arguments: &[String]) -> Command {
    let Ok(interpreter) = std::env::var("ROTA_PYTHON") else {
        return example("store", arguments);
    };
    let mut python = Command::new(interpreter);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/examples/store.py");
    python.arg("-B").arg(script);
    with(python, arguments)
}

#[test]
fn copies_of_a_store_survive_killed_processes_and_daemons() {
    const EACH: usize = 250;
    let rust: Program = |arguments| example("store", arguments);
    let mut copies = Copies::start([rust, rust, store_in_python]);
    for number in 0..EACH {
        for at in 0..3 {
            copies.give(at, &format!("add total {at}"));
            if number % 10 == 0 {
                copies.give(at, &format!("set key{at} {number}"));
            }
        }
    }
    let each = EACH + EACH / 10;
    (0..3).for_each(|at| drop(copies.answers(at, each)));
    copies.are_equal(&[0, 1, 2], 3 * each);
    // One process is killed, the others go on, and it comes back with its journal and what it has missed.
    copies.copy(1).kill();
    copies.give(0, "set late yes");
    copies.answers(0, 1);
    copies.begin(1);
    let replayed = copies.copy(1).until("replayed");
    assert_eq!(replayed, format!("replayed {}", 3 * each));
    copies.are_equal(&[0, 1, 2], 3 * each + 1);
    copies.give(1, "get late");
    assert_eq!(copies.answers(1, 1), ["ok 1 yes"]);
    // A daemon is killed while its client has commands under way: each counts, once.
    for _ in 0..100 {
        copies.give(2, "add after 1");
    }
    copies.kill_daemon(2);
    copies.answers(2, 100);
    copies.give(0, "get after");
    let answer = copies.answers(0, 1);
    assert!(answer[0].ends_with(" 100"), "{answer:?}");
    copies.are_equal(&[0, 1, 2], 3 * each + 1 + 1 + 100 + 1);
    copies.close();
}

#[test]
fn a_lock_is_granted_to_one_at_a_time_with_larger_numbers() {
    let rust: Program = |arguments| example("lock", arguments);
    let go: Program = |arguments| with(go_program("lock"), arguments);
    let mut copies = Copies::start([rust, rust, go]);
    let number = |line: String| -> u64 {
        let number = line.rsplit(' ').next().and_then(|text| text.parse().ok());
        number.unwrap_or_else(|| panic!("{line}"))
    };
    for at in 0..3 {
        copies.give(at, "acquire");
        copies.answers(at, 1);
    }
    let mut newest = 0;
    for at in [0, 1] {
        let granted = number(copies.copy(at).until("granted"));
        assert!(granted > newest, "{granted} behind {newest}");
        newest = granted;
        copies.give(at, "release");
        assert_eq!(number(copies.copy(at).until("lost")), granted);
    }
    // The third has it now; its daemon is killed, and the lock goes on without it.
    let granted = number(copies.copy(2).until("granted"));
    assert!(granted > newest);
    copies.give(0, "acquire");
    copies.kill_daemon(2);
    assert_eq!(number(copies.copy(2).until("lost")), granted);
    let next = number(copies.copy(0).until("granted"));
    assert!(next > granted, "{next} behind {granted}");
    // A process that is killed has it no more, and one that comes back knows the newest number.
    copies.give(2, "acquire");
    copies.copy(0).kill();
    let after = number(copies.copy(2).until("granted"));
    assert!(after > next, "{after} behind {next}");
    copies.begin(0);
    copies.give(0, "acquire");
    copies.give(2, "release");
    assert!(number(copies.copy(0).until("granted")) > after);
    copies.close();
}

#[test]
fn matching_engines_agree_and_replay_their_journals() {
    const EACH: usize = 200;
    let rust: Program = |arguments| example("matching", arguments);
    let java: Program = |arguments| with(java_program("Matching"), arguments);
    let mut copies = Copies::start([rust, java, rust]);
    copies.give(0, "sell 10 100");
    assert_eq!(copies.answers(0, 1), ["ok 1 1"]);
    copies.give(1, "sell 5 99");
    assert_eq!(copies.answers(1, 1), ["ok 1 2"]);
    copies.give(2, "buy 12 100");
    assert_eq!(copies.answers(2, 1), ["ok 1 3 5@99 of 2 7@100 of 1"]);
    copies.give(0, "cancel 1");
    assert_eq!(copies.answers(0, 1), ["ok 2 1"]);
    for number in 0..EACH {
        for at in 0..3 {
            let side = if (number + at) % 2 == 0 {
                "buy"
            } else {
                "sell"
            };
            let price = 90 + (number * 7 + at * 3) % 20;
            copies.give(at, &format!("{side} {} {price}", 1 + number % 9));
        }
    }
    (0..3).for_each(|at| drop(copies.answers(at, EACH)));
    let mut count = 4 + 3 * EACH;
    copies.are_equal(&[0, 1, 2], count);
    // All processes are killed at once, and come back with what their journals have.
    (0..3).for_each(|at| copies.copy(at).kill());
    (0..3).for_each(|at| copies.begin(at));
    for at in 0..3 {
        assert_eq!(
            copies.copy(at).until("replayed"),
            format!("replayed {count}")
        );
    }
    copies.are_equal(&[0, 1, 2], count);
    for _ in 0..50 {
        copies.give(1, "buy 1 200");
    }
    copies.kill_daemon(1);
    copies.answers(1, 50);
    count += 50;
    copies.are_equal(&[0, 1, 2], count);
    copies.close();
}

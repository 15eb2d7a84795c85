//! A program in C that reads too slowly.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Instant;

use crate::access::counter;
use crate::bad_clients::Others;
use crate::cluster::Cluster;
use crate::from_c::{Workshop, ffi};
use crate::native::PATIENCE;

/// Two daemons, the first with the program, which does not read.
struct Slow {
    cluster: Cluster,
    others: Others,
    program: Child,
    out: BufReader<std::process::ChildStdout>,
}

impl Slow {
    fn new(policy: u32) -> Self {
        let settings =
            "message_bytes = 100000\nclient_queue_bytes = 1000000\nslow_clients = \"skip\"";
        let cluster = Cluster::start(1, settings);
        let workshop = Workshop::new();
        let program = workshop.compile(&ffi("tests/slow.c"), &["-lrota"]);
        let mut program = start(&workshop, &program, &cluster, policy);
        let mut out = BufReader::new(program.stdout.take().expect("a pipe"));
        let mut line = String::new();
        out.read_line(&mut line).expect("text");
        assert_eq!(line, "ready\n");
        let others = Others::of(&cluster, 1);
        Self {
            cluster,
            others,
            program,
            out,
        }
    }

    /// Others send until daemon 1 has counted one of these.
    fn until(&mut self, name: &str) {
        let late = Instant::now() + PATIENCE;
        while counter(&self.cluster, name) == 0 {
            assert!(Instant::now() < late, "there is never one of {name}");
            self.others.go_on(20);
        }
    }

    /// The program reads, to its end: what it says.
    fn read(mut self) -> Vec<String> {
        let mut says = self.program.stdin.take().expect("a pipe");
        says.write_all(b"\n").expect("it listens");
        let lines = self.out.lines().map(|line| line.expect("text")).collect();
        assert!(self.program.wait().expect("a child").success());
        lines
    }
}

fn start(workshop: &Workshop, program: &Path, cluster: &Cluster, policy: u32) -> Child {
    let mut command = workshop.command(program);
    command.arg(cluster.socket(1)).arg(policy.to_string());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().expect("it starts")
}

#[test]
fn a_program_in_c_that_is_made_to_skip_knows_what_it_has_missed() {
    // What the daemon does with all, and what it asked for.
    for policy in [0, 2] {
        let mut slow = Slow::new(policy);
        slow.until("clients_skipped");
        // Behind its return.
        slow.others.go_on(20);
        let sent = slow.others.said;
        slow.others.ann.send("g", b"end").expect("sent");
        let lines = slow.read();
        let is_skip = |line: &String| line.starts_with("skipped");
        let at = lines
            .iter()
            .position(is_skip)
            .expect("it is told what it has missed");
        let words: Vec<&str> = lines[at].split(' ').collect();
        let [_, missed, bytes, "g"] = words[..] else {
            panic!("{words:?}");
        };
        let missed: usize = missed.parse().expect("a number");
        assert!(missed > 0);
        assert!(bytes.parse::<usize>().expect("a number") >= missed * 1000);
        assert_eq!(lines.iter().filter(|line| *line == "lagging").count(), 1);
        let numbers = |lines: &[String]| -> Vec<usize> {
            let numbers = lines.iter().filter_map(|line| line.strip_prefix("got "));
            numbers
                .map(|number| number.parse().expect("a number"))
                .collect()
        };
        let (before, behind) = (numbers(&lines[..at]), numbers(&lines[at..]));
        assert_eq!(before, (0..before.len()).collect::<Vec<_>>());
        // What another client of the same daemon sends comes before its disconnect or after its joins.
        let first = before.len() + missed;
        assert_eq!(behind, (first..sent).collect::<Vec<_>>());
    }
}

#[test]
fn a_program_in_c_that_would_rather_be_disconnected_is() {
    let mut slow = Slow::new(1);
    slow.until("clients_slow");
    let cluster = &slow.cluster;
    assert_eq!(counter(cluster, "clients_skipped"), 0);
    let lines = slow.read();
    assert_eq!(lines.last().map(String::as_str), Some("lost"));
}

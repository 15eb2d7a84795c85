//! A process, the lines it is told, and the lines it answers.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rota_node::{NodeConfig, PaxosConfig, VoteStorage};

use super::judge::{Answer, Journals};

/// All that is asked has an answer by then, when all run.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process asks so often, at most.
const PAUSE: Duration = Duration::from_millis(10);

/// What a process is told, a line each.
pub const ARGUMENTS: &str = "ROTA_JOURNAL";

/// Nine processes: three of each partition.
pub struct Cluster {
    directory: PathBuf,
    port: u16,
    /// So many processes have an answer to everything, in the end.
    without_questions: AtomicUsize,
}

pub fn partition(node: u16) -> u16 {
    (node - 1) / 3 + 1
}

impl Cluster {
    pub fn new(directory: &Path, port: u16) -> Self {
        let mut common = NodeConfig::loopback(9, port);
        let votes = directory.join("votes");
        std::fs::create_dir(&votes).expect("it is ours");
        common.state_dir = Some(votes);
        common.paxos = Some(PaxosConfig {
            storage: VoteStorage::Async,
            // States are kept after an eighth of that.
            kept_instances: std::num::NonZeroU64::new(400),
            ..PaxosConfig::default()
        });
        let mut text = common.to_toml().expect("a configuration");
        for (ring, nodes, acceptors) in [
            (1, "1, 2, 3", "1, 2, 3"),
            (2, "4, 5, 6", "4, 5, 6"),
            (3, "7, 8, 9", "7, 8, 9"),
            (4, "1, 2, 3, 4, 5, 6, 7, 8, 9", "1, 4, 7"),
        ] {
            let offset = 20 * (ring - 1);
            let votes = "storage = \"async\"\nkept_instances = 400";
            write!(
                text,
                "\n[[ring]]\nid = {ring}\nnodes = [{nodes}]\nport_offset = {offset}\n[ring.paxos]\nacceptors = [{acceptors}]\n{votes}\n"
            )
            .expect("text");
        }
        std::fs::write(directory.join("rota.toml"), text).expect("it is ours");
        for node in 1..=9 {
            let states = directory.join(format!("states/{node}"));
            std::fs::create_dir_all(states).expect("it is ours");
        }
        Self {
            directory: directory.to_owned(),
            port,
            without_questions: AtomicUsize::new(0),
        }
    }

    fn states(&self, node: u16) -> PathBuf {
        self.directory.join(format!("states/{node}"))
    }

    /// Whether each of a node's partition has one: only then may one of them lose it.
    pub fn all_have_checkpoints(&self, node: u16) -> bool {
        let first = 3 * partition(node) - 2;
        (first..first + 3).all(|node| {
            let names = std::fs::read_dir(self.states(node)).expect("it is ours");
            let mut names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
            names.any(|name| name.ends_with(".manifest"))
        })
    }

    fn empty(&self, node: u16) {
        std::fs::remove_dir_all(self.states(node)).expect("it is ours");
        std::fs::create_dir(self.states(node)).expect("it is ours");
    }

    fn spawn(&self, node: u16) -> Child {
        let peer = |node: u16| format!("{node}=127.0.0.1:{}", self.port + 200 + node);
        let first = 3 * partition(node) - 2;
        let peers: Vec<String> = (first..first + 3).map(peer).collect();
        let said = self.directory.join(format!("said-{node}"));
        let said = std::fs::File::options()
            .create(true)
            .append(true)
            .open(said)
            .expect("it is ours");
        let text = |path: PathBuf| path.to_str().expect("ours").to_owned();
        let arguments = [
            text(self.directory.join("rota.toml")),
            node.to_string(),
            partition(node).to_string(),
            format!("{},4", partition(node)),
            text(self.states(node)),
            peers.join(","),
        ];
        Command::new(std::env::current_exe().expect("a path"))
            .args(["--exact", "a_process", "--nocapture"])
            .env(ARGUMENTS, arguments.join("\n"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(said)
            .spawn()
            .expect("it is this program")
    }
}

/// What is done to a process.
pub enum Order {
    /// It is killed, and started again after a while; `empty`: without its checkpoints.
    Kill { empty: bool, away: Duration },
}

/// A process, one life after the other.
pub struct Process<'a> {
    cluster: &'a Cluster,
    node: u16,
    child: Child,
    input: ChildStdin,
    said: Receiver<String>,
    asked: u64,
    last: Instant,
    /// What has no answer, and when it was asked.
    open: Option<(String, Instant)>,
    answers: Vec<Answer>,
}

fn begin(cluster: &Cluster, node: u16) -> (Child, ChildStdin, Receiver<String>) {
    let mut child = cluster.spawn(node);
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let (input, output) = (input.expect("a pipe"), output.expect("a pipe"));
    let (sender, said) = mpsc::channel();
    thread::spawn(move || {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        // Not what a test says of itself.
        let is_said =
            |line: &String| line.starts_with(|first: char| first == '=' || first.is_ascii_digit());
        lines.filter(is_said).try_for_each(|line| sender.send(line))
    });
    (child, input, said)
}

impl Drop for Process<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl<'a> Process<'a> {
    pub fn start(cluster: &'a Cluster, node: u16) -> Self {
        let (child, input, said) = begin(cluster, node);
        Self {
            cluster,
            node,
            child,
            input,
            said,
            asked: 0,
            last: Instant::now(),
            open: None,
            answers: Vec::new(),
        }
    }

    /// Appends lines until it is over, and is killed when that is ordered. What was answered, and all lines that it has then.
    pub fn run(mut self, orders: &Receiver<Order>, is_over: &AtomicBool) -> Journals {
        loop {
            if let Ok(order) = orders.try_recv() {
                self.kill(&order);
            } else if is_over.load(SeqCst) {
                break;
            }
            self.ask();
            self.hear(Duration::from_millis(5));
        }
        let began = Instant::now();
        while self.open.is_some() {
            assert!(began.elapsed() < PATIENCE, "no answer for {}", self.node);
            self.hear(Duration::from_millis(100));
        }
        // What others have asked may be ordered late.
        self.cluster.without_questions.fetch_add(1, SeqCst);
        while self.cluster.without_questions.load(SeqCst) < 9 {
            assert!(began.elapsed() < PATIENCE, "others have no answer");
            thread::sleep(Duration::from_millis(20));
        }
        let lines = self.settled();
        Journals {
            node: self.node,
            answers: std::mem::take(&mut self.answers),
            lines,
        }
    }

    fn kill(&mut self, order: &Order) {
        let Order::Kill { empty, away } = order;
        let _ = self.child.kill();
        let _ = self.child.wait();
        // It had answered before it was killed.
        while self.hear(Duration::from_millis(10)) {}
        self.open = None;
        if *empty {
            self.cluster.empty(self.node);
        }
        thread::sleep(*away);
        (self.child, self.input, self.said) = begin(self.cluster, self.node);
    }

    fn ask(&mut self) {
        if self.open.is_some() || self.last.elapsed() < PAUSE {
            return;
        }
        self.last = Instant::now();
        self.asked += 1;
        let ring = match self.asked % 3 {
            0 => 4,
            _ => partition(self.node),
        };
        let line = format!("{ring} {}-{}", self.node, self.asked);
        let asked = Instant::now();
        // Who has ended answers nothing.
        let _ = writeln!(self.input, "{line}");
        self.open = Some((line, asked));
    }

    /// Whether it says something.
    fn hear(&mut self, wait: Duration) -> bool {
        let said = match self.said.recv_timeout(wait) {
            Ok(said) => said,
            Err(RecvTimeoutError::Timeout) => return false,
            Err(RecvTimeoutError::Disconnected) => {
                let ended = self.child.try_wait().expect("it is ours");
                assert!(
                    ended.is_none_or(|status| status.code().is_none()),
                    "node {} has ended by itself: {ended:?}",
                    self.node
                );
                return false;
            }
        };
        let Some((number, line)) = said.split_once(' ') else {
            panic!("{said}");
        };
        let (open, asked) = self.open.take().expect("it was asked");
        assert_eq!(open, line);
        let (ring, text) = line.split_once(' ').expect("RING TEXT");
        self.answers.push(Answer {
            number: number.parse().expect("a number"),
            ring: ring.parse().expect("a number"),
            text: text.to_owned(),
            asked,
            answered: Instant::now(),
        });
        true
    }

    /// All lines, when they stay the same for a while.
    fn settled(&mut self) -> Vec<String> {
        let mut before = Vec::new();
        let mut same = 0;
        while same < 20 {
            let lines = self.dump();
            same = if lines == before { same + 1 } else { 0 };
            before = lines;
            thread::sleep(Duration::from_millis(200));
        }
        before
    }

    fn dump(&mut self) -> Vec<String> {
        writeln!(self.input, "dump").expect("it runs");
        let mut lines = BTreeMap::new();
        loop {
            let said = self.said.recv_timeout(PATIENCE).expect("it runs");
            let said = said.strip_prefix("= ").expect("a line");
            let Some((number, text)) = said.split_once(' ') else {
                return lines.into_values().collect();
            };
            let number: usize = number.parse().expect("a number");
            lines.insert(number, text.to_owned());
        }
    }
}

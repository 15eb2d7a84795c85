//! The demo's processes, as their coordinator sees them.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rota_net::monotonic;

use super::DemoError;
use super::kill::Killed;
use super::progress::Progress;
use super::talk::{Done, GO, STOP, Said, Task};

/// A run in which no node gets anywhere for so long has failed.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time that processes may take that were told to stop.
const FAREWELL: Duration = Duration::from_secs(2);
/// Time between two looks at whether anything moves.
const LOOK: Duration = Duration::from_millis(100);

/// A daemon, and a client of it.
#[derive(Debug)]
struct Node {
    /// None where the rings are in the other process.
    daemon: Option<Child>,
    child: Child,
    stdin: Option<ChildStdin>,
    ready: bool,
    done: Option<Done>,
    received: u64,
}

/// News of a node's processes.
enum Heard {
    /// A line of its client.
    Said(String),
    /// The client has ended.
    Ended,
    /// The daemon has ended, with these last words.
    DaemonEnded(String),
}

/// Running node processes. They are killed when this is dropped.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Node>,
    lines: Receiver<(usize, Heard)>,
    messages: u64,
    moved: Instant,
    /// Index of the node to kill.
    victim: Option<usize>,
    killed: Option<Killed>,
    /// The way in which its client's connection ended.
    lost: Option<String>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            drop(node.stdin.take());
            // A process that has ended needs no killing.
            let _ = node.child.kill();
            if let Some(daemon) = &mut node.daemon {
                let _ = daemon.kill();
            }
        }
        for node in &mut self.nodes {
            let _ = node.child.wait();
            if let Some(daemon) = &mut node.daemon {
                let _ = daemon.wait();
            }
        }
    }
}

impl Cluster {
    /// Starts a daemon and a client for each task.
    pub fn start(tasks: &[Task]) -> Result<Self, DemoError> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |error: std::io::Error| DemoError::Failed(format!("{what}: {error}"))
        };
        let program = std::env::current_exe().map_err(failed("cannot find this program"))?;
        let (sender, lines) = channel();
        let messages = tasks.first().map_or(0, |task| task.messages);
        let mut cluster = Self {
            nodes: Vec::new(),
            lines,
            messages,
            moved: Instant::now(),
            victim: tasks
                .first()
                .and_then(|task| task.victim)
                .map(|node| usize::from(node) - 1),
            killed: None,
            lost: None,
        };
        for (index, task) in tasks.iter().enumerate() {
            let line = serde_json::to_string(task).map_err(|error| {
                DemoError::Usage(format!("a path that is not UTF-8 cannot be used: {error}"))
            })?;
            let daemon = match task.has_rings {
                true => None,
                false => Some(daemon(&program, task, index, &sender)?),
            };
            let mut child = Command::new(&program)
                .arg("demo-node")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .map_err(failed("cannot start a process"))?;
            if let Some(stdout) = child.stdout.take() {
                forward(index, stdout, sender.clone());
            }
            let stdin = child.stdin.take();
            let node = Node {
                daemon,
                child,
                stdin,
                ready: false,
                done: None,
                received: 0,
            };
            cluster.nodes.push(node);
            cluster.tell(index, &line);
        }
        Ok(cluster)
    }

    /// Tells a node. One that cannot be told has ended, which the end of its output says.
    fn tell(&mut self, index: usize, line: &str) {
        if let Some(stdin) = &mut self.nodes[index].stdin {
            let _ = writeln!(stdin, "{line}").and_then(|()| stdin.flush());
        }
    }

    fn tell_all(&mut self, line: &str) {
        (0..self.nodes.len()).for_each(|index| self.tell(index, line));
    }

    /// Waits until every client knows of all others.
    pub fn wait_ready(&mut self) -> Result<(), DemoError> {
        while let Some(missing) = self.nodes.iter().position(|node| !node.ready) {
            self.follow(missing)?;
        }
        Ok(())
    }

    /// Lets the nodes submit, and waits until every node has everything. The one to be killed is, as
    /// soon as it says that it is midway.
    pub fn run(&mut self) -> Result<Vec<Done>, DemoError> {
        self.moved = Instant::now();
        self.tell_all(GO);
        let mut progress = Progress::new(self.messages * self.nodes.len() as u64);
        loop {
            let unfinished = self.nodes.iter().enumerate().filter(|(index, node)| {
                let lost = self.is_killed(*index) && self.lost.is_some();
                node.done.is_none() && !lost
            });
            let slowest = unfinished.min_by_key(|(_, node)| node.received);
            let Some((slowest, _)) = slowest else { break };
            self.follow(slowest)?;
            progress.show(self.nodes.iter().map(|node| node.received).sum());
        }
        Ok(self
            .nodes
            .iter_mut()
            .filter_map(|node| node.done.take())
            .collect())
    }

    /// Takes what a node says next; `slowest` is to blame if nobody gets anywhere.
    fn follow(&mut self, slowest: usize) -> Result<(), DemoError> {
        match self.lines.recv_timeout(LOOK) {
            Ok((index, Heard::Said(line))) => self.on_line(index, &line)?,
            Ok((index, _)) if self.is_killed(index) => {}
            Ok((index, Heard::Ended)) => return Err(self.ended(index)),
            Ok((index, Heard::DaemonEnded(words))) => return Err(daemon_ended(index, words)),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        if self.moved.elapsed() < PATIENCE {
            return Ok(());
        }
        let seconds = PATIENCE.as_secs();
        let what = format!(
            "nothing has moved for {seconds} s; last seen {}",
            self.seen(slowest)
        );
        Err(DemoError::Failed(format!("node {}: {what}", slowest + 1)))
    }

    fn on_line(&mut self, index: usize, line: &str) -> Result<(), DemoError> {
        let said = serde_json::from_str(line).map_err(|error| {
            DemoError::Failed(format!("node {} said `{line}`: {error}", index + 1))
        })?;
        let node = &mut self.nodes[index];
        match said {
            Said::Ready => {
                node.ready = true;
                self.moved = Instant::now();
            }
            Said::Progress { received } => {
                if received > node.received {
                    self.moved = Instant::now();
                }
                node.received = received;
            }
            Said::Midway => self.kill(index)?,
            Said::Lost { how } => {
                self.lost = Some(how);
                self.moved = Instant::now();
            }
            Said::Done(done) => {
                node.received = done.messages;
                node.done = Some(done);
                self.moved = Instant::now();
            }
            Said::Failed { what } => {
                if let Some(words) = self.words_of_daemon(index) {
                    return Err(daemon_ended(index, words));
                }
                let seen = self.seen(index);
                let is_taken = what.contains("is in use");
                let what = format!("node {}: {what} (last seen {seen})", index + 1);
                return Err(match is_taken {
                    true => DemoError::PortInUse(what),
                    false => DemoError::Failed(what),
                });
            }
        }
        Ok(())
    }

    fn is_killed(&self, index: usize) -> bool {
        self.killed.is_some() && self.victim == Some(index)
    }

    /// The killed node, and the time.
    pub const fn killed(&self) -> Option<Killed> {
        self.killed
    }

    /// The way in which its client lost its daemon.
    pub fn lost(&self) -> &str {
        self.lost.as_deref().unwrap_or_default()
    }

    /// Kills a node's daemon, as `kill -9` does.
    fn kill(&mut self, index: usize) -> Result<(), DemoError> {
        if self.victim != Some(index) {
            return Ok(());
        }
        let Some(daemon) = &mut self.nodes[index].daemon else {
            return Ok(());
        };
        let node = daemon.id();
        let at = monotonic();
        let killed = daemon.kill();
        killed
            .map_err(|error| DemoError::Failed(format!("cannot kill process {node}: {error}")))?;
        self.moved = Instant::now();
        self.killed = Some(Killed {
            node: index as u16 + 1,
            at,
        });
        Ok(())
    }

    fn ended(&mut self, index: usize) -> DemoError {
        let status = self.nodes[index].child.wait();
        let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        let seen = self.seen(index);
        let what = format!("its process has ended ({how}); last seen {seen}");
        DemoError::Failed(format!("node {}: {what}", index + 1))
    }

    fn seen(&self, index: usize) -> String {
        let received = self.nodes[index].received;
        format!("with {received} of {} messages", self.messages)
    }

    /// The last words of a daemon that has ended: its client has noticed before.
    fn words_of_daemon(&self, index: usize) -> Option<String> {
        let until = Instant::now() + LOOK;
        while let Ok((from, heard)) = self
            .lines
            .recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            match heard {
                Heard::DaemonEnded(words) if from == index => return Some(words),
                _ if Instant::now() >= until => return None,
                _ => {}
            }
        }
        None
    }

    /// Ends the clients without force, where they let that happen; the daemons after them.
    pub fn stop(mut self) {
        self.tell_all(STOP);
        let until = Instant::now() + FAREWELL;
        let running = |node: &mut Node| matches!(node.child.try_wait(), Ok(None));
        while self.nodes.iter_mut().any(running) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Starts a node's daemon.
fn daemon(
    program: &Path,
    task: &Task,
    index: usize,
    sender: &Sender<(usize, Heard)>,
) -> Result<Child, DemoError> {
    let started = Command::new(program)
        .args(["daemon", "--node", &task.node.to_string(), "--config"])
        .arg(&task.config)
        // It ends when its input does: with this process, however that ends.
        .arg("--until-input-ends")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut daemon =
        started.map_err(|error| DemoError::Failed(format!("cannot start a daemon: {error}")))?;
    if let Some(log) = daemon.stderr.take() {
        watch(index, log, sender.clone());
    }
    Ok(daemon)
}

/// A daemon that ends by itself says why. Another program may have one of its ports.
fn daemon_ended(index: usize, words: String) -> DemoError {
    let what = format!("node {}: its daemon has ended: {words}", index + 1);
    if words.contains("is in use") {
        DemoError::PortInUse(what)
    } else {
        DemoError::Failed(what)
    }
}

/// Keeps the last line of a daemon's log until it ends.
fn watch(index: usize, log: ChildStderr, to: Sender<(usize, Heard)>) {
    std::thread::spawn(move || {
        let lines = BufReader::new(log).lines().map_while(Result::ok);
        let last = lines.last().unwrap_or_default();
        // Nobody listens any more when the run is over.
        let _ = to.send((index, Heard::DaemonEnded(last)));
    });
}

/// Hands on the lines of a client, and that it has ended.
fn forward(index: usize, stdout: ChildStdout, to: Sender<(usize, Heard)>) {
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if to.send((index, Heard::Said(line))).is_err() {
                return;
            }
        }
        // Nobody listens any more when the run is over.
        let _ = to.send((index, Heard::Ended));
    });
}

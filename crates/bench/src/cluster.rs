//! The coordinator's side of a run: starts a process for each node, talks to it in lines of JSON,
//! and never leaves one behind.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::BenchError;
use crate::testbed::Testbed;

/// The words of a node to the coordinator.
#[derive(Debug, serde::Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Said<T> {
    /// Ready to start.
    Ready,
    /// Its part is done.
    Done(T),
    /// It cannot go on.
    Failed(String),
}

/// Running node processes. They are killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Cluster {
    children: Vec<(Child, Option<ChildStdin>)>,
    /// Nodes that were killed on purpose, by index: they have no result.
    killed: BTreeSet<usize>,
    lines: Receiver<(usize, Option<String>)>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for (child, stdin) in &mut self.children {
            // The closed input tells a process behind `ip netns exec` to end as well.
            drop(stdin.take());
            let _ = child.kill();
        }
        for (child, _) in &mut self.children {
            let _ = child.wait();
        }
    }
}

impl Cluster {
    /// Starts one process for each of `specs`, with it as the first line of its input.
    pub(crate) fn start<S: Serialize>(
        testbed: &Testbed,
        subcommand: &str,
        specs: &[S],
    ) -> Result<Self, BenchError> {
        let (sender, lines) = channel();
        let mut cluster = Self {
            children: Vec::new(),
            killed: BTreeSet::new(),
            lines,
        };
        for (index, spec) in specs.iter().enumerate() {
            let mut child = testbed
                .command(index + 1, subcommand)?
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .map_err(BenchError::io("cannot start a node's process"))?;
            if let Some(stdout) = child.stdout.take() {
                forward(index, stdout, sender.clone());
            }
            let stdin = child.stdin.take();
            cluster.children.push((child, stdin));
            let line = serde_json::to_string(spec).map_err(|error| BenchError::Node {
                node: index + 1,
                what: format!("its task cannot be written: {error}"),
            })?;
            cluster.tell(index, &line)?;
        }
        Ok(cluster)
    }

    fn tell(&mut self, index: usize, line: &str) -> Result<(), BenchError> {
        let Some((_, Some(stdin))) = self.children.get_mut(index) else {
            return Ok(());
        };
        writeln!(stdin, "{line}")
            .and_then(|()| stdin.flush())
            .map_err(|error| BenchError::Node {
                node: index + 1,
                what: format!("its process has ended: {error}"),
            })
    }

    /// Sends a line to every node.
    pub(crate) fn tell_all(&mut self, line: &str) -> Result<(), BenchError> {
        (0..self.children.len()).try_for_each(|index| self.tell(index, line))
    }

    /// Kills the process of a node, from 1: it has no result.
    pub(crate) fn kill(&mut self, node: usize) -> Result<(), BenchError> {
        self.killed.insert(node - 1);
        self.signal(node, Signal::KILL)
    }

    /// Sends a signal to the process of a node, from 1.
    pub(crate) fn signal(&self, node: usize, signal: Signal) -> Result<(), BenchError> {
        let failed = |what: String| BenchError::Node { node, what };
        let child = self.children.get(node - 1).map(|(child, _)| child);
        let pid = child.and_then(|child| Pid::from_raw(child.id() as i32));
        let pid = pid.ok_or_else(|| failed("there is no such node".to_owned()))?;
        kill_process(pid, signal).map_err(|error| failed(format!("no signal: {error}")))
    }

    /// Waits until every node is ready.
    pub(crate) fn wait_ready(&mut self, patience: Duration) -> Result<(), BenchError> {
        self.gather::<serde_json::Value>(patience, true).map(drop)
    }

    /// Waits for the result of every node that was not killed, in the order of the nodes.
    pub(crate) fn results<T: DeserializeOwned>(
        &mut self,
        patience: Duration,
    ) -> Result<Vec<T>, BenchError> {
        self.gather(patience, false)
    }

    fn gather<T: DeserializeOwned>(
        &mut self,
        patience: Duration,
        ready: bool,
    ) -> Result<Vec<T>, BenchError> {
        let until = Instant::now() + patience;
        let mut answered: Vec<bool> = (0..self.children.len())
            .map(|index| self.killed.contains(&index))
            .collect();
        let mut results: Vec<Option<T>> = answered.iter().map(|_| None).collect();
        while let Some(silent) = answered.iter().position(|done| !done) {
            let left = until.saturating_duration_since(Instant::now());
            let Ok((index, line)) = self.lines.recv_timeout(left) else {
                let what = if ready { "not ready" } else { "no result" };
                let what = format!("{what} after {} s", patience.as_secs_f32());
                return Err(BenchError::Node {
                    node: silent + 1,
                    what,
                });
            };
            let failed = |what: String| BenchError::Node {
                node: index + 1,
                what,
            };
            if answered[index] && !ready && (line.is_none() || self.killed.contains(&index)) {
                continue;
            }
            let line = line.ok_or_else(|| failed("its process has ended early".into()))?;
            match serde_json::from_str::<Said<T>>(&line) {
                Ok(Said::Ready) if ready => answered[index] = true,
                Ok(Said::Done(result)) if !ready => {
                    answered[index] = true;
                    results[index] = Some(result);
                }
                Ok(Said::Failed(what)) => return Err(failed(what)),
                Ok(_) => return Err(failed(format!("said out of turn: {line}"))),
                Err(error) => return Err(failed(format!("said `{line}`: {error}"))),
            }
        }
        Ok(results.into_iter().flatten().collect())
    }
}

/// Hands on the lines of a process, then `None`.
fn forward(
    index: usize,
    stdout: impl std::io::Read + Send + 'static,
    to: Sender<(usize, Option<String>)>,
) {
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if to.send((index, Some(line))).is_err() {
                return;
            }
        }
        let _ = to.send((index, None));
    });
}

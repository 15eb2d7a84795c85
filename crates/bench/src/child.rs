//! A node's side of the talk with its coordinator.

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cluster::Said;
use crate::error::BenchError;

/// The coordinator, as a node sees it.
#[derive(Debug)]
pub(crate) struct Coordinator {
    lines: Receiver<String>,
}

/// Longest time between two lines of the coordinator that a node waits for.
const PATIENCE: Duration = Duration::from_secs(120);

impl Coordinator {
    /// Starts to listen. When the input ends, the coordinator is gone and the process ends with it.
    fn connect() -> Self {
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
            std::process::exit(3);
        });
        Self { lines }
    }

    fn line(&self) -> Result<String, BenchError> {
        self.lines.recv_timeout(PATIENCE).map_err(|_| {
            BenchError::Usage("the coordinator says nothing; `rota bench` starts this".into())
        })
    }

    /// Says that this node is ready, and waits for the common start time.
    pub(crate) fn ready(&self) -> Result<u64, BenchError> {
        self.say_ready();
        start_time(&self.line()?)
    }

    /// Says that this node is ready.
    pub(crate) fn say_ready(&self) {
        say(&Said::<()>::Ready);
    }

    /// The common start time, if it is known by now.
    pub(crate) fn go(&self) -> Result<Option<u64>, BenchError> {
        self.lines
            .try_recv()
            .ok()
            .map(|line| start_time(&line))
            .transpose()
    }
}

fn start_time(line: &str) -> Result<u64, BenchError> {
    line.strip_prefix("go ")
        .and_then(|at| at.parse().ok())
        .ok_or_else(|| BenchError::Usage(format!("expected `go TIME`, not `{line}`")))
}

fn say<T: Serialize>(said: &Said<T>) {
    if let Ok(line) = serde_json::to_string(said) {
        let mut out = std::io::stdout().lock();
        // A coordinator that is gone needs no answer.
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}

/// Reads the task, does `work`, and reports its result.
pub(crate) fn run<S, T>(work: impl FnOnce(S, &Coordinator) -> Result<T, BenchError>) -> ExitCode
where
    S: DeserializeOwned,
    T: Serialize,
{
    let coordinator = Coordinator::connect();
    let task = coordinator.line().and_then(|line| {
        serde_json::from_str(&line).map_err(|error| BenchError::Usage(format!("no task: {error}")))
    });
    match task.and_then(|task| work(task, &coordinator)) {
        Ok(result) => {
            say(&Said::Done(result));
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(&Said::<()>::Failed(error.to_string()));
            ExitCode::FAILURE
        }
    }
}

//! The processes of a service, all of them on this host.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rota_resp::Reply;

use super::talk::RpcConnection;

/// Everything is there by then.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// The service.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    /// The command that runs one of its processes.
    pub name: &'static str,
    /// The command that a process answers without an error once it serves clients.
    pub asks: &'static [&'static str],
    /// The number of processes, one behind the other, that have the same.
    pub replicas: usize,
}

/// A process.
#[derive(Clone, Debug)]
pub struct One {
    /// The address at which its clients connect.
    pub address: SocketAddr,
    /// The directory of its states.
    pub states: PathBuf,
}

/// The processes. They are killed when this is dropped.
pub struct Processes {
    service: Service,
    file: PathBuf,
    all: Vec<One>,
    children: Vec<Option<Child>>,
}

impl Drop for Processes {
    fn drop(&mut self) {
        for child in self.children.iter_mut().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Processes {
    /// Starts all of them, with this configuration file, and waits until they serve clients.
    pub fn start(service: Service, file: PathBuf, all: Vec<One>) -> Result<Self, String> {
        let count = all.len();
        let mut processes = Self {
            service,
            file,
            children: all.iter().map(|_| None).collect(),
            all,
        };
        (0..count).try_for_each(|at| processes.begin(at))?;
        (0..count).try_for_each(|at| processes.wait(at))?;
        Ok(processes)
    }

    /// The number of processes.
    pub fn count(&self) -> usize {
        self.children.len()
    }

    /// The number of processes that have the same.
    pub const fn replicas(&self) -> usize {
        self.service.replicas
    }

    /// The directory of the states of one process.
    pub fn states(&self, at: usize) -> &Path {
        &self.all[at].states
    }

    /// The addresses at which clients connect.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.all.iter().map(|one| one.address).collect()
    }

    /// Starts one.
    pub fn begin(&mut self, at: usize) -> Result<(), String> {
        let failed = |error: io::Error| format!("cannot start a process: {error}");
        let program = std::env::current_exe().map_err(failed)?;
        let log = self.file.with_file_name(format!("node-{}.log", at + 1));
        let log = fs::OpenOptions::new().create(true).append(true).open(log);
        let child = Command::new(program)
            .args([self.service.name, "serve", "--until-input-ends", "--config"])
            .arg(&self.file)
            .args(["--node", &(at + 1).to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log.map_err(failed)?)
            // Signals of a terminal to the demo do not reach the processes.
            .process_group(0)
            .spawn();
        self.children[at] = Some(child.map_err(failed)?);
        Ok(())
    }

    /// Kills one.
    pub fn kill(&mut self, at: usize) {
        if let Some(mut child) = self.children[at].take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Their numbers, of those that run.
    pub fn ids(&self) -> Vec<u32> {
        self.children.iter().flatten().map(Child::id).collect()
    }

    /// The answers of one process.
    pub fn ask(&self, at: usize, commands: &[Vec<&str>]) -> Result<Vec<Reply>, String> {
        let address = self.all[at].address;
        let talk = RpcConnection::connect(address, PATIENCE);
        let replies = talk.and_then(|mut talk| talk.say(commands));
        replies.map_err(|error| format!("{address}: {error}"))
    }

    /// Until a process serves clients.
    pub fn wait(&mut self, at: usize) -> Result<(), String> {
        let began = Instant::now();
        loop {
            let replies = self.ask(at, &[self.service.asks.to_vec()]);
            let is_there = |reply: &Reply| !reply.is_error();
            if replies.is_ok_and(|replies| replies.first().is_some_and(is_there)) {
                return Ok(());
            }
            if let Some(Ok(Some(status))) = self.children[at].as_mut().map(Child::try_wait) {
                return Err(format!(
                    "process {} has ended: {status}; {}",
                    at + 1,
                    self.words(at)
                ));
            }
            if began.elapsed() > PATIENCE {
                return Err(format!(
                    "process {} does not answer; {}",
                    at + 1,
                    self.words(at)
                ));
            }
            thread::sleep(LOOK);
        }
    }

    /// Its last words.
    fn words(&self, at: usize) -> String {
        let log = self.file.with_file_name(format!("node-{}.log", at + 1));
        let text = fs::read_to_string(log).unwrap_or_default();
        let last = text.lines().last().unwrap_or("it has said nothing");
        format!("its last words: {last}")
    }
}

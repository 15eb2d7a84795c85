//! A node of the benchmark in daemon mode: a daemon, and a client of it that has the load.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rota_client::{Cause, Client, Envelope, Event, GroupName, PrivateName, View};
use rota_core::contract::{NodeId, Service, Time};
use rota_node::App;
use serde::Deserialize;
use tempfile::TempDir;

use super::load::{LoadApp, Span};
use super::node::{FORM_NS, Look, Measured, Running, Task, coordinates, measured};
use crate::above_client::{ToGroup, configuration_by, message_of, node_of};
use crate::child::Coordinator;
use crate::clock::{now_ns, process_cpu_ns, process_cpu_ns_of, sleep_until};
use crate::error::BenchError;

/// The group in which all clients meet.
const GROUP: &str = "bench";
/// Between two tries to reach a daemon that has just been started.
const TRY_NS: u64 = 20_000_000;
/// Events taken before the load has its turn again.
const EVENTS_AT_ONCE: usize = 4096;

/// A daemon of this node's own.
struct Daemon {
    process: Child,
    dir: TempDir,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The parts of a daemon's status that matter here.
#[derive(Debug, Deserialize)]
struct Status {
    ring: String,
    counters: BTreeMap<String, u64>,
}

impl Daemon {
    fn start(task: &Task) -> Result<Self, String> {
        let dir = tempfile::tempdir().map_err(|error| format!("no directory: {error}"))?;
        let mut config = task.config.clone();
        let mut section = toml::Table::new();
        let mut set = |name: &str, path: PathBuf| {
            section.insert(name.to_owned(), path.display().to_string().into());
        };
        set("socket", dir.path().join("socket"));
        set("admin", dir.path().join("admin"));
        section.insert("client_queue_bytes".to_owned(), (256_i64 << 20).into());
        config.daemon = Some(section);
        let path = dir.path().join("rota.toml");
        let text = config.to_toml().map_err(|error| error.to_string())?;
        fs::write(&path, text).map_err(|error| error.to_string())?;
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let process = Command::new(program)
            .args(["daemon", "--node", &task.node.to_string(), "--config"])
            .arg(path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let process = process.map_err(|error| format!("cannot start a daemon: {error}"))?;
        Ok(Self { process, dir })
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("socket")
    }

    fn cpu_ns(&self) -> u64 {
        process_cpu_ns_of(self.process.id())
    }

    fn status(&self) -> Result<Status, String> {
        let asked = UnixStream::connect(self.dir.path().join("admin"));
        let mut line = String::new();
        let mut stream = asked.map_err(|error| format!("no status: {error}"))?;
        let read = stream.read_to_string(&mut line);
        read.map_err(|error| format!("no status: {error}"))?;
        serde_json::from_str(&line).map_err(|error| format!("no status: {error}"))
    }
}

/// The daemon that serves this node's client.
enum Served {
    /// One of its own.
    Own(Daemon),
    /// One of a cluster that runs already: nothing but the load is known of it.
    Running(Running),
}

impl Served {
    fn start(task: &Task) -> Result<Self, String> {
        match &task.running {
            Some(running) => Ok(Self::Running(running.clone())),
            None => Daemon::start(task).map(Self::Own),
        }
    }

    fn address(&self) -> String {
        match self {
            Self::Own(daemon) => daemon.socket().display().to_string(),
            Self::Running(running) => running.address.clone(),
        }
    }

    fn group(&self) -> &str {
        match self {
            Self::Own(_) => GROUP,
            Self::Running(running) => &running.group,
        }
    }

    fn cpu_ns(&self) -> u64 {
        match self {
            Self::Own(daemon) => daemon.cpu_ns(),
            Self::Running(_) => 0,
        }
    }

    fn status(&self) -> Result<Status, String> {
        match self {
            Self::Own(daemon) => daemon.status(),
            Self::Running(running) => Ok(Status {
                ring: format!("a client of {}", running.address),
                counters: BTreeMap::new(),
            }),
        }
    }
}

/// The load above a client, instead of above a ring.
struct Load {
    client: Client,
    app: LoadApp,
    group: Envelope,
    nodes: usize,
    /// With daemons of a running cluster, which have names of their own: the clients, in the order of their numbers.
    peers: Option<Vec<PrivateName>>,
}

impl Load {
    fn connect(daemon: &Served, task: &Task) -> Result<Self, String> {
        let service = task.service.into();
        let until = now_ns() + FORM_NS;
        let address = daemon.address();
        let mut client = loop {
            match connect(&address, task, service) {
                Ok(client) => break client,
                Err(error) if now_ns() > until => return Err(error),
                Err(_) => sleep_until(now_ns() + TRY_NS),
            }
        };
        client
            .join(daemon.group())
            .map_err(|error| error.to_string())?;
        let nodes = task.config.nodes.len();
        let app = LoadApp::new(task, task.plan.clone());
        let group = GroupName::new(daemon.group()).map_err(|error| error.to_string())?;
        Ok(Self {
            client,
            app,
            group: Envelope::from(rota_client::Destination::from(group)),
            nodes,
            peers: task.running.is_some().then(Vec::new),
        })
    }

    fn deliver(&mut self, event: Event) {
        match event {
            Event::Message(message) => {
                let number = message
                    .payload
                    .get(12..16)
                    .and_then(|bytes| bytes.try_into().ok());
                let (Some(node), Some(number)) = (self.number(&message.sender), number) else {
                    self.app.record.garbled += 1;
                    return;
                };
                let counter = u64::from(u32::from_le_bytes(number)) + 1;
                self.app.deliver(message_of(node, counter, message));
            }
            // A client that is done before others goes, and the ring stays as it is.
            Event::View(view) if matches!(view.cause, Cause::Leave(_) | Cause::Disconnect(_)) => {}
            Event::View(view) => self.on_view(&view),
            _ => {}
        }
    }

    /// The number of a client: its daemon's, or its place among all that have met.
    fn number(&self, name: &PrivateName) -> Option<NodeId> {
        match &self.peers {
            None => node_of(name),
            Some(peers) => {
                let at = peers.iter().position(|peer| peer == name)?;
                NodeId::new(at as u16 + 1)
            }
        }
    }

    fn on_view(&mut self, view: &View) {
        if let Some(peers) = self.peers.as_mut().filter(|_| !self.app.formed) {
            // Members come in the same order to all, so that all number them alike.
            peers.clone_from(&view.members);
            if let Some(me) = self.number(&self.client.name()) {
                self.app.renumber(me.get());
            }
        }
        let configuration = configuration_by(view, |name| self.number(name));
        self.app.deliver(configuration);
    }

    /// One turn: submits what is due, and takes what has come, or waits for it so long at most.
    fn turn(&mut self, limit_ns: u64) -> Result<(), String> {
        let lost = |error: rota_client::ConnectionLost| error.to_string();
        let now = Time(now_ns());
        let Self {
            client, app, group, ..
        } = self;
        app.fill(now, &mut ToGroup { client, group });
        client.flush().map_err(lost)?;
        let wake = app.next_wake().map_or(u64::MAX, |at| at.since(now));
        let wait = Duration::from_nanos(limit_ns.min(wake));
        let mut next = client.recv_timeout(wait).map_err(lost)?;
        for _ in 0..EVENTS_AT_ONCE {
            let Some(event) = next else { break };
            self.deliver(event);
            next = self.client.next_read().map_err(lost)?;
        }
        if let Some(event) = next {
            self.deliver(event);
        }
        self.app.flush();
        Ok(())
    }

    fn turn_until(&mut self, until: u64) -> Result<(), String> {
        loop {
            let left = until.saturating_sub(now_ns());
            if left == 0 || self.app.refused.is_some() {
                return Ok(());
            }
            self.turn(left)?;
        }
    }

    fn form(&mut self, daemon: &Served) -> Result<(), String> {
        let until = now_ns() + FORM_NS;
        while !self.app.formed {
            if now_ns() > until {
                let ring = daemon
                    .status()
                    .map_or_else(|error| error, |status| status.ring);
                return Err(format!("not all {} clients met: {ring}", self.nodes));
            }
            self.turn(TRY_NS)?;
        }
        // Earlier configurations do not count.
        self.app.reconfigurations = 0;
        Ok(())
    }

    fn look(&self, daemon: &Served, node: u16) -> Result<Look, String> {
        let status = daemon.status()?;
        Ok(Look {
            at: now_ns(),
            cpu: daemon.cpu_ns(),
            client_cpu: process_cpu_ns(),
            delivered: self.app.record.delivered,
            submitted: self.app.submitted,
            counters: status.counters,
            coordinates: coordinates(&status.ring, node),
        })
    }
}

fn connect(address: &str, task: &Task, service: Service) -> Result<Client, String> {
    // Several clients may be at one daemon of a running cluster.
    let name = match task.running {
        Some(_) => format!("load{}", task.node),
        None => "load".to_owned(),
    };
    let builder = Client::builder().name(name).membership(true);
    let connected = builder.service(service).connect(address);
    connected.map_err(|error| error.to_string())
}

pub(super) fn work(task: &Task, coordinator: &Coordinator) -> Result<Measured, BenchError> {
    let failed = |what: String| BenchError::Node {
        node: usize::from(task.node),
        what,
    };
    let daemon = Served::start(task).map_err(failed)?;
    let mut load = Load::connect(&daemon, task).map_err(failed)?;
    load.form(&daemon).map_err(failed)?;
    let start = coordinator.ready()?;
    let from = start + task.warm_up_ns;
    let span = Span {
        start,
        from,
        until: from + task.duration_ns,
    };
    load.app.begin(span);
    load.turn_until(span.from).map_err(failed)?;
    let before = load.look(&daemon, task.node).map_err(failed)?;
    load.turn_until(span.until).map_err(failed)?;
    let after = load.look(&daemon, task.node).map_err(failed)?;
    load.turn_until(span.until + task.drain_ns)
        .map_err(failed)?;
    if let Some(error) = load.app.refused {
        return Err(failed(format!("a message was refused: {error}")));
    }
    Ok(measured(load.app, &before, &after))
}

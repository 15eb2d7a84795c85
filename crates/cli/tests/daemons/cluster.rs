//! Daemons of one cluster, each a process.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use rota_net::{KeyRing, Transport, probe_multicast, random_u64};
use rota_node::{EngineName, NodeConfig, PaxosConfig, PrimaryName, TimingName, VoteStorage};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Ports of one cluster.
const PORTS: u16 = 16;

/// One cluster after the other takes its ports: those of this process do not choose the same.
static STARTING: Mutex<()> = Mutex::new(());

/// The first of some ports that nobody has, below those that the system hands out by itself.
fn free_ports() -> u16 {
    let is_free = |port: u16| UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    let base = || 12_000 + (random_u64().expect("random numbers") % 1200) as u16 * PORTS;
    let mut bases = std::iter::repeat_with(base);
    let free = bases.find(|base| (*base..base + PORTS).all(is_free));
    free.expect("there is always another try")
}

/// A configuration on this host: nodes `n1`, `n2` and so on, at ports that nobody has, and these sections.
pub fn config(nodes: u16, sections: &str) -> String {
    changed_config(nodes, sections, |_| ())
}

/// The same, changed.
pub fn changed_config(nodes: u16, sections: &str, change: impl FnOnce(&mut NodeConfig)) -> String {
    let mut config = NodeConfig::loopback(nodes, free_ports());
    change(&mut config);
    if probe_multicast(Ipv4Addr::LOCALHOST.into()).is_err() {
        config.transport = Transport::Unicast;
    }
    for node in &mut config.nodes {
        node.name = Some(format!("n{}", node.id));
    }
    let text = config.to_toml().expect("TOML");
    format!("{text}\n{sections}\n")
}

/// The same configuration, sealed with this key.
pub fn with_key(config: &str, key: &Path) -> String {
    let key = format!("key_file = \"{}\"", key.display());
    let text = config.replace("insecure = true", &key);
    assert!(text.contains(&key), "{config}");
    text
}

/// Daemons `n1`, `n2` and so on, with a directory for their sockets.
pub struct Cluster {
    dir: TempDir,
    /// Most descriptors of each.
    descriptors: Option<u32>,
    daemons: Vec<Child>,
    /// What they have said.
    log: Arc<Mutex<Vec<String>>>,
}

impl Cluster {
    /// Starts so many daemons; `settings` go into the section `[daemon]` of their configuration.
    pub fn start(nodes: u16, settings: &str) -> Self {
        Self::with(nodes, |_, _| (), (settings, ""), None)
    }

    /// The same, with these settings for Spread's clients.
    pub fn with_spread(nodes: u16, settings: &str, spread: &str) -> Self {
        Self::with(nodes, |_, _| (), (settings, spread), None)
    }

    /// The same, for tests that need all processors and a ring that lasts.
    pub fn patient(nodes: u16, settings: &str) -> Self {
        let relax = |config: &mut NodeConfig, _: &Path| config.timing = TimingName::Relaxed;
        Self::with(nodes, relax, (settings, ""), None)
    }

    /// The same, on a ring that orders little: a small packet in each round.
    pub fn narrow(nodes: u16, settings: &str) -> Self {
        let narrow = |config: &mut NodeConfig, _: &Path| {
            config.personal_window = Some(1);
            config.global_window = Some(u32::from(nodes));
            config.datagram_bytes = Some(1400);
        };
        Self::with(nodes, narrow, (settings, ""), None)
    }

    /// The same, which write down what happens.
    pub fn traced(nodes: u16, settings: &str) -> Self {
        let trace = |config: &mut NodeConfig, dir: &Path| {
            config.trace = Some(dir.join("{node}.jsonl"));
        };
        Self::with(nodes, trace, (settings, ""), None)
    }

    /// The same, with a file for that which takes nothing.
    pub fn traced_nowhere(nodes: u16) -> Self {
        let trace = |config: &mut NodeConfig, _: &Path| {
            config.trace = Some("/dev/full".into());
        };
        Self::with(nodes, trace, ("", ""), None)
    }

    /// The same, with this engine.
    pub fn over(nodes: u16, engine: EngineName) -> Self {
        let over = |config: &mut NodeConfig, dir: &Path| {
            config.engine = engine;
            config.primary = PrimaryName::Static;
            config.timing = TimingName::Relaxed;
            config.trace = Some(dir.join("{node}.jsonl"));
        };
        Self::with(nodes, over, ("", ""), None)
    }

    /// The same, with an engine that votes, in memory.
    pub fn voting(nodes: u16, engine: EngineName) -> Self {
        let voting = |config: &mut NodeConfig, dir: &Path| {
            config.engine = engine;
            config.trace = Some(dir.join("{node}.jsonl"));
            config.timing = TimingName::Relaxed;
            config.paxos = Some(PaxosConfig {
                storage: VoteStorage::Memory,
                ..PaxosConfig::default()
            });
        };
        Self::with(nodes, voting, ("", ""), None)
    }

    /// The same, with datagrams sealed by the keys in the file `cluster.key`.
    pub fn sealed(nodes: u16) -> Self {
        let seal = |config: &mut NodeConfig, dir: &Path| {
            let key = dir.join("cluster.key");
            let made = KeyRing::generate().and_then(|ring| ring.create(&key));
            made.expect("a key file");
            config.insecure = false;
            config.key_file = Some(key);
        };
        Self::with(nodes, seal, ("", ""), None)
    }

    /// The same, changed as wanted, with a directory for what each keeps.
    pub fn keeping(nodes: u16, change: impl FnOnce(&mut NodeConfig, &Path)) -> Self {
        let keep = |config: &mut NodeConfig, dir: &Path| {
            let state = dir.join("state");
            std::fs::create_dir(&state).expect("a directory");
            config.state_dir = Some(state);
            change(config, dir);
        };
        Self::with(nodes, keep, ("", ""), None)
    }

    /// The same, with at most so many descriptors each.
    pub fn limited(nodes: u16, settings: &str, descriptors: Option<u32>) -> Self {
        Self::with(nodes, |_, _| (), (settings, ""), descriptors)
    }

    fn with(
        nodes: u16,
        change: impl FnOnce(&mut NodeConfig, &Path),
        (settings, spread): (&str, &str),
        descriptors: Option<u32>,
    ) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let starting = STARTING
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let path = dir.path().join("rota.toml");
        let sockets = dir.path().display();
        let section = format!(
            "[daemon]\nsocket = \"{sockets}/{{node}}.sock\"\nadmin = \"{sockets}/{{node}}.admin\"\n\
             {settings}\n[daemon.spread]\nsocket = \"{sockets}/{{node}}.spread\"\n{spread}\n"
        );
        let text = changed_config(nodes, &section, |config| change(config, dir.path()));
        std::fs::write(&path, text).expect("a file");
        let mut cluster = Self {
            dir,
            descriptors,
            daemons: Vec::new(),
            log: Arc::default(),
        };
        for id in 1..=nodes {
            let daemon = cluster.spawn(id);
            cluster.daemons.push(daemon);
        }
        drop(starting);
        cluster
    }

    /// Starts a daemon, and waits until clients can connect.
    fn spawn(&self, id: u16) -> Child {
        let limit = self
            .descriptors
            .map_or_else(String::new, |most| format!("ulimit -n {most} && "));
        // Figures are those of an optimised one.
        let binary = std::env::var_os("ROTA_BINARY");
        let binary = binary.unwrap_or_else(|| env!("CARGO_BIN_EXE_rota").into());
        let mut daemon = Command::new("sh")
            .args(["-c", &format!("{limit}exec \"$0\" \"$@\"")])
            .arg(binary)
            .args(["daemon", "--node", &id.to_string(), "--config"])
            .arg(self.file_of(id))
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary");
        let log = daemon.stderr.take().expect("a pipe");
        let mut lines = BufReader::new(log).lines().map_while(Result::ok);
        let started = lines.find(|line| line.contains("a daemon has started"));
        assert!(started.is_some(), "daemon {id} did not start");
        // Its log must not fill the pipe; what it says is shown where a test fails.
        let log = Arc::clone(&self.log);
        thread::spawn(move || {
            for line in lines {
                println!("{id}: {line}");
                log.lock().expect("no panic").push(line);
            }
        });
        daemon
    }

    /// How many lines of the log, of all daemons so far, have this text.
    pub fn said(&self, text: &str) -> usize {
        let log = self.log.lock().expect("no panic");
        log.iter().filter(|line| line.contains(text)).count()
    }

    /// The configuration of daemon `id`: its own, if it has been given one.
    pub fn file_of(&self, id: u16) -> PathBuf {
        let own = self.dir.path().join(format!("rota-{id}.toml"));
        if own.exists() {
            own
        } else {
            self.dir.path().join("rota.toml")
        }
    }

    /// Starts daemon `id` again, with a configuration of its own: the common one, changed.
    pub fn restart_with(&mut self, id: u16, change: impl FnOnce(String) -> String) {
        let common = std::fs::read_to_string(self.dir.path().join("rota.toml")).expect("a file");
        let own = self.dir.path().join(format!("rota-{id}.toml"));
        std::fs::write(own, change(common)).expect("a file");
        self.restart(id);
    }

    /// Gives daemon `id` a configuration of its own, which it starts with the next time: the common one, with these
    /// changes.
    pub fn give(&self, id: u16, change: impl FnOnce(&mut NodeConfig)) {
        let common = self.dir.path().join("rota.toml");
        let mut config = NodeConfig::load(&common).expect("the common one");
        change(&mut config);
        let text = config.to_toml().expect("TOML");
        let own = self.dir.path().join(format!("rota-{id}.toml"));
        std::fs::write(own, text).expect("a file");
    }

    /// Starts the next daemon, which there was none of before.
    pub fn start_next(&mut self) {
        let id = self.daemons.len() as u16 + 1;
        let daemon = self.spawn(id);
        self.daemons.push(daemon);
    }

    /// Waits until daemon `id` has ended by itself.
    pub fn await_end(&mut self, id: u16) -> ExitStatus {
        let daemon = &mut self.daemons[usize::from(id) - 1];
        daemon.wait().expect("it is a child")
    }

    /// Tells daemon `id` to read its keys again.
    pub fn hang_up(&self, id: u16) {
        let daemon = &self.daemons[usize::from(id) - 1];
        kill_process(Pid::from_child(daemon), Signal::HUP).expect("it runs");
    }

    /// Where the sockets are, and `rota.toml`.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The socket for clients of daemon `id`.
    pub fn socket(&self, id: u16) -> PathBuf {
        self.dir.path().join(format!("{id}.sock"))
    }

    /// The socket at which daemon `id` says how it is.
    pub fn admin(&self, id: u16) -> PathBuf {
        self.dir.path().join(format!("{id}.admin"))
    }

    /// The socket for Spread's clients of daemon `id`.
    pub fn spread(&self, id: u16) -> PathBuf {
        self.dir.path().join(format!("{id}.spread"))
    }

    /// The process of daemon `id`.
    pub fn pid(&self, id: u16) -> u32 {
        self.daemons[usize::from(id) - 1].id()
    }

    /// Starts daemon `id`, which has ended, again.
    pub fn restart(&mut self, id: u16) {
        let place = usize::from(id) - 1;
        self.kill(id);
        self.daemons[place] = self.spawn(id);
    }

    /// Tells daemon `id` to stop, and waits until it has.
    pub fn terminate(&mut self, id: u16) -> ExitStatus {
        let daemon = &mut self.daemons[usize::from(id) - 1];
        kill_process(Pid::from_child(daemon), Signal::TERM).expect("it runs");
        daemon.wait().expect("it is a child")
    }

    /// Kills daemon `id`.
    pub fn kill(&mut self, id: u16) {
        let daemon = &mut self.daemons[usize::from(id) - 1];
        let _ = daemon.kill();
        let _ = daemon.wait();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

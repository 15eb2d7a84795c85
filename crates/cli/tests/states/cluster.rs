//! Three daemons of one engine, each in a network namespace of its own, and all that can be done to them.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rota_bench::Testbed;
use rota_net::{FaultConfig, KeyRing, NodeAddress, Transport};
use rota_node::{EngineName, NodeConfig, PaxosConfig, PrimaryName, TimingName, VoteStorage};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::load::Load;

/// Nodes of each cluster.
pub const NODES: u16 = 3;
/// Where each daemon serves its metrics, in its own namespace.
const METRICS: u16 = 9464;
/// See the module.
pub struct Cluster<'a> {
    bed: &'a Testbed,
    pub engine: EngineName,
    index: usize,
    dir: TempDir,
    children: Vec<Option<Child>>,
    log: Arc<Mutex<Vec<String>>>,
    loads: Vec<Load>,
    /// Who is started has a disk without room.
    pub disk_is_full: bool,
    /// Processes that make somebody ill.
    pub helpers: Vec<Child>,
}

impl<'a> Cluster<'a> {
    /// The daemons of one engine, all started, at the places of the bed that are this cluster's.
    pub fn start(bed: &'a Testbed, index: usize, engine: EngineName) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let key = KeyRing::generate().and_then(|ring| ring.create(&dir.path().join("cluster.key")));
        key.expect("a key file");
        let mut cluster = Self {
            bed,
            engine,
            index,
            dir,
            children: (0..NODES).map(|_| None).collect(),
            log: Arc::default(),
            loads: Vec::new(),
            disk_is_full: false,
            helpers: Vec::new(),
        };
        cluster.make_clocks();
        let all = cluster.text(&cluster.config(1), "{node}");
        fs::write(cluster.dir.path().join("rota.toml"), all).expect("a file");
        for node in 1..=NODES {
            cluster.start_with(node, |_| ());
        }
        let sockets = (1..=NODES).map(|node| cluster.path(&format!("{node}.sock")));
        cluster.loads = sockets.map(|socket| Load::at(&socket)).collect();
        cluster
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Its place in the bed.
    pub fn place(&self, node: u16) -> usize {
        self.index * usize::from(NODES) + usize::from(node)
    }

    pub fn address(&self, node: u16) -> IpAddr {
        IpAddr::V4(self.bed.address(self.place(node)))
    }

    /// The group that data is multicast to.
    pub fn group(&self) -> IpAddr {
        IpAddr::from([239, 192, 0, 10 + self.index as u8])
    }

    /// The configuration of a node.
    fn config(&self, node: u16) -> NodeConfig {
        let mut config = NodeConfig::loopback(NODES, 7000);
        config.cluster = 100 + self.index as u32;
        config.engine = self.engine;
        config.timing = TimingName::Relaxed;
        config.transport = Transport::Multicast(SocketAddr::from((self.group(), 7000)));
        config.insecure = false;
        config.key_file = Some(self.path("cluster.key"));
        config.state_dir = Some(self.path(&format!("state-{node}")));
        config.nodes = (1..=NODES)
            .map(|id| NodeAddress {
                id,
                name: Some(format!("n{id}")),
                host: None,
                address: self.address(id),
                data_port: 7001,
                token_port: 7002,
            })
            .collect();
        if self.engine.has_views() {
            config.primary = PrimaryName::Static;
        }
        if self.engine.has_votes() {
            config.paxos = Some(PaxosConfig {
                storage: VoteStorage::Sync,
                ..PaxosConfig::default()
            });
            config.faults = Some(FaultConfig {
                disk_trouble: Some(self.path("trouble-{node}")),
                ..FaultConfig::default()
            });
        }
        config
    }

    /// The file of a daemon, whose sockets have this name.
    fn text(&self, config: &NodeConfig, name: &str) -> String {
        let (text, dir) = (config.to_toml().expect("TOML"), self.dir.path().display());
        format!(
            "{text}\n[daemon]\nsocket = \"{dir}/{name}.sock\"\nadmin = \"{dir}/{name}.admin\"\n\
             metrics = \"127.0.0.1:{METRICS}\"\n"
        )
    }

    /// Starts a daemon with a configuration of its own: the common one, changed.
    pub fn start_with(&mut self, node: u16, change: impl FnOnce(&mut NodeConfig)) {
        self.start_as(node, node, change);
    }

    /// The same at the place of one node, by the number of another.
    pub fn start_as(&mut self, place: u16, node: u16, change: impl FnOnce(&mut NodeConfig)) {
        let mut config = self.config(place);
        change(&mut config);
        let file = self.path(&format!("rota-{place}.toml"));
        fs::write(&file, self.text(&config, &place.to_string())).expect("a file");
        let state = config.state_dir.expect("set");
        fs::create_dir_all(&state).expect("a directory");
        let rota = Path::new(env!("CARGO_BIN_EXE_rota"));
        // In a namespace of a process's own others see nothing of it.
        let full = "mount -t tmpfs -o size=64k tmpfs \"$1\"; head -c 1M /dev/zero >\"$1/full\" 2>/dev/null;";
        let full = if self.disk_is_full { full } else { "" };
        let script = format!("{full} exec \"$0\" daemon --node \"$2\" --config \"$3\"");
        let mut command = self.at(place, "sh");
        command.arg("-c").arg(script).arg(rota).arg(&state);
        command.arg(node.to_string()).arg(&file);
        command.env("LD_PRELOAD", self.path("clock.so"));
        command.env("ROTA_TEST_CLOCK", self.path(&format!("clock-{place}")));
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the binary");
        let log = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut lines = log.lines().map_while(Result::ok);
        let mut started = false;
        let said: Vec<String> = lines
            .by_ref()
            .take_while(|line| {
                started = line.contains("a daemon has started");
                !started
            })
            .collect();
        assert!(
            started || self.disk_is_full,
            "daemon {node} did not start: {said:#?}"
        );
        self.listen(place, said.into_iter().chain(lines));
        self.children[usize::from(place) - 1] = Some(child);
    }

    /// What it says goes to the log of all.
    fn listen(&self, place: u16, lines: impl Iterator<Item = String> + Send + 'static) {
        let log = Arc::clone(&self.log);
        thread::spawn(move || {
            for line in lines {
                let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
                log.push(format!("{place}: {line}"));
            }
        });
    }

    /// A time of day for each daemon.
    fn make_clocks(&self) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/states/clock.c");
        let made = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(self.path("clock.so"))
            .arg(source)
            .status();
        assert!(made.expect("cc").success());
        (1..=NODES).for_each(|node| self.set_clock(node, 0));
    }

    /// From now on the clock of a node goes so many seconds before the right time.
    pub fn set_clock(&self, node: u16, seconds: i64) {
        let file = fs::File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(self.path(&format!("clock-{node}")));
        let written = file.and_then(|mut file| file.write_all(&seconds.to_ne_bytes()));
        written.expect("written");
    }

    /// A command at the place of a node: its arguments are to follow.
    pub fn at(&self, node: u16, program: &str) -> Command {
        let mut words = self
            .bed
            .command_of(self.place(node), Path::new("env"), program);
        words.stdin(Stdio::null());
        words
    }

    /// Runs a line of the shell at the place of a node.
    pub fn run_at(&self, node: u16, line: &str) -> Output {
        let output = self.at(node, "bash").arg("-c").arg(line).output();
        let output = output.expect("bash");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {errors}");
        output
    }

    pub fn runs(&self, node: u16) -> bool {
        self.children[usize::from(node) - 1].is_some()
    }

    pub fn pid(&self, node: u16) -> Pid {
        let child = self.children[usize::from(node) - 1].as_ref();
        Pid::from_child(child.expect("it runs"))
    }

    pub fn signal(&self, node: u16, signal: Signal) {
        kill_process(self.pid(node), signal).expect("it runs");
    }

    /// Kills a daemon, as `kill -9` does.
    pub fn kill(&mut self, node: u16) {
        let child = self.children[usize::from(node) - 1].take();
        let mut child = child.expect("it runs");
        child.kill().expect("a process");
        child.wait().expect("a process");
    }

    /// Starts a node anew, with what it had before.
    pub fn restart(&mut self, node: u16) {
        if self.runs(node) {
            self.kill(node);
        }
        self.start_with(node, |_| ());
    }

    /// Lines of the log from this one on, of all daemons.
    pub fn log_since(&self, line: usize) -> Vec<String> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log[line..].to_vec()
    }

    pub fn log_length(&self) -> usize {
        self.log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    /// What `rota status` prints of all daemons, and whether its exit status is 0.
    pub fn ask(&self, arguments: &[&str]) -> (String, bool) {
        let output = Command::new(env!("CARGO_BIN_EXE_rota"))
            .arg("status")
            .args(arguments)
            .arg("--config")
            .arg(self.path("rota.toml"))
            .output()
            .expect("the binary");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        (text + &errors, output.status.success())
    }

    /// The metrics of all daemons, a page each; an empty one of who does not answer.
    pub fn metrics(&self) -> Vec<String> {
        let ask = format!(
            "exec 3<>/dev/tcp/127.0.0.1/{METRICS} && \
             printf 'GET /metrics HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n' >&3 && timeout 1 cat <&3"
        );
        let page = |node: u16| {
            let output = self.at(node, "bash").args(["-c", &ask]).output();
            let output = output.expect("bash");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        (1..=NODES)
            .filter(|node| self.runs(*node))
            .map(page)
            .collect()
    }
}

impl Drop for Cluster<'_> {
    fn drop(&mut self) {
        for child in self.children.iter_mut().flatten().chain(&mut self.helpers) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

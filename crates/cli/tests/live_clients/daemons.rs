//! Daemons in network namespaces, each with clients that never rest.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rota_bench::{Offload, Testbed};
use rota_core::contract::{Incarnation, NodeId, Process};
use rota_net::{NodeAddress, Transport};
use rota_node::NodeConfig;
use rota_sim::rng::Rng;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::client::{Shared, Slot};
use crate::judge::{self, Run, Seen};
use crate::lives::{incarnation, note_crash};
use crate::spread::Spread;

/// Nothing takes so long.
const PATIENCE: Duration = Duration::from_secs(60);
/// Native clients of each daemon.
const CLIENTS: u64 = 3;
/// Nothing has happened for so long: nothing will.
const REST: Duration = Duration::from_millis(700);

/// One cluster at a time: names of namespaces are those of this process, and times would suffer.
static ONE: Mutex<()> = Mutex::new(());

/// See the module.
pub struct Daemons {
    bed: Testbed,
    dir: tempfile::TempDir,
    nodes: u16,
    children: Vec<Option<Child>>,
    spreads: Vec<Option<Spread>>,
    /// All processes that there were, and how they ended.
    pub run: Run,
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<()>>,
    seed: u64,
    _one: MutexGuard<'static, ()>,
}

impl Drop for Daemons {
    fn drop(&mut self) {
        self.shared.ended.store(true, SeqCst);
        for child in self.children.iter_mut().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking()
            && let Ok(keep) = std::env::var("ROTA_KEEP_TRACES")
        {
            for node in 1..=self.nodes {
                let to = Path::new(&keep).join(format!("node-{node}.jsonl"));
                let _ = fs::copy(self.trace(node), to);
            }
        }
    }
}

fn config(bed: &Testbed, nodes: u16, dir: &Path) -> String {
    let mut config = NodeConfig::loopback(nodes, 7000);
    config.transport = Transport::Multicast(SocketAddr::from(([239, 192, 0, 7], 7000)));
    config.nodes = (1..=nodes)
        .map(|id| NodeAddress {
            id,
            name: Some(format!("n{id}")),
            host: None,
            address: IpAddr::V4(bed.address(usize::from(id))),
            data_port: 7001,
            token_port: 7002,
        })
        .collect();
    config.state_dir = Some(dir.to_owned());
    config.trace = Some(dir.join("node-{node}.jsonl"));
    let text = config.to_toml().expect("TOML");
    let dir = dir.display();
    format!(
        "{text}\n[daemon]\nsocket = \"{dir}/{{node}}.sock\"\nadmin = \"{dir}/{{node}}.admin\"\n\
         [daemon.spread]\nsocket = \"{dir}/{{node}}.spread\"\n"
    )
}

impl Daemons {
    /// So many daemons, and three native clients and one of Spread's of each. Without root this fails, as
    /// nothing here could be tested.
    pub fn start(nodes: u16, seed: u64) -> Self {
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let bed = Testbed::netns(usize::from(nodes), None, Offload::Pass).expect("namespaces");
        bed.prepare_cuts().expect("filters");
        let dir = tempfile::tempdir().expect("a directory");
        let text = config(&bed, nodes, dir.path());
        fs::write(dir.path().join("rota.toml"), text).expect("a file");
        let shared = Arc::new(Shared {
            lives: Mutex::new(vec![None; usize::from(nodes)]),
            settling: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            seen: AtomicU64::new(0),
            logs: Mutex::default(),
        });
        let mut daemons = Self {
            bed,
            dir,
            nodes,
            children: (0..nodes).map(|_| None).collect(),
            spreads: (0..nodes).map(|_| None).collect(),
            run: Run::default(),
            shared,
            clients: Vec::new(),
            seed,
            _one: one,
        };
        daemons.all().into_iter().for_each(|node| daemons.run(node));
        daemons.start_clients();
        daemons
    }

    fn start_clients(&mut self) {
        let slots = (1..=self.nodes).flat_map(|node| (0..CLIENTS).map(move |at| (node, at)));
        let slots: Vec<(u16, u64)> = slots.collect();
        let names = slots.iter().map(|(node, at)| format!("#c{at}#n{node}"));
        let names: Vec<String> = names.collect();
        for (number, (node, at)) in (0_u64..).zip(slots) {
            let slot = Slot {
                node,
                number,
                name: format!("c{at}"),
                socket: self.path(node, "sock"),
                rng: Rng::split(self.seed, 100 + number),
                names: names.clone(),
                sent: 0,
            };
            let shared = Arc::clone(&self.shared);
            self.clients.push(thread::spawn(move || slot.live(&shared)));
        }
    }

    pub fn all(&self) -> Vec<u16> {
        (1..=self.nodes).collect()
    }

    pub fn running(&self) -> Vec<u16> {
        let runs = |node: &u16| self.children[usize::from(*node) - 1].is_some();
        self.all().into_iter().filter(runs).collect()
    }

    fn path(&self, node: u16, what: &str) -> PathBuf {
        self.dir.path().join(format!("{node}.{what}"))
    }

    fn trace(&self, node: u16) -> PathBuf {
        self.dir.path().join(format!("node-{node}.jsonl"))
    }

    /// Starts a daemon, and a client of Spread's.
    pub fn run(&mut self, node: u16) {
        let index = usize::from(node) - 1;
        let rota = Path::new(env!("CARGO_BIN_EXE_rota"));
        let mut child = self
            .bed
            .command_of(usize::from(node), rota, "daemon")
            .args(["--node", &node.to_string(), "--config"])
            .arg(self.dir.path().join("rota.toml"))
            .stderr(Stdio::piped())
            .spawn()
            .expect("a process");
        let log = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut lines = log.lines().map_while(Result::ok);
        let started = lines.find(|line| line.contains("a daemon has started"));
        assert!(started.is_some(), "daemon {node} did not start");
        // Its log must not fill the pipe.
        thread::spawn(move || {
            for line in lines.filter(|line| line.contains("ERROR") || line.contains("panicked")) {
                println!("daemon {node}: {line}");
            }
        });
        self.children[index] = Some(child);
        let process = Process {
            node: NodeId::new(node).expect("not 0"),
            incarnation: Incarnation(incarnation(&self.trace(node))),
        };
        self.run.started(process);
        self.publish(node, Some(process));
        let (first, seed) = (u64::from(1000 + node) << 32, self.seed + u64::from(node));
        let socket = self.path(node, "spread");
        let spread = Spread::start(&self.shared, &socket, "sp", process, first, seed);
        self.spreads[index] = Some(spread);
    }

    fn publish(&self, node: u16, process: Option<Process>) {
        let lives = self.shared.lives.lock();
        lives.unwrap_or_else(PoisonError::into_inner)[usize::from(node) - 1] = process;
    }

    fn end_spread(&mut self, node: u16, tell: bool) {
        if let Some(spread) = self.spreads[usize::from(node) - 1].take() {
            spread.end(tell);
        }
    }

    /// Kills a daemon as `kill -9` does.
    pub fn kill(&mut self, node: u16) {
        self.publish(node, None);
        let child = self.children[usize::from(node) - 1].take();
        let mut child = child.expect("it runs");
        child.kill().expect("a process");
        child.wait().expect("a process");
        note_crash(&self.trace(node), node);
        self.run.crashed(node);
        self.end_spread(node, false);
    }

    /// Tells a daemon to stop, and waits until it has.
    pub fn stop(&mut self, node: u16) {
        self.publish(node, None);
        let child = self.children[usize::from(node) - 1].take();
        let mut child = child.expect("it runs");
        kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
        let status = child.wait().expect("a process");
        assert!(status.success(), "daemon {node}: {status}");
        self.run.left(node);
        self.end_spread(node, false);
    }

    pub fn signal(&self, node: u16, signal: Signal) {
        let child = self.children[usize::from(node) - 1].as_ref();
        let child = child.expect("it runs");
        kill_process(Pid::from_child(child), signal).expect("a process");
    }

    pub fn cut(&self, pairs: &[(u16, u16)]) {
        self.bed.cut(&wide(pairs)).expect("filters");
    }

    pub fn mend(&self, pairs: &[(u16, u16)]) {
        self.bed.mend(&wide(pairs)).expect("filters");
    }

    pub fn sleep(&self, millis: u64) {
        thread::sleep(Duration::from_millis(millis));
    }

    fn status(&self, node: u16) -> Option<Value> {
        let mut stream = UnixStream::connect(self.path(node, "admin")).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let mut line = String::new();
        stream.read_to_string(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }

    /// Whether these are on one ring, and know the same groups.
    fn are_together(&self, nodes: &[u16]) -> bool {
        let list: Vec<String> = nodes.iter().map(ToString::to_string).collect();
        let ring = format!("operational: {}", list.join(", "));
        nodes.iter().all(|node| {
            let status = self.status(*node);
            status.is_some_and(|status| status["ring"] == *ring && status["groups_ready"] == true)
        })
    }

    pub fn expect_rings(&self, rings: &[&[u16]]) {
        let until = Instant::now() + PATIENCE;
        while !rings.iter().all(|nodes| self.are_together(nodes)) {
            if Instant::now() >= until {
                let all: Vec<_> = self.running().iter().map(|n| self.status(*n)).collect();
                panic!("never on rings of {rings:?}: {all:#?}");
            }
            self.sleep(20);
        }
    }

    pub fn expect_whole(&self) {
        self.expect_rings(&[&self.all()]);
    }

    /// Waits until nothing happens any more, and the daemons stand still at such a moment.
    fn freeze(&mut self) -> u64 {
        self.shared.settling.store(true, SeqCst);
        self.spreads.iter_mut().flatten().for_each(Spread::settle);
        let until = Instant::now() + PATIENCE;
        let mut before = self.shared.seen.load(SeqCst);
        loop {
            assert!(Instant::now() < until, "never at rest");
            thread::sleep(REST);
            let now = self.shared.seen.load(SeqCst);
            if std::mem::replace(&mut before, now) != now {
                continue;
            }
            self.expect_whole();
            let exchanges = self.exchanges();
            self.running()
                .iter()
                .for_each(|n| self.signal(*n, Signal::STOP));
            thread::sleep(Duration::from_millis(20));
            let confs = self
                .all()
                .into_iter()
                .map(|n| judge::last_conf(&self.trace(n)));
            let confs: Vec<String> = confs.collect();
            let same = confs.iter().all(|conf| *conf == confs[0]);
            if same && !confs[0].contains('>') && self.shared.seen.load(SeqCst) == now {
                return exchanges;
            }
            self.running()
                .iter()
                .for_each(|n| self.signal(*n, Signal::CONT));
        }
    }

    fn exchanges(&self) -> u64 {
        let exchanges = |node| {
            let status = self.status(node).unwrap_or_default();
            status["counters"]["groups_exchanges"].as_u64().unwrap_or(0)
        };
        self.running().into_iter().map(exchanges).sum()
    }

    /// All is at rest, and everything that anybody has seen is legal. Ends the daemons.
    pub fn check(mut self) -> Seen {
        let exchanges = self.freeze();
        self.shared.ended.store(true, SeqCst);
        for node in self.running() {
            self.end_spread(node, true);
        }
        for client in std::mem::take(&mut self.clients) {
            client.join().expect("it understands what it sees");
        }
        for child in self.children.iter_mut().flatten() {
            child.kill().expect("a process");
            child.wait().expect("a process");
        }
        let traces: Vec<PathBuf> = self.all().into_iter().map(|n| self.trace(n)).collect();
        let logs = std::mem::take(&mut *self.shared.logs.lock().expect("all have ended"));
        let mut seen = judge::daemons(&traces, &self.run);
        judge::clients(&logs, &self.run);
        judge::compare(&logs, &traces, &self.run);
        seen.exchanges = exchanges;
        seen
    }
}

fn wide(pairs: &[(u16, u16)]) -> Vec<(usize, usize)> {
    let wide = |(a, b): &(u16, u16)| (usize::from(*a), usize::from(*b));
    pairs.iter().map(wide).collect()
}

/// Every link between one of the first and one of the second, in both directions.
pub fn between(some: &[u16], others: &[u16]) -> Vec<(u16, u16)> {
    let pairs = some.iter().flat_map(|a| others.iter().map(|b| (*a, *b)));
    pairs.flat_map(|(a, b)| [(a, b), (b, a)]).collect()
}

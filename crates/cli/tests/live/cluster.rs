//! Nodes as processes in network namespaces, their rings as they tell them, and their traces.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rota_bench::{BitRate, Offload, Testbed};
use rota_check::trace::Trace;
use rota_check::{Options, Order as Promise, PrimaryRule, Report, check_order};
use rota_core::contract::{Incarnation, NodeId, Process};
use rota_net::{NodeAddress, Transport, monotonic};
use rota_node::{EngineName, NodeConfig, PrimaryName, TimingName};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::lives::note_crash;
use crate::turns::Turn;

/// Nothing takes so long.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// Messages that each node sends to show that its ring works.
const PROOF: u64 = 5;
/// How long their delivery may take.
const PROOF_PATIENCE: Duration = Duration::from_secs(5);

/// A configuration, as a node has delivered it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conf {
    pub at: u64,
    pub regular: bool,
    pub id: String,
    pub members: Vec<(u16, u64)>,
}

impl Conf {
    pub fn nodes(&self) -> Vec<u16> {
        self.members.iter().map(|(node, _)| *node).collect()
    }
}

/// What a node has delivered since its last regular configuration; positions count from there.
#[derive(Clone, Debug, Deserialize)]
pub struct Order {
    pub conf: String,
    pub count: u64,
    pub value: u64,
    pub submitted: u64,
    pub longest_gap: u64,
}

/// A node's process, and all it has said.
#[derive(Debug)]
struct Life {
    child: Child,
    stdin: Option<ChildStdin>,
    confs: Vec<Conf>,
    /// The rings whose configurations it has called primary.
    primaries: Vec<String>,
    /// Since its last configuration, if so.
    excluded: bool,
    counts: Vec<(String, u64)>,
    order: Option<Order>,
    /// In which slots of time what of which node arrived.
    served: Option<BTreeSet<(u64, u16)>>,
    status: Option<Value>,
    /// Why it has not started, or has ended.
    failed: Option<String>,
    left: bool,
}

/// See the module.
pub struct Cluster {
    bed: Testbed,
    pub config: NodeConfig,
    /// Whether nodes write traces. Those of a minute at full load are gigabytes.
    pub traced: bool,
    /// All begin with the same message, so that what they have delivered can be compared as they go. Who is restarted begins
    /// with what its acceptor keeps.
    pub begin_together: bool,
    dir: tempfile::TempDir,
    lives: Vec<Option<Life>>,
    /// How many processes each node has had.
    started: Vec<usize>,
    lines: Receiver<(usize, usize, String)>,
    sender: Sender<(usize, usize, String)>,
    tags: u32,
    /// Where nodes find which run of the machine this is, if not where the kernel says it.
    runs: BTreeMap<u16, PathBuf>,
    /// Digests of what was delivered, by configuration and how many messages they cover.
    digests: BTreeMap<(String, u64), u64>,
    _turn: Turn,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for life in self.lives.iter_mut().flatten() {
            let _ = life.child.kill();
            let _ = life.child.wait();
        }
        if std::thread::panicking() {
            for (index, life) in self.lives.iter().enumerate() {
                let confs = life.as_ref().map(|life| &life.confs);
                eprintln!("node {}: {confs:#?}", index + 1);
            }
            if let Ok(keep) = std::env::var("ROTA_KEEP_TRACES") {
                for node in 1..=self.lives.len() {
                    let to = Path::new(&keep).join(format!("node-{node}.jsonl"));
                    let _ = fs::copy(self.trace(node as u16), to);
                }
            }
        }
    }
}

impl Cluster {
    /// Room for `nodes` nodes, which keep their ring ids on disk. Without root this fails, as nothing here could be tested.
    pub fn new(nodes: u16, timing: TimingName) -> Self {
        Self::with_guests(nodes, 0, timing)
    }

    /// The same, with room for other programs beside the nodes ([`Cluster::guest`]).
    pub fn with_guests(nodes: u16, guests: u16, timing: TimingName) -> Self {
        Self::with(nodes, guests, None, timing)
    }

    /// The same as [`Cluster::new`], on links of that rate.
    pub fn with_links(nodes: u16, rate: BitRate, timing: TimingName) -> Self {
        Self::with(nodes, 0, Some(rate), timing)
    }

    fn with(nodes: u16, guests: u16, rate: Option<BitRate>, timing: TimingName) -> Self {
        let turn = Turn::take();
        let places = usize::from(nodes + guests);
        let bed = Testbed::netns(places, rate, Offload::Pass).expect("namespaces");
        bed.prepare_cuts().expect("filters");
        let mut config = NodeConfig::loopback(nodes, 7000);
        config.transport = Transport::Multicast(SocketAddr::from(([239, 192, 0, 7], 7000)));
        config.timing = timing;
        config.nodes = (1..=nodes)
            .map(|id| NodeAddress {
                id,
                name: None,
                host: None,
                address: IpAddr::V4(bed.address(usize::from(id))),
                data_port: 7001,
                token_port: 7002,
            })
            .collect();
        let dir = tempfile::tempdir().expect("a directory");
        config.state_dir = Some(dir.path().to_owned());
        let (sender, lines) = channel();
        Self {
            bed,
            config,
            traced: true,
            begin_together: true,
            dir,
            lives: (0..nodes).map(|_| None).collect(),
            started: vec![0; usize::from(nodes)],
            lines,
            sender,
            tags: 0,
            runs: BTreeMap::new(),
            digests: BTreeMap::new(),
            _turn: turn,
        }
    }

    /// The same, all started and on one ring.
    pub fn formed(nodes: u16, timing: TimingName) -> Self {
        Self::formed_with(nodes, timing, EngineName::default())
    }

    /// The same, with this engine. Where it has views, they are the rings here.
    pub fn formed_with(nodes: u16, timing: TimingName, engine: EngineName) -> Self {
        let mut cluster = Self::new(nodes, timing);
        cluster.config.engine = engine;
        if engine.has_views() {
            cluster.config.primary = PrimaryName::Static;
        }
        cluster.start_all();
        cluster.expect_rings(&[&cluster.all()]);
        cluster
    }

    /// The address of a guest, and what runs a program there.
    pub fn guest(&self, guest: u16, program: &str) -> (IpAddr, Command) {
        let place = self.lives.len() + usize::from(guest);
        let command = self.bed.command_of(place, Path::new("env"), program);
        (IpAddr::V4(self.bed.address(place)), command)
    }

    pub fn all(&self) -> Vec<u16> {
        (1..=self.lives.len() as u16).collect()
    }

    /// How long the membership takes at most to notice that somebody is silent, and to agree on who is left.
    pub fn notice(&self) -> Duration {
        let timers = self.config.ring_config().timers;
        Duration::from_nanos(timers.token_loss + timers.consensus)
    }

    pub fn token_loss(&self) -> Duration {
        Duration::from_nanos(self.config.ring_config().timers.token_loss)
    }

    pub fn trace(&self, node: u16) -> PathBuf {
        self.dir.path().join(format!("node-{node}.jsonl"))
    }

    pub fn start_all(&mut self) {
        self.all().into_iter().for_each(|node| self.start(node));
    }

    pub fn start(&mut self, node: u16) {
        let index = usize::from(node) - 1;
        let mut child = self
            .command(node)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let stdout = child.stdout.take().expect("a pipe");
        self.started[index] += 1;
        let (life, to) = (self.started[index], self.sender.clone());
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if to.send((index, life, line)).is_err() {
                    return;
                }
            }
        });
        let mut config = self.config.clone();
        config.trace = self.traced.then(|| self.trace(node));
        self.lives[index] = Some(Life {
            stdin: child.stdin.take(),
            child,
            confs: Vec::new(),
            primaries: Vec::new(),
            excluded: false,
            counts: Vec::new(),
            order: None,
            served: None,
            status: None,
            failed: None,
            left: false,
        });
        self.tell(node, &json!({ "node": node, "config": config }).to_string());
    }

    fn command(&self, node: u16) -> Command {
        let named = std::env::var_os("ROTA_BINARY").map(PathBuf::from);
        let rota = named.unwrap_or_else(|| env!("CARGO_BIN_EXE_rota").into());
        let rota = rota.as_path();
        let place = usize::from(node);
        let Some(run) = self.runs.get(&node) else {
            return self.bed.command_of(place, rota, "live-node");
        };
        // In a namespace of a process's own others see nothing of it.
        let script = "mount --bind \"$1\" /proc/sys/kernel/random/boot_id && exec \"$0\" live-node";
        let mut command = self.bed.command_of(place, Path::new("sh"), "-c");
        command.arg(script).arg(rota).arg(run);
        command
    }

    /// From its next start on a node finds that its machine has been started anew, and so has lost its power.
    pub fn lose_power(&mut self, node: u16) {
        let path = self.dir.path().join(format!("run-of-{node}"));
        let text = fs::read_to_string(&path).unwrap_or_default();
        let count = text.trim().rsplit('-').next().and_then(|n| n.parse().ok());
        let count: u64 = count.unwrap_or(0) + 1;
        let id = format!("00000000-0000-0000-{node:04}-{count:012}\n");
        fs::write(&path, id).expect("room");
        self.runs.insert(node, path);
    }

    /// Where nodes keep what is on their disks.
    pub fn state_dir(&self) -> PathBuf {
        self.dir.path().to_owned()
    }

    /// Starts a node that is to say that it cannot, and why.
    pub fn expect_refused(&mut self, node: u16, why: &str) {
        self.start(node);
        let index = usize::from(node) - 1;
        let failed = |cluster: &Self| {
            let life = cluster.lives[index].as_ref();
            life.and_then(|life| life.failed.clone())
        };
        self.until("a refusal", PATIENCE, |cluster| failed(cluster).is_some());
        let said = failed(self).unwrap_or_default();
        assert!(said.contains(why), "{said}");
        let mut life = self.lives[index].take().expect("it was started");
        life.child.wait().expect("a process");
    }

    pub fn tell(&mut self, node: u16, line: &str) {
        let stdin = self.life(node).stdin.as_mut().expect("a pipe");
        writeln!(stdin, "{line}").expect("the process lives");
    }

    fn life(&mut self, node: u16) -> &mut Life {
        let life = self.lives[usize::from(node) - 1].as_mut();
        life.unwrap_or_else(|| panic!("node {node} does not run"))
    }

    pub fn running(&self) -> Vec<u16> {
        let runs = |node: &u16| self.lives[usize::from(*node) - 1].is_some();
        self.all().into_iter().filter(runs).collect()
    }

    /// What a process has delivered so far.
    pub fn confs(&self, node: u16) -> &[Conf] {
        let life = self.lives[usize::from(node) - 1].as_ref();
        life.map_or(&[], |life| &life.confs)
    }

    /// The configuration that a node is in, if it is a regular one and the node is not excluded.
    pub fn ring(&self, node: u16) -> Option<&Conf> {
        let last = self.confs(node).last();
        last.filter(|conf| conf.regular && !self.is_excluded(node))
    }

    /// Whether a node was told that it is in no view.
    pub fn is_excluded(&self, node: u16) -> bool {
        let life = self.lives[usize::from(node) - 1].as_ref();
        life.is_some_and(|life| life.excluded)
    }

    /// Kills a process as `kill -9` does; answers when.
    pub fn kill(&mut self, node: u16) -> u64 {
        let at = monotonic().0;
        let life = self.lives[usize::from(node) - 1].take();
        let mut life = life.expect("it runs");
        life.child.kill().expect("a process");
        life.child.wait().expect("a process");
        if self.traced {
            note_crash(&self.trace(node), node);
        }
        at
    }

    /// Lets a node leave, and waits until its process has ended; answers when it was told.
    pub fn leave(&mut self, node: u16) -> u64 {
        let at = monotonic().0;
        self.tell(node, "leave");
        let until = Instant::now() + PATIENCE;
        while self
            .life(node)
            .child
            .try_wait()
            .expect("a process")
            .is_none()
        {
            assert!(Instant::now() < until, "node {node} does not leave");
            self.listen(Duration::from_millis(1));
        }
        self.lives[usize::from(node) - 1] = None;
        at
    }

    /// Lets a process stand still for so long.
    pub fn pause(&mut self, node: u16, time: Duration) {
        self.signal(node, Signal::STOP);
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.listen(until.saturating_duration_since(Instant::now()));
        }
        self.signal(node, Signal::CONT);
    }

    pub fn signal(&mut self, node: u16, signal: Signal) {
        let pid = Pid::from_child(&self.life(node).child);
        kill_process(pid, signal).expect("a process");
    }

    pub fn cut(&self, pairs: &[(u16, u16)]) {
        self.bed.cut(&wide(pairs)).expect("filters");
    }

    pub fn mend(&self, pairs: &[(u16, u16)]) {
        self.bed.mend(&wide(pairs)).expect("filters");
    }

    /// Cuts the connections between them, and nothing else.
    pub fn cut_streams(&self, pairs: &[(u16, u16)]) {
        self.bed.cut_streams(&wide(pairs)).expect("filters");
    }

    pub fn mend_streams(&self, pairs: &[(u16, u16)]) {
        self.bed.mend_streams(&wide(pairs)).expect("filters");
    }

    pub fn set_port(&self, node: u16, up: bool) {
        self.bed.set_port(usize::from(node), up).expect("a port");
    }

    /// Everybody sends so many bytes each so many microseconds, from now on; 0 ends it.
    pub fn load(&mut self, size: usize, micros: u64) {
        for node in self.running() {
            self.tell(node, &format!("load {size} {micros}"));
        }
    }

    /// Everybody sends as many messages of so many bytes as the ring takes, from now on; 0 ends it.
    pub fn flood(&mut self, size: usize) {
        for node in self.running() {
            self.tell(node, &format!("flood {size}"));
        }
    }

    /// Takes in what the nodes say, for so long or until one has said something.
    pub fn listen(&mut self, time: Duration) {
        match self.lines.recv_timeout(time) {
            Ok((index, life, line)) => self.on_line(index, life, &line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(error) => panic!("{error}"),
        }
    }

    pub fn sleep(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.listen(until.saturating_duration_since(Instant::now()));
        }
    }

    fn on_line(&mut self, index: usize, life: usize, line: &str) {
        let current = self.started[index] == life;
        let Some(life) = self.lives[index].as_mut().filter(|_| current) else {
            return;
        };
        let said: Value = serde_json::from_str(line).expect("JSON");
        if said == "left" {
            life.left = true;
        } else if said.get("excluded").is_some() {
            life.excluded = true;
        } else if let Some(conf) = said.get("conf") {
            life.excluded = false;
            life.confs.push(Conf {
                at: conf["t"].as_u64().expect("a time"),
                regular: conf["regular"].as_bool().expect("a kind"),
                id: conf["id"].as_str().expect("a name").to_owned(),
                members: serde_json::from_value(conf["members"].clone()).expect("members"),
            });
        } else if let Some(primary) = said.get("primary") {
            let id = primary["id"].as_str().expect("a name");
            life.primaries.push(id.to_owned());
        } else if let Some(count) = said.get("count") {
            let tag = count["tag"].as_str().expect("a tag").to_owned();
            life.counts
                .push((tag, count["count"].as_u64().expect("a number")));
        } else if let Some(order) = said.get("order") {
            let order: Order = serde_json::from_value(order.clone()).expect("an order");
            let at = (order.conf.clone(), order.count);
            let others = *self.digests.entry(at).or_insert(order.value);
            if self.begin_together {
                assert_eq!(order.value, others, "node {}: {order:?}", index + 1);
            }
            life.order = Some(order);
        } else if let Some(served) = said.get("served") {
            life.served = serde_json::from_value(served.clone()).ok();
        } else if let Some(status) = said.get("status") {
            life.status = Some(status.clone());
        } else if let Some(failed) = said.get("failed") {
            life.failed = failed.as_str().map(str::to_owned);
            println!("node {}: {failed}", index + 1);
        } else {
            panic!("node {}: {said}", index + 1);
        }
    }

    /// Whether the ring that a node is on is primary, as far as the node has said.
    pub fn is_primary(&self, node: u16) -> bool {
        let life = self.lives[usize::from(node) - 1].as_ref();
        let ring = self.ring(node);
        ring.is_some_and(|ring| life.is_some_and(|life| life.primaries.contains(&ring.id)))
    }

    /// Waits until something holds.
    pub fn until(&mut self, what: &str, patience: Duration, holds: impl Fn(&Self) -> bool) {
        let until = Instant::now() + patience;
        while !holds(self) {
            assert!(Instant::now() < until, "never: {what}");
            self.listen(Duration::from_millis(20));
        }
    }

    /// Whether the processes that run now are on rings of exactly these nodes.
    pub fn are_on_rings(&self, rings: &[&[u16]]) -> bool {
        rings.iter().all(|nodes| self.are_on_one_ring(nodes))
    }

    /// Whether these are on one ring, of them and nobody else, in their present lives.
    fn are_on_one_ring(&self, nodes: &[u16]) -> bool {
        let Some(first) = self.ring(nodes[0]) else {
            return false;
        };
        let me = |node: u16| {
            let mut members = self.confs(node)[0].members.iter().copied();
            members.find(|(member, _)| *member == node)
        };
        // Who was restarted begins there with configurations of before.
        let in_present_lives = || {
            let lives = nodes.iter().filter_map(|node| me(*node));
            self.config.engine.has_votes() || lives.eq(first.members.clone())
        };
        nodes.iter().all(|node| {
            let conf = self.ring(*node);
            conf.is_some_and(|conf| conf.id == first.id && conf.members == first.members)
        }) && first.nodes() == nodes
            && in_present_lives()
    }

    /// Waits until these rings are there, and shows that they work: what each member submits is delivered
    /// by all members. A ring that breaks meanwhile has not to deliver everything everywhere: then the one
    /// after it is asked to.
    pub fn expect_rings(&mut self, rings: &[&[u16]]) {
        let until = Instant::now() + PATIENCE;
        for nodes in rings {
            loop {
                self.wait_rings(rings);
                let ring = self.ring(nodes[0]).cloned();
                if self.prove(nodes) {
                    break;
                }
                let broken = self.ring(nodes[0]) != ring.as_ref();
                assert!(broken, "no deliveries on {ring:?}");
                assert!(Instant::now() < until, "no ring of {nodes:?} lasts");
            }
        }
    }

    pub fn wait_rings(&mut self, rings: &[&[u16]]) {
        let what = format!("rings of {rings:?}");
        self.until(&what, PATIENCE, |cluster| cluster.are_on_rings(rings));
    }

    /// Whether what each submits is delivered by all, within some seconds.
    fn prove(&mut self, nodes: &[u16]) -> bool {
        self.prove_within(nodes, PROOF_PATIENCE).is_some()
    }

    /// How long it takes until what each submits is delivered by all; `None` if longer than this.
    pub fn prove_within(&mut self, nodes: &[u16], patience: Duration) -> Option<Duration> {
        let began = Instant::now();
        self.tags += 1;
        let tag = format!("proof-{}", self.tags);
        for node in nodes {
            for service in ["agreed", "safe"] {
                self.tell(*node, &format!("send {service} {tag} {PROOF}"));
            }
        }
        let all = (tag.clone(), 2 * PROOF * nodes.len() as u64);
        let until = began + patience;
        let mut missing: BTreeSet<u16> = nodes.iter().copied().collect();
        while !missing.is_empty() && Instant::now() < until {
            for node in missing.clone() {
                self.life(node).counts.clear();
                self.tell(node, &format!("count {tag}"));
            }
            self.sleep(Duration::from_millis(10));
            missing.retain(|node| !self.life(*node).counts.contains(&all));
        }
        missing.is_empty().then(|| began.elapsed())
    }

    /// What every node has delivered, in the same order as the others as far as each came.
    pub fn orders(&mut self) -> Vec<Order> {
        let running = self.running();
        self.orders_of(&running)
    }

    /// The same of some.
    pub fn orders_of(&mut self, nodes: &[u16]) -> Vec<Order> {
        for node in nodes {
            self.life(*node).order = None;
            self.tell(*node, "order");
        }
        let order = |cluster: &Self, node: &u16| {
            let life = cluster.lives[usize::from(*node) - 1].as_ref();
            life.and_then(|life| life.order.clone())
        };
        self.until("all orders", PATIENCE, |cluster| {
            nodes.iter().all(|node| order(cluster, node).is_some())
        });
        nodes.iter().filter_map(|node| order(self, node)).collect()
    }

    /// In which slots of time messages of which node arrived at each of these.
    pub fn served(&mut self, nodes: &[u16]) -> Vec<BTreeSet<(u64, u16)>> {
        for node in nodes {
            self.tell(*node, "served");
        }
        let life = |cluster: &Self, node: &u16| {
            let life = cluster.lives[usize::from(*node) - 1].as_ref();
            life.is_some_and(|life| life.served.is_some())
        };
        self.until("what they were served", PATIENCE, |cluster| {
            nodes.iter().all(|node| life(cluster, node))
        });
        let served = nodes.iter().map(|node| self.life(*node).served.take());
        served.map(|served| served.expect("it was said")).collect()
    }

    /// The address of a node.
    pub fn address(&self, node: u16) -> IpAddr {
        IpAddr::V4(self.bed.address(usize::from(node)))
    }

    /// The network namespace of a node.
    pub fn namespace(&self, node: u16) -> String {
        let command = self
            .bed
            .command_of(usize::from(node), Path::new("sh"), "-c");
        let name = command.get_args().nth(2).expect("ip netns exec NAME");
        name.to_string_lossy().into_owned()
    }

    /// Runs a line of the shell where a node is; answers with what it printed.
    pub fn run_at(&self, node: u16, line: &str) -> String {
        let mut command = self
            .bed
            .command_of(usize::from(node), Path::new("sh"), "-c");
        let output = command.arg(line).output().expect("a shell");
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The process of a node.
    pub fn pid(&mut self, node: u16) -> u32 {
        self.life(node).child.id()
    }

    /// A node's counters.
    pub fn status(&mut self, node: u16) -> Value {
        self.life(node).status = None;
        self.tell(node, "status");
        self.until("a status", PATIENCE, |cluster| {
            let life = cluster.lives[usize::from(node) - 1].as_ref();
            life.is_some_and(|life| life.status.is_some())
        });
        self.life(node).status.take().expect("a status")
    }

    /// Ends all processes at one moment at which they are on these rings: reading long traces takes time,
    /// and what some see meanwhile the others have to have seen, too.
    fn freeze(&mut self, rings: &[&[u16]]) {
        let until = Instant::now() + PATIENCE;
        loop {
            for node in self.running() {
                self.signal(node, Signal::STOP);
            }
            self.sleep(Duration::from_millis(20));
            if self.are_on_rings(rings) {
                break;
            }
            assert!(Instant::now() < until, "never at rest on {rings:?}");
            for node in self.running() {
                self.signal(node, Signal::CONT);
            }
            self.expect_rings(rings);
            self.sleep(Duration::from_millis(100));
        }
        for life in self.lives.iter_mut().flatten() {
            life.child.kill().expect("a process");
            life.child.wait().expect("a process");
        }
    }

    /// Within one life ring numbers grow, also where nothing is kept.
    fn expect_growing_numbers(&self) {
        for node in self.running() {
            let regular = self.confs(node).iter().filter(|conf| conf.regular);
            let numbers: Vec<u64> = regular.map(Conf::number).collect();
            assert!(
                numbers.is_sorted_by(|a, b| a < b),
                "node {node}: {numbers:?}"
            );
        }
    }

    /// What a primary has to be, for those who check.
    fn primary_rule(&self) -> Option<PrimaryRule> {
        match self.config.primary {
            PrimaryName::None => None,
            PrimaryName::Static => Some(PrimaryRule::Majority(self.config.counted_nodes())),
            PrimaryName::Dynamic => Some(PrimaryRule::Successive),
        }
    }

    /// All is at rest, on these rings. Ends the cluster, and says where its traces are.
    pub fn end(&mut self, rings: &[&[u16]]) -> Vec<PathBuf> {
        self.load(0, 0);
        self.expect_rings(rings);
        self.sleep(Duration::from_millis(100));
        self.freeze(rings);
        let files = self.all().into_iter().map(|n| self.trace(n));
        files.filter(|file| file.exists()).collect()
    }

    /// All is at rest, on these rings, and everything that anybody has seen is legal. Ends the cluster.
    pub fn check(&mut self, rings: &[&[u16]]) -> Report {
        let files = self.end(rings);
        let trace = Trace::from_files(&files).expect("sound traces");
        let process = |(node, incarnation): &(u16, u64)| Process {
            node: NodeId::new(*node).expect("not 0"),
            incarnation: Incarnation(*incarnation),
        };
        let component = |nodes: &&[u16]| {
            let ring = self.ring(nodes[0]).expect("a ring");
            ring.members.iter().map(process).collect()
        };
        let options = Options {
            quiescent: true,
            components: rings.iter().map(component).collect(),
            primary: self.primary_rule(),
        };
        let promise = if self.config.engine.has_views() {
            Promise::Uniform
        } else {
            Promise::Evs
        };
        let report = check_order(&trace, &options, promise);
        // A node that keeps nothing begins to count anew; that its rings are told apart by incarnation
        // is what the other properties rely on then.
        let stateless = self.config.state_dir.is_none();
        let excused = |property| stateless && property == "C7";
        let broken = report.verdicts.iter();
        let broken = broken.filter(|v| v.violations > 0 && !excused(v.property));
        assert_eq!(broken.count(), 0, "{:#?}", report.violations);
        let of_primaries = report
            .verdicts
            .iter()
            .filter(|v| v.property.starts_with('P'));
        for verdict in of_primaries.filter(|_| options.primary.is_some()) {
            assert!(
                verdict.checked > 0,
                "nothing to judge: {}",
                verdict.property
            );
        }
        self.expect_growing_numbers();
        assert_eq!(report.counters.untraced, 0);
        report
    }
}

impl Conf {
    /// The number of its ring.
    pub fn number(&self) -> u64 {
        let number = self.id.split('.').next().expect("a number");
        number.parse().expect("a number")
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

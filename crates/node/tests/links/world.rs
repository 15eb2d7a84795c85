//! Drivers in one thread, turned one after the other.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rota_core::contract::{Checked, Delivery, NodeId, Process, Session, Time};
use rota_net::{KeyRing, NetStats, Sockets, Transport, new_process};
use rota_node::{App, Driver, NodeConfig, Submitter, TimingName};

use tempfile::TempDir;

use super::chatty::Chatty;

pub const PATIENCE: Duration = Duration::from_secs(30);
static PORTS: AtomicU16 = AtomicU16::new(25_000);

pub fn id(number: u16) -> NodeId {
    NodeId::new(number).expect("not 0")
}

/// The first of 40 ports that nobody has, for datagrams or links: also not another run of this program.
fn free_ports() -> u16 {
    let is_free = |port: u16| {
        let at = (Ipv4Addr::LOCALHOST, port);
        UdpSocket::bind(at).is_ok() && TcpListener::bind(at).is_ok()
    };
    loop {
        let base = PORTS.fetch_add(40, Relaxed);
        if (base..base + 40).all(is_free) {
            return base;
        }
    }
}

/// Nodes at ports of their own.
pub fn config(nodes: u16) -> NodeConfig {
    NodeConfig {
        transport: Transport::Unicast,
        // A link lasts while a test stands still.
        timing: TimingName::Relaxed,
        ..NodeConfig::loopback(nodes, free_ports())
    }
}

/// The same nodes, with this key.
pub fn sealed(config: &NodeConfig, key_file: &Path) -> NodeConfig {
    NodeConfig {
        insecure: false,
        key_file: Some(key_file.to_owned()),
        ..config.clone()
    }
}

/// The directory with the files of a test.
pub struct World(TempDir);

impl World {
    pub fn new() -> Self {
        Self(TempDir::new().expect("a directory"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn new_key(&self, name: &str) -> PathBuf {
        let path = self.path().join(name);
        let ring = KeyRing::generate().expect("random numbers");
        ring.create(&path).expect("a key file");
        path
    }

    pub fn new_key_with_id_2(&self, name: &str) -> PathBuf {
        let path = self.path().join(name);
        let mut ring = KeyRing::generate().expect("random numbers");
        let id = ring.add().expect("another").get();
        ring.send_with(id).expect("known");
        ring.remove(1).expect("the first");
        ring.create(&path).expect("a key file");
        path
    }
}

pub struct Idle;

impl App for Idle {
    fn deliver(&mut self, _: Delivery) {}
    fn fill(&mut self, _: Time, _: &mut dyn Submitter) {}
    fn stop(&self) -> bool {
        false
    }
}

pub struct Node {
    pub process: Process,
    driver: Driver<Checked<Chatty>>,
}

impl Node {
    pub fn start(config: &NodeConfig, number: u16) -> Self {
        let process = new_process(id(number)).expect("random numbers");
        let sockets = Sockets::open(&config.network(), id(number)).expect("sockets");
        let engine = Checked::new(Chatty::new());
        let driver = Driver::with_process(engine, sockets, process, 1, config).expect("a driver");
        Self { process, driver }
    }

    pub fn turn(&mut self) {
        // Without a rest: whoever it would let run is in this thread.
        self.driver.turn(&mut Idle, Some(0)).expect("a turn");
    }

    pub fn chatty(&self) -> &Chatty {
        self.driver.engine().get()
    }

    pub fn tell(&mut self, what: impl FnOnce(&mut Chatty)) {
        self.driver.command(|engine, _| what(engine)).expect("told");
    }

    pub fn cut(&mut self, peer: u16, is_cut: bool) {
        self.driver.cut_link(id(peer), is_cut);
    }

    pub fn stats(&self) -> NetStats {
        self.driver.stats()
    }

    pub fn keys(&self) -> rota_net::Keys {
        self.driver.keys().expect("a node with keys")
    }

    pub fn session(&self, with: u16) -> Option<Session> {
        self.chatty().session(id(with))
    }
}

/// Turns all nodes until `done`.
pub fn until(nodes: &mut [&mut Node], what: &str, done: impl Fn(&[&mut Node]) -> bool) {
    until_with(nodes, what, || {}, done);
}

/// The same, with something beside them that has to go on as well.
pub fn until_with(
    nodes: &mut [&mut Node],
    what: &str,
    mut beside: impl FnMut(),
    done: impl Fn(&[&mut Node]) -> bool,
) {
    let mut spent = Duration::ZERO;
    while !done(nodes) {
        assert!(spent < PATIENCE, "{what}: in vain");
        let began = Instant::now();
        beside();
        for node in nodes.iter_mut() {
            node.turn();
        }
        // Time in which nothing of this ran does not count.
        spent += began.elapsed().min(Duration::from_millis(10));
    }
}

/// Waits until two nodes have one session; which.
pub fn linked(one: &mut Node, two: &mut Node) -> Session {
    let (a, b) = (one.process.node.get(), two.process.node.get());
    let same = |nodes: &[&mut Node]| {
        let session = nodes[0].session(b);
        session.is_some() && session == nodes[1].session(a)
    };
    until(&mut [one, two], "a session", same);
    one.session(b).expect("a session")
}

//! Processes of a store on this host, for tests.

use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::path::Path;

use rota_core::contract::NodeId;
use rota_kv::{Kv, KvConfig};
use rota_node::VoteStorage;
use rota_replica::ReplicaStatus;

use super::common::{Client, tcp};

pub fn node(number: u16) -> NodeId {
    NodeId::new(number).expect("not 0")
}

pub struct Cluster {
    pub config: KvConfig,
    processes: Vec<Option<Kv>>,
}

impl Cluster {
    /// So many partitions with so many replicas each.
    pub fn start(of: (u16, u16), port: u16, directory: &Path) -> Self {
        let config = KvConfig::loopback(of, port, (directory, VoteStorage::Async));
        Self::begin_all(config, directory)
    }

    /// One that knows where processes are, and has none.
    #[allow(dead_code, reason = "not all tests have one")]
    pub const fn of(config: KvConfig) -> Self {
        Self {
            config,
            processes: Vec::new(),
        }
    }

    /// Rings that keep no more messages than these for those who are away, if others have states behind them.
    #[allow(dead_code, reason = "not all tests have them")]
    pub fn with_short_memory(of: (u16, u16), port: u16, directory: &Path) -> Self {
        let mut config = KvConfig::loopback(of, port, (directory, VoteStorage::Memory));
        for ring in &mut config.rings.rings {
            let paxos = ring.paxos.get_or_insert_default();
            paxos.kept_instances = NonZeroU64::new(400);
        }
        Self::begin_all(config, directory)
    }

    /// The processes of a configuration.
    pub fn begin_all(config: KvConfig, directory: &Path) -> Self {
        let count = config.kv.process.len() as u16;
        for name in ["votes", "states"] {
            std::fs::create_dir_all(directory.join(name)).expect("it is ours");
        }
        let mut cluster = Self {
            config,
            processes: Vec::new(),
        };
        for number in 1..=count {
            cluster.processes.push(None);
            cluster.begin(number);
        }
        cluster
    }

    pub fn begin(&mut self, number: u16) {
        let process = Kv::start(&self.config, node(number)).expect("it starts");
        self.processes[usize::from(number) - 1] = Some(process);
    }

    pub fn end(&mut self, number: u16) {
        self.processes[usize::from(number) - 1] = None;
    }

    #[allow(dead_code, reason = "not all tests look at it")]
    pub fn status(&self, number: u16) -> ReplicaStatus {
        let process = self.processes[usize::from(number) - 1].as_ref();
        process.expect("it runs").status()
    }

    /// A client that knows one server.
    pub fn client(&self, number: u16) -> Client {
        let process = self.config.process(node(number)).expect("a process");
        at(process.redis_port)
    }

    /// One that knows a cluster.
    #[allow(dead_code, reason = "not all tests have one")]
    pub fn cluster_client(&self, number: u16) -> Client {
        let process = self.config.process(node(number)).expect("a process");
        at(process.cluster_port)
    }
}

fn at(port: Option<u16>) -> Client {
    let address = SocketAddr::from(([127, 0, 0, 1], port.expect("a port")));
    Client::new(tcp(address))
}

//! The configuration of the processes of a store: one file for all of them.

mod loopback;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use rota_core::contract::NodeId;
use rota_front::TlsSection;
use rota_front::access::{UserError, UserSection, Users};
use rota_node::RingsConfig;
use rota_node::rings::RingsError;
use rota_replica::ReplicaConfig;
use serde::{Deserialize, Serialize};

use crate::map::{Map, MapError, Partition};
use crate::slots::Slots;

const USUAL_CLIENTS: u32 = 10_000;

/// The `[kv]` section.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KvSection {
    /// The ring that all processes are on, which orders commands of several partitions.
    pub global_ring: u16,
    /// The directory in which each process has one of its own, `node-ID`, for its states.
    pub state_dir: PathBuf,
    /// The time that a client waits for an answer, in milliseconds; then it is told that the outcome is not known.
    /// 5000, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience_ms: Option<u64>,
    /// The number of clients that may be connected to a process. 10000, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// The size, in MiB, from which on a partition takes no more writes. 4096, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_mib: Option<u64>,
    /// The bytes of recent changes that are kept for watchers of prefixes. 16 MiB, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes_bytes: Option<u64>,
    /// Clients of Redis' protocol may come from other hosts, though they prove nothing and others can read along on the
    /// way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure_clients: bool,
    /// Other hosts may read metrics, though they prove nothing and others can read along on the way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub metrics_insecure: bool,
    /// Clients speak TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsSection>,
    /// The users that clients log in as; without any, each client may do everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub user: Vec<UserSection>,
    /// The parts of the keys.
    pub partition: Vec<PartitionSection>,
    /// The node, partition and ports of each process.
    pub process: Vec<ProcessSection>,
}

impl KvSection {
    /// The number of clients that may be connected.
    pub fn clients(&self) -> u64 {
        u64::from(self.clients.unwrap_or(USUAL_CLIENTS))
    }
}

/// A `[[kv.partition]]` section.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionSection {
    /// Its number, from 1.
    pub id: u16,
    /// The ring of its own commands.
    pub ring: u16,
    /// The slots, as `"0-5460, 12000"`. If no partition names any, they are dealt out evenly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<String>,
}

/// A `[[kv.process]]` section. Its address is that of its node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessSection {
    /// Its node.
    pub node: u16,
    /// The partition of which it has a replica.
    pub partition: u16,
    /// The port at which the replicas of its partition get its states.
    pub state_port: u16,
    /// The port at which the other processes connect.
    pub link_port: u16,
    /// The port for clients of Redis' protocol that know one server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redis_port: Option<u16>,
    /// The port for clients that know a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_port: Option<u16>,
    /// The port at which `GET /metrics` is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics_port: Option<u16>,
}

/// The content of a configuration file.
#[derive(Clone, PartialEq, Debug)]
pub struct KvConfig {
    /// The rings.
    pub rings: RingsConfig,
    /// The store.
    pub kv: KvSection,
}

/// An error in a configuration file.
#[derive(Debug)]
pub enum ConfigError {
    /// The file cannot be read.
    Syntax(Box<toml::de::Error>),
    /// There is no `[kv]` section.
    NoStore,
    /// The rings cannot be run.
    Rings(RingsError),
    /// The slots are no map.
    Map(MapError),
    /// The text is no list of slots.
    Slots(String),
    /// Two partitions have this number, or it is 0.
    Partition(u16),
    /// There is no such partition, of which this process is to have a replica.
    NoPartition(u16, NodeId),
    /// This partition has no process.
    NoProcess(u16),
    /// There is no such ring, or a process that needs it is not on it.
    NotOnRing(u16, u16),
    /// Two partitions have this ring, or one has the ring that is for all.
    Shared(u16),
    /// There is no such node, or two processes have it.
    Node(u16),
    /// Two listeners have the same address.
    Port(SocketAddr),
    /// Other hosts could read metrics.
    OpenMetrics(SocketAddr),
    /// A user is wrong.
    User(UserError),
    /// Clients could come from other hosts.
    Unprotected(SocketAddr),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(error) => write!(f, "{error}"),
            Self::NoStore => write!(f, "there is no `[kv]` section"),
            Self::Rings(error) => write!(f, "{error}"),
            Self::Map(error) => write!(f, "{error}: see `slots` of `[[kv.partition]]`"),
            Self::Slots(text) => write!(
                f,
                "`slots = \"{text}\"`: slots are numbers and ranges with commas between, as \"0-5460, 12000\""
            ),
            Self::Partition(id) => write!(
                f,
                "`[[kv.partition]]` {id}: partitions have numbers from 1, each its own"
            ),
            Self::NoPartition(id, node) => write!(
                f,
                "`[[kv.process]]` {node}: there is no `[[kv.partition]]` {id}"
            ),
            Self::NoProcess(id) => {
                write!(f, "no `[[kv.process]]` has a replica of partition {id}")
            }
            Self::NotOnRing(ring, node) => write!(
                f,
                "node {node} has to be on ring {ring}: name it in `nodes` of that `[[ring]]`"
            ),
            Self::Shared(ring) => write!(
                f,
                "ring {ring} is that of two partitions, or of one and of all: each has its own"
            ),
            Self::Node(node) => write!(
                f,
                "`[[kv.process]]` {node}: each is another one of the `[[node]]` sections"
            ),
            Self::Port(address) => write!(f, "two things would listen at {address}"),
            Self::OpenMetrics(address) => write!(
                f,
                "whoever reaches {address} could read metrics: leave out `metrics_port`, or write `metrics_insecure = true` in `[kv]`"
            ),
            Self::User(error) => write!(f, "`[[kv.user]]`: {error}"),
            Self::Unprotected(address) => write!(
                f,
                "clients would be served at {address}, which other hosts reach, without a password or unsealed: give it `[kv.tls]` and either `client_ca` there or \
                 `[[kv.user]]`, leave out `redis_port` and `cluster_port`, or write `insecure_clients = true` in `[kv]`"
            ),
        }
    }
}

impl std::error::Error for ConfigError {}

impl KvConfig {
    /// Reads a file's content: that of several rings, with a `[kv]` section.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        let syntax = |error| ConfigError::Syntax(Box::new(error));
        let mut table: toml::Table = toml::from_str(text).map_err(syntax)?;
        let kv = table.remove("kv").ok_or(ConfigError::NoStore)?;
        let kv: KvSection = kv.try_into().map_err(syntax)?;
        let rings = RingsConfig::from_table(table).map_err(ConfigError::Rings)?;
        let config = Self { rings, kv };
        config.check()?;
        Ok(config)
    }

    /// The partition of each slot at first.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn map(&self) -> Result<Map, ConfigError> {
        let partitions = &self.kv.partition;
        if partitions.iter().all(|partition| partition.slots.is_none()) {
            let mut all: Vec<Partition> = partitions.iter().map(|of| Partition(of.id)).collect();
            // The order of the sections in the file does not matter.
            all.sort_unstable();
            return Map::even(&all).map_err(ConfigError::Map);
        }
        let mut ranges = Vec::new();
        for partition in partitions {
            let text = partition.slots.as_deref().unwrap_or_default();
            let slots = Slots::parse(text).ok_or_else(|| ConfigError::Slots(text.to_owned()))?;
            let of = slots.ranges();
            ranges.extend(
                of.iter()
                    .map(|range| (Partition(partition.id), *range.start(), *range.end())),
            );
        }
        let all: Vec<Partition> = partitions.iter().map(|of| Partition(of.id)).collect();
        Map::of_ranges(&all, &ranges).map_err(ConfigError::Map)
    }

    /// The ring of a partition.
    pub fn ring_of(&self, partition: Partition) -> Option<u16> {
        let mut all = self.kv.partition.iter();
        all.find(|of| of.id == partition.0).map(|of| of.ring)
    }

    /// The section of a process.
    pub fn process(&self, node: NodeId) -> Option<&ProcessSection> {
        let mut all = self.kv.process.iter();
        all.find(|process| process.node == node.get())
    }

    /// The address of a node; `None` if it is not listed, or its name has not been looked up.
    pub fn address(&self, node: u16) -> Option<IpAddr> {
        self.rings.common.address(NodeId::new(node)?)
    }

    /// The same configuration with the addresses of the nodes' names, as node `me` finds them ([`rota_node::NodeConfig::resolved`]).
    #[must_use]
    pub fn resolved(&self, me: NodeId) -> Self {
        let mut resolved = self.clone();
        resolved.rings = self.rings.resolved(me);
        resolved
    }

    /// The address for clients of a process: of those that know one server, or else of those that know a cluster.
    pub fn clients_of(&self, process: &ProcessSection) -> Option<SocketAddr> {
        let port = process.redis_port.or(process.cluster_port)?;
        Some(SocketAddr::new(self.address(process.node)?, port))
    }

    /// Whether clients prove who they are, and nobody can read along.
    fn is_protected(&self) -> bool {
        let tls = self.kv.tls.as_ref();
        tls.is_some_and(|tls| tls.client_ca.is_some() || !self.kv.user.is_empty())
    }

    fn check(&self) -> Result<(), ConfigError> {
        Users::new(&self.kv.user).map_err(ConfigError::User)?;
        let mut rings = BTreeSet::from([self.kv.global_ring]);
        let mut ids = BTreeSet::new();
        for partition in &self.kv.partition {
            if partition.id == 0 || !ids.insert(partition.id) {
                return Err(ConfigError::Partition(partition.id));
            }
            if !rings.insert(partition.ring) {
                return Err(ConfigError::Shared(partition.ring));
            }
        }
        let (mut nodes, mut ports) = (BTreeSet::new(), BTreeSet::new());
        for process in &self.kv.process {
            self.check_process(process, (&mut nodes, &mut ports))?;
        }
        let lonely = self.kv.partition.iter().find(|partition| {
            let mut all = self.kv.process.iter();
            !all.any(|process| process.partition == partition.id)
        });
        if let Some(lonely) = lonely {
            return Err(ConfigError::NoProcess(lonely.id));
        }
        self.map().map(drop)
    }

    fn check_process(
        &self,
        process: &ProcessSection,
        (nodes, ports): (&mut BTreeSet<u16>, &mut BTreeSet<SocketAddr>),
    ) -> Result<(), ConfigError> {
        let wrong = || ConfigError::Node(process.node);
        let node = NodeId::new(process.node).ok_or_else(wrong)?;
        let address = self.address(process.node).ok_or_else(wrong)?;
        if !nodes.insert(process.node) {
            return Err(wrong());
        }
        let ring = self.ring_of(Partition(process.partition));
        let ring = ring.ok_or(ConfigError::NoPartition(process.partition, node))?;
        let on = self.rings.rings_of(node);
        let on: Vec<u16> = on.into_iter().map(|at| self.rings.rings[at].id).collect();
        for ring in [ring, self.kv.global_ring] {
            if !on.contains(&ring) {
                return Err(ConfigError::NotOnRing(ring, process.node));
            }
        }
        let own = [Some(process.state_port), Some(process.link_port)];
        let own = own.into_iter().chain([
            process.redis_port,
            process.cluster_port,
            process.metrics_port,
        ]);
        for port in own.flatten() {
            let at = SocketAddr::new(address, port);
            if !ports.insert(at) {
                return Err(ConfigError::Port(at));
            }
        }
        let clients = process.redis_port.or(process.cluster_port);
        let may = address.is_loopback() || self.kv.insecure_clients || self.is_protected();
        if let Some(port) = clients.filter(|_| !may) {
            return Err(ConfigError::Unprotected(SocketAddr::new(address, port)));
        }
        let metrics = process.metrics_port.filter(|_| !address.is_loopback());
        if let Some(port) = metrics.filter(|_| !self.kv.metrics_insecure) {
            return Err(ConfigError::OpenMetrics(SocketAddr::new(address, port)));
        }
        Ok(())
    }

    /// The replica of a process.
    pub(crate) fn replica(&self, process: &ProcessSection, node: NodeId) -> ReplicaConfig {
        let partition = Partition(process.partition);
        let own = self.ring_of(partition).unwrap_or_default();
        let directory = self.kv.state_dir.join(format!("node-{node}"));
        let rings = [own, self.kv.global_ring];
        let of = (u32::from(process.partition), &rings[..]);
        let mut replica = ReplicaConfig::new(self.rings.clone(), node, of, directory);
        let all = self.kv.process.iter();
        replica.peers = all
            .filter(|other| other.partition == process.partition)
            .filter_map(|other| {
                let address = SocketAddr::new(self.address(other.node)?, other.state_port);
                Some((NodeId::new(other.node)?, address))
            })
            .collect::<BTreeMap<_, _>>();
        replica
    }
}

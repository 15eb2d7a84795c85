//! The configuration of the processes of a service of logs: one file for all of them.

mod loopback;

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use rota_core::contract::NodeId;
use rota_front::TlsSection;
use rota_front::access::{UserError, UserSection, Users};
use rota_node::RingsConfig;
use rota_node::rings::RingsError;
use rota_replica::ReplicaConfig;
use serde::{Deserialize, Serialize};

/// The number of the partition that all processes have.
pub(crate) const PARTITION: u32 = 1;
const USUAL_CLIENTS: u32 = 10_000;
const USUAL_PATIENCE: u64 = 5_000;
const USUAL_CACHE: u64 = 200;
const USUAL_FREE: u64 = 256;
const USUAL_SCRUB: u64 = 7 * 24 * 3600;

/// The `[log]` section.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogSection {
    /// The rings that order appends: all processes are on all of them. The name of a log decides its ring.
    pub rings: Vec<u16>,
    /// The directory in which each process has one of its own, `node-ID`, for its entries and states.
    pub state_dir: PathBuf,
    /// The time that a client waits for an answer, in milliseconds; then it is told that the outcome is not known.
    /// 5000, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience_ms: Option<u64>,
    /// The number of clients that may be connected to a process. 10000, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// The memory for the newest entries, in MiB. 200, if nothing is said (Benz et al. 2014, §7.3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_mib: Option<u64>,
    /// The room on the disk, in MiB, below which a process takes no entries of its clients. 256, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_mib: Option<u64>,
    /// The time in which a process reads all its files once to look for damage, in seconds; 0: never. A week, if nothing
    /// is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scrub_s: Option<u64>,
    /// Clients may come from other hosts, though they prove nothing and others can read along on the way.
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
    /// The processes: each has all logs.
    pub process: Vec<ProcessSection>,
}

/// A `[[log.process]]` section. Its address is that of its node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessSection {
    /// Its node.
    pub node: u16,
    /// The port at which the others get its states.
    pub state_port: u16,
    /// The port at which the others get entries.
    pub link_port: u16,
    /// The port for clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redis_port: Option<u16>,
    /// The port at which `GET /metrics` is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics_port: Option<u16>,
}

/// The content of a configuration file.
#[derive(Clone, PartialEq, Debug)]
pub struct LogConfig {
    /// The rings.
    pub rings: RingsConfig,
    /// The logs.
    pub log: LogSection,
}

/// An error in a configuration file.
#[derive(Debug)]
pub enum ConfigError {
    /// The file cannot be read.
    Syntax(Box<toml::de::Error>),
    /// There is no `[log]` section.
    NoLogs,
    /// The rings cannot be run.
    Rings(RingsError),
    /// No ring is named, or one is named twice.
    Named(Option<u16>),
    /// There is no such ring, or a process is not on it.
    NotOnRing(u16, u16),
    /// There is no process.
    NoProcess,
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
            Self::NoLogs => write!(f, "there is no `[log]` section"),
            Self::Rings(error) => write!(f, "{error}"),
            Self::Named(None) => write!(f, "`rings` in `[log]` names no ring"),
            Self::Named(Some(ring)) => write!(f, "`rings` in `[log]` names ring {ring} twice"),
            Self::NotOnRing(ring, node) => write!(
                f,
                "node {node} has to be on ring {ring}: name it in `nodes` of that `[[ring]]`"
            ),
            Self::NoProcess => write!(f, "there is no `[[log.process]]`"),
            Self::Node(node) => write!(
                f,
                "`[[log.process]]` {node}: each is another one of the `[[node]]` sections"
            ),
            Self::Port(address) => write!(f, "two things would listen at {address}"),
            Self::OpenMetrics(address) => write!(
                f,
                "whoever reaches {address} could read metrics: leave out `metrics_port`, or write `metrics_insecure = true` in `[log]`"
            ),
            Self::User(error) => write!(f, "`[[log.user]]`: {error}"),
            Self::Unprotected(address) => write!(
                f,
                "clients would be served at {address}, which other hosts reach, without a password or unsealed: give it `[log.tls]` and either `client_ca` there or \
                 `[[log.user]]`, leave out `redis_port`, or write `insecure_clients = true` in `[log]`"
            ),
        }
    }
}

impl std::error::Error for ConfigError {}

impl LogConfig {
    /// Reads a file's content: that of several rings, with a `[log]` section.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        let syntax = |error| ConfigError::Syntax(Box::new(error));
        let mut table: toml::Table = toml::from_str(text).map_err(syntax)?;
        let log = table.remove("log").ok_or(ConfigError::NoLogs)?;
        let log: LogSection = log.try_into().map_err(syntax)?;
        let rings = RingsConfig::from_table(table).map_err(ConfigError::Rings)?;
        let config = Self { rings, log };
        config.check()?;
        Ok(config)
    }

    /// The section of a process.
    pub fn process(&self, node: NodeId) -> Option<&ProcessSection> {
        let mut all = self.log.process.iter();
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

    /// The address for clients of a process.
    pub fn clients_of(&self, process: &ProcessSection) -> Option<SocketAddr> {
        let port = process.redis_port?;
        Some(SocketAddr::new(self.address(process.node)?, port))
    }

    /// The time that a client waits.
    pub fn patience(&self) -> Duration {
        Duration::from_millis(self.log.patience_ms.unwrap_or(USUAL_PATIENCE).max(1))
    }

    pub(crate) fn clients(&self) -> u64 {
        u64::from(self.log.clients.unwrap_or(USUAL_CLIENTS))
    }

    pub(crate) fn cache_bytes(&self) -> usize {
        (self.log.cache_mib.unwrap_or(USUAL_CACHE) << 20) as usize
    }

    pub(crate) fn free_bytes(&self) -> u64 {
        self.log.free_mib.unwrap_or(USUAL_FREE) << 20
    }

    /// The time in which all files are read to look for damage; `None`: never.
    pub(crate) fn scrub_period(&self) -> Option<Duration> {
        let seconds = self.log.scrub_s.unwrap_or(USUAL_SCRUB);
        (seconds > 0).then(|| Duration::from_secs(seconds))
    }

    /// The directory of a process.
    pub(crate) fn directory(&self, node: NodeId) -> PathBuf {
        self.log.state_dir.join(format!("node-{node}"))
    }

    /// Whether clients prove who they are, and nobody can read along.
    fn is_protected(&self) -> bool {
        let tls = self.log.tls.as_ref();
        tls.is_some_and(|tls| tls.client_ca.is_some() || !self.log.user.is_empty())
    }

    fn check(&self) -> Result<(), ConfigError> {
        Users::new(&self.log.user).map_err(ConfigError::User)?;
        let mut rings = BTreeSet::new();
        if let Some(twice) = self.log.rings.iter().find(|ring| !rings.insert(**ring)) {
            return Err(ConfigError::Named(Some(*twice)));
        }
        if rings.is_empty() {
            return Err(ConfigError::Named(None));
        }
        if self.log.process.is_empty() {
            return Err(ConfigError::NoProcess);
        }
        let (mut nodes, mut ports) = (BTreeSet::new(), BTreeSet::new());
        for process in &self.log.process {
            self.check_process(process, (&mut nodes, &mut ports))?;
        }
        Ok(())
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
        let on = self.rings.rings_of(node);
        let on: Vec<u16> = on.into_iter().map(|at| self.rings.rings[at].id).collect();
        if let Some(ring) = self.log.rings.iter().find(|ring| !on.contains(ring)) {
            return Err(ConfigError::NotOnRing(*ring, process.node));
        }
        let own = [Some(process.state_port), Some(process.link_port)];
        let all = own
            .into_iter()
            .chain([process.redis_port, process.metrics_port]);
        for port in all.flatten() {
            let at = SocketAddr::new(address, port);
            if !ports.insert(at) {
                return Err(ConfigError::Port(at));
            }
        }
        let may = address.is_loopback() || self.log.insecure_clients || self.is_protected();
        if let Some(port) = process.redis_port.filter(|_| !may) {
            return Err(ConfigError::Unprotected(SocketAddr::new(address, port)));
        }
        let metrics = process.metrics_port.filter(|_| !address.is_loopback());
        if let Some(port) = metrics.filter(|_| !self.log.metrics_insecure) {
            return Err(ConfigError::OpenMetrics(SocketAddr::new(address, port)));
        }
        Ok(())
    }

    /// The replica of a process.
    pub(crate) fn replica(&self, node: NodeId) -> ReplicaConfig {
        let of = (PARTITION, &self.log.rings[..]);
        let states = self.directory(node).join("states");
        let mut replica = ReplicaConfig::new(self.rings.clone(), node, of, states);
        let peer = |process: &ProcessSection| {
            let address = self.address(process.node)?;
            let at = SocketAddr::new(address, process.state_port);
            Some((NodeId::new(process.node)?, at))
        };
        replica.peers = self.log.process.iter().filter_map(peer).collect();
        replica
    }
}

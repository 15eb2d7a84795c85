//! A node's configuration: one TOML file that all nodes of a cluster can share.

mod address;
mod datagrams;
mod differences;
mod engine;
mod error;
mod host;
mod names;
mod paths;
mod paxos;
mod primary;
mod transport;

pub use datagrams::DatagramSize;
pub use differences::{DIFFERENCES, Difference, DifferencesTable, Outcome};
pub use error::ConfigError;
pub use host::HostError;
pub use paths::path_of;
pub(crate) use paths::text_of;
pub use paxos::{CoordinationName, PaxosConfig, VoteStorage};
pub use primary::{PrimaryName, ResetPrimary};
pub use rota_core::EngineName;

use rota_core::contract::NodeId;
use rota_core::timing::{Timers, Timing};
use rota_net::seal::SEALED_BYTES;
use rota_net::{FaultConfig, KeyError, KeyRing, NodeAddress, Transport, Tuning};
use rota_ring::{PriorityMethod, Protocol, RingConfig};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The family of time-outs that fits the network and its hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimingName {
    /// Dedicated cores on one switch.
    LanFast,
    /// Data centers.
    #[default]
    Default,
    /// Crowded or virtual hosts, wide areas.
    Relaxed,
}

/// All settings of a node. Settings that are `None` have a default in the engine, which `ring_config` shows.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeConfig {
    /// Keeps clusters on one network apart.
    pub cluster: u32,
    /// The protocol that orders the messages.
    #[serde(default)]
    pub engine: EngineName,
    /// Seal datagrams with the keys in this file, the same on all nodes, which only its owner may read
    /// ([`KeyRing`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// Must be `true` without a key file: nobody should run unprotected without knowing it.
    #[serde(default)]
    pub insecure: bool,
    /// The family of time-outs.
    #[serde(default)]
    pub timing: TimingName,
    /// The transport of data.
    pub transport: Transport,
    /// The network interface for multicast; else the one that has the node's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// The number of links that multicasts cross: with more than 1, routers that forward multicast pass them on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multicast_ttl: Option<std::num::NonZeroU8>,
    /// New packets a node may send in one visit of the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub personal_window: Option<u32>,
    /// The number of these packets that may leave after the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accelerated_window: Option<u32>,
    /// Packets all nodes together may send in one rotation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global_window: Option<u32>,
    /// Packets by which the order may run ahead of the slowest node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outstanding_window: Option<u32>,
    /// `fastcast`: the rate that the slowest link takes in, in megabits per second, with all headers; senders keep to
    /// their shares of it. Without a value, all send as fast as they are let.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_mbps: Option<std::num::NonZeroU32>,
    /// `fastcast`: senders go by less than `link_mbps`, or what losses tell without it, while packets get lost.
    #[serde(default)]
    pub link_yields: bool,
    /// The method by which the priority of the token is raised again: 1 or 2 (thesis §3.1.4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_method: Option<u8>,
    /// The largest datagram, in bytes of UDP payload. Without a value, each node takes the size that fits the paths to
    /// its peers ([`NodeConfig::ring_config_at`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagram_bytes: Option<usize>,
    /// The largest message, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_bytes: Option<usize>,
    /// The limit of what is submitted and not yet sent, in bytes; each waiting packet counts for 100 more than it
    /// holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog_bytes: Option<usize>,
    /// Keep the newest ring id in this directory, which has to exist, in a file of each node's own. Without
    /// it only the incarnation keeps the rings of two lives of a node apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_dir: Option<PathBuf>,
    /// Start with a new file where the one in `state_dir` is refused.
    #[serde(default)]
    pub reset_ring_id: bool,
    /// The rule by which configurations are primary; the same on all nodes. `Dynamic` needs `state_dir`.
    #[serde(default)]
    pub primary: PrimaryName,
    /// The nodes that count in it: the rule asks for a majority of them, or they are the first primary. Without a
    /// value, all that are listed. The same on all nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary_nodes: Option<Vec<u16>>,
    /// Begin with this where the record of primaries in `state_dir` is missing or refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_primary: Option<ResetPrimary>,
    /// The acceptors, the storage of votes, and coordination: for engines of the Paxos family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paxos: Option<PaxosConfig>,
    /// Write a trace to this file. `{node}` stands for the node's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<PathBuf>,
    /// Receive buffer of each socket, in bytes. It must hold what arrives while the node is not scheduled; what does not fit is lost.
    #[serde(default = "default_receive_buffer")]
    pub receive_buffer_bytes: usize,
    /// Send buffer of each socket, in bytes (the kernel books twice as much). Keep it below the queue of the device: then a fast sender waits.
    #[serde(default = "default_send_buffer")]
    pub send_buffer_bytes: usize,
    /// The time, in microseconds, for which the sockets are polled before going to sleep. Only with a core to spare.
    #[serde(default)]
    pub busy_poll_us: u64,
    /// Hand bursts to the kernel whole. Off for comparison, or for a driver that gets it wrong.
    #[serde(default = "default_offload")]
    pub offload: bool,
    /// Let nodes join that are not listed. Their data port has to be the one below their token port.
    #[serde(default)]
    pub open_membership: bool,
    /// The settings of a daemon, which a node in an application's process does without: kept as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daemon: Option<toml::Table>,
    /// The nodes.
    #[serde(rename = "node")]
    pub nodes: Vec<NodeAddress>,
    /// This is one ring of several, whose deliveries are merged ([`crate::RingsConfig`]).
    #[serde(skip)]
    pub ring_of: Option<rota_multiring::RingOf>,
    /// Faults to inject on receipt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<FaultConfig>,
}

const fn default_receive_buffer() -> usize {
    Tuning::RECEIVE_BUFFER_BYTES
}

const fn default_send_buffer() -> usize {
    Tuning::SEND_BUFFER_BYTES
}

const fn default_offload() -> bool {
    true
}

/// The bytes by which an IPv6 header is longer than one of IPv4.
const IPV6_EXTRA_BYTES: usize = 20;

impl NodeConfig {
    /// `nodes` nodes on this host, with multicast over the loopback interface. Uses the UDP ports from
    /// `base_port` on: one for the group, then two for each node.
    pub fn loopback(nodes: u16, base_port: u16) -> Self {
        Self {
            cluster: u32::from(base_port),
            engine: EngineName::default(),
            key_file: None,
            insecure: true,
            timing: TimingName::default(),
            transport: Transport::loopback(base_port),
            interface: None,
            multicast_ttl: None,
            personal_window: None,
            accelerated_window: None,
            global_window: None,
            outstanding_window: None,
            link_mbps: None,
            link_yields: false,
            priority_method: None,
            datagram_bytes: None,
            message_bytes: None,
            backlog_bytes: None,
            ring_of: None,
            state_dir: None,
            reset_ring_id: false,
            primary: PrimaryName::None,
            primary_nodes: None,
            reset_primary: None,
            paxos: None,
            trace: None,
            receive_buffer_bytes: default_receive_buffer(),
            send_buffer_bytes: default_send_buffer(),
            busy_poll_us: 0,
            offload: true,
            open_membership: false,
            daemon: None,
            nodes: NodeAddress::loopback(nodes, base_port),
            faults: None,
        }
    }

    /// Reads a configuration and checks it.
    ///
    /// # Errors
    /// [`ConfigError`], with the line where that is known.
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        let config: Self =
            toml::from_str(text).map_err(|error| ConfigError::syntax(text, error))?;
        config.check()?;
        Ok(config)
    }

    /// Reads a configuration file and checks it.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|error| ConfigError::Read {
            path: path.to_owned(),
            error,
        })?;
        Self::from_toml(&text)
    }

    /// This configuration as a file.
    ///
    /// # Errors
    /// [`ConfigError::Write`] where a number does not fit TOML's.
    pub fn to_toml(&self) -> Result<String, ConfigError> {
        toml::to_string(self).map_err(ConfigError::Write)
    }

    /// The node with this id.
    pub fn node(&self, id: NodeId) -> Option<&NodeAddress> {
        NodeAddress::find(&self.nodes, id)
    }

    /// All nodes, by ascending id.
    pub fn members(&self) -> Vec<NodeId> {
        let mut members: Vec<NodeId> = self
            .nodes
            .iter()
            .filter_map(|node| NodeId::new(node.id))
            .collect();
        members.sort_unstable();
        members
    }

    /// Checks that node `me` can run with this configuration.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn check_for(&self, me: NodeId) -> Result<(), ConfigError> {
        self.check()?;
        self.node(me)
            .map(|_| ())
            .ok_or(ConfigError::UnknownNode(me))
    }

    /// Checks that a cluster can run with this configuration.
    ///
    /// # Errors
    /// [`ConfigError`]: the first thing that is wrong.
    pub fn check(&self) -> Result<(), ConfigError> {
        match (self.insecure, &self.key_file) {
            (false, None) => return Err(ConfigError::NotSealed),
            (true, Some(_)) => return Err(ConfigError::InsecureWithKey),
            _ => {}
        }
        self.check_nodes()?;
        self.directory()?;
        self.check_transport()?;
        self.check_primary()?;
        self.check_paxos()?;
        if self.link_yields && self.engine != EngineName::FastCast {
            return Err(ConfigError::YieldsUnused);
        }
        if let Some(method) = self.priority_method
            && !(1..=2).contains(&method)
        {
            return Err(ConfigError::PriorityMethod(method));
        }
        let faults = self.faults.as_ref();
        if faults.is_some_and(|faults| !faults.is_valid()) {
            return Err(ConfigError::Faults);
        }
        self.ring_config().check().map_err(ConfigError::Ring)
    }

    fn check_nodes(&self) -> Result<(), ConfigError> {
        let mut ids = BTreeSet::new();
        let mut addresses = BTreeSet::new();
        for node in &self.nodes {
            if node.id == 0 {
                return Err(ConfigError::NodeIdZero);
            }
            if !ids.insert(node.id) {
                return Err(ConfigError::DuplicateNode(node.id));
            }
            if node.data_port == 0 || node.token_port == 0 {
                return Err(ConfigError::PortZero(node.id));
            }
            for address in [node.data(), node.token()] {
                if !addresses.insert(address) {
                    return Err(ConfigError::DuplicateAddress(address));
                }
            }
        }
        self.check_addresses()
    }

    /// The keys to seal datagrams with; `None` if they are not sealed. Reads the key file.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn keys(&self) -> Result<Option<KeyRing>, KeyError> {
        self.key_file.as_deref().map(KeyRing::load).transpose()
    }

    /// The delay of a timer, in nanoseconds, that means that the process stood still, and that a ring which it was on
    /// has gone on without it.
    pub(crate) fn overslept_nanos(&self) -> u64 {
        match self.engine.has_votes() {
            true => u64::MAX,
            false => self.ring_config().timers.token_loss / 2,
        }
    }

    /// The configuration of the ring engine: the settings of this file over the engine's defaults. A node itself goes
    /// by [`NodeConfig::ring_config_at`], since datagrams have to fit its paths.
    pub fn ring_config(&self) -> RingConfig {
        let members = self.members();
        let timing = match self.timing {
            TimingName::LanFast => Timing::LanFast,
            TimingName::Default => Timing::Default,
            TimingName::Relaxed => Timing::Relaxed,
        };
        let timers = Timers::derive(timing, members.len());
        let mut ring = RingConfig::new(self.wire_cluster(), members);
        if self.engine == EngineName::TotemRing {
            ring = ring.original();
        }
        ring.closed = !self.open_membership;
        ring.timers = timers;
        ring.trace = self.trace.is_some();
        let set = |field: &mut u32, value: Option<u32>| *field = value.unwrap_or(*field);
        set(&mut ring.personal_window, self.personal_window);
        if ring.protocol == Protocol::Accelerated {
            // A smaller personal window alone must not make the default accelerated one wrong.
            ring.accelerated_window = ring.accelerated_window.min(ring.personal_window);
        }
        set(&mut ring.accelerated_window, self.accelerated_window);
        set(&mut ring.global_window, self.global_window);
        set(&mut ring.outstanding_window, self.outstanding_window);
        match self.priority_method {
            Some(1) => ring.priority_method = PriorityMethod::First,
            Some(_) => ring.priority_method = PriorityMethod::Second,
            None => {}
        }
        let set = |field: &mut usize, value: Option<usize>| *field = value.unwrap_or(*field);
        if self.nodes.iter().any(|node| node.address.is_ipv6()) {
            ring.datagram_bytes -= IPV6_EXTRA_BYTES;
        }
        set(&mut ring.datagram_bytes, self.datagram_bytes);
        if self.key_file.is_some() {
            ring.seal_bytes = SEALED_BYTES;
        }
        set(&mut ring.message_bytes, self.message_bytes);
        set(&mut ring.backlog_bytes, self.backlog_bytes);
        self.make_room_for_primary(&mut ring);
        if self.primary_in_force() != PrimaryName::None {
            ring.electorate = self.counted_nodes();
        }
        ring
    }
}

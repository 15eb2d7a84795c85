//! A node's configuration: one TOML file that all nodes of a cluster can share.

mod address;
mod datagrams;
mod differences;
pub(crate) mod engine;
mod error;
mod host;
mod hosts;
mod names;
mod paths;
mod paxos;
mod primary;
mod ring;
mod timing;
mod transport;

pub(crate) use address::with_nodes;
pub use datagrams::DatagramSize;
pub use differences::{DIFFERENCES, Difference, DifferencesTable, Outcome};
pub use error::ConfigError;
pub use host::HostError;
pub use paths::path_of;
pub(crate) use paths::text_of;
pub use paxos::{CoordinationName, PaxosConfig, VoteStorage};
pub use primary::{PrimaryName, ResetPrimary};
pub use rota_core::EngineName;
pub use timing::TimingName;

use rota_core::contract::NodeId;
use rota_core::groups::Directory;
use rota_core::timing::Timers;
use rota_net::{FaultConfig, KeyError, KeyRing, Network, NodeAddress, Transport, Tuning};
use rota_ring::RingConfig;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::num::{NonZeroU8, NonZeroU32};
use std::path::{Path, PathBuf};

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
    /// All time-outs are this many times longer: for measurements in slow motion (`rota bench --slow`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_scale: Option<std::num::NonZeroU32>,
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
            time_scale: None,
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

    /// The address of a node; `None` if it is not listed, or its name has not been looked up.
    pub fn address(&self, id: NodeId) -> Option<IpAddr> {
        Some(self.node(id).filter(|node| node.is_known())?.address)
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
        address::check(&self.nodes)?;
        self.directory()?;
        transport::check(self)?;
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
        ring::config(self)
    }

    /// The same for node `me` on this host, with datagrams that fit the paths to the peers unless the configuration sets
    /// their size. Warns about datagrams that will be fragmented.
    ///
    /// # Errors
    /// [`ConfigError::PathMtu`] where a path is too narrow for the smallest datagram.
    pub fn ring_config_at(&self, me: NodeId) -> Result<RingConfig, ConfigError> {
        self.datagram_size(me).apply(self.ring_config())
    }

    /// The size of the datagrams of node `me`. Looks the paths up in this host's kernel, and sends nothing.
    pub fn datagram_size(&self, me: NodeId) -> DatagramSize {
        DatagramSize::of(self, me)
    }

    /// The time-outs of the family, longer where the configuration says so.
    fn timers(&self) -> Timers {
        let scale = self.time_scale.map_or(1, NonZeroU32::get);
        self.timing.timers(self.members().len()).times(scale)
    }

    /// The configuration of sockets and links.
    pub fn network(&self) -> Network {
        Network {
            cluster: self.wire_cluster(),
            nodes: self.nodes.clone(),
            transport: self.transport,
            interface: self.interface.clone(),
            multicast_ttl: self.multicast_ttl.unwrap_or(NonZeroU8::MIN),
            open_membership: self.open_membership,
            key_file: self.key_file.clone(),
            tuning: Tuning {
                receive_buffer_bytes: self.receive_buffer_bytes,
                send_buffer_bytes: Some(self.send_buffer_bytes),
                offload: self.offload,
            },
            timers: self.timers(),
        }
    }

    /// The names of the daemons, as clients know them.
    ///
    /// # Errors
    /// [`ConfigError`]: a name that is none, or that could be taken for another node's.
    pub fn directory(&self) -> Result<Directory, ConfigError> {
        names::directory(&self.nodes)
    }

    /// The trace file of this node.
    pub fn trace_of(&self, node: NodeId) -> Option<PathBuf> {
        self.trace.as_deref().map(|path| path_of(path, node))
    }

    /// Checks that this host has what node `me` needs: its address, the interface, a directory that can be written.
    ///
    /// # Errors
    /// [`HostError`]: the first thing that is missing.
    pub fn check_host(&self, me: NodeId) -> Result<(), HostError> {
        host::check(&self.resolved(me), me)
    }

    /// Looks up the names of the nodes for node `me`, which has to have an address: it is waited for, up to half a minute. Other
    /// nodes' names may have none yet, and are looked up while the node runs. Does nothing where there are no names.
    ///
    /// Returns the configuration with the addresses that were found.
    #[must_use]
    pub fn resolved(&self, me: NodeId) -> Self {
        hosts::resolved(self, Some(me))
    }

    /// The same for a node that is not chosen yet: no name is waited for longer than a moment.
    #[must_use]
    pub fn resolved_as_seen(&self) -> Self {
        hosts::resolved(self, None)
    }
}

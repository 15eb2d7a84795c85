//! The section `[daemon]` of a configuration.

mod change;
mod error;
mod paths;
mod rules;
mod slow;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use ipnet::IpNet;
use rota_client::protocol::largest_message_frame;
use rota_core::contract::NodeId;
use rota_core::groups::{Limits, MOST_HOLD_MS, MOST_PAYLOAD_BYTES, OVERHEAD_BYTES};
use rota_node::NodeConfig;
use serde::Deserialize;

use crate::access::{Access, AccessRule};
use crate::tls::TlsConfig;
pub use error::DaemonConfigError;
use paths::SocketPaths;
pub use slow::{SlowClients, ThrottleThen};

/// The most shared memory for the frames of one client, in bytes.
const MOST_MEMORY_BYTES: usize = rota_memory::MOST_BYTES;

/// The settings of a daemon beside those of every node.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DaemonConfig {
    /// The Unix socket for clients, in a directory that exists. `{node}` stands for the node's number.
    pub socket: PathBuf,
    /// The Unix socket at which the daemon serves its status, for its owner only. `{node}` stands for the node's
    /// number.
    pub admin: PathBuf,
    /// Addresses of the loopback interface where clients can connect as well.
    pub tcp: Vec<SocketAddr>,
    /// The largest message of a client, in bytes; at most 64 MiB.
    pub message_bytes: usize,
    /// Clients that may be connected.
    pub clients: usize,
    /// Groups that one client may be in.
    pub client_memberships: usize,
    /// Bytes that may wait for a client. `slow_clients` decides about a client for which more waits: if it has read
    /// nothing for a second, or less than 64 KiB in one, or if 8 MiB more wait.
    pub client_queue_bytes: usize,
    /// Bytes that may wait for all clients together; a quarter of them is the limit for the clients of one user or
    /// address. Beyond either limit, the client with the most waiting bytes is treated as if these were too many for
    /// itself.
    pub queues_bytes: u64,
    /// Memory through which a client of this host gets its frames, if it can, in bytes; at most 64 MiB. 0: they go
    /// through its socket. Bytes in the memory, or in the socket, no longer count as waiting.
    pub client_memory_bytes: usize,
    /// The policy for clients for which too much waits. A client may ask for less patience, not for more.
    pub slow_clients: SlowClients,
    /// With `slow_clients = "throttle"`: the longest time for which senders to a client's groups wait for it at once,
    /// in milliseconds.
    pub throttle_ms: u32,
    /// With `slow_clients = "throttle"`: the policy for a client for which senders have waited for that time, or for
    /// which too much waits even so.
    pub throttle_then: ThrottleThen,
    /// The time that a client may take to say who it is, in milliseconds.
    pub handshake_ms: u64,
    /// The most connections that have not said who they are.
    pub handshakes: usize,
    /// The access rules; without a rule a peer that can open a socket may do everything.
    pub access: Vec<AccessRule>,
    /// Connections from one address, over all ports that are reached by TCP.
    pub per_address: usize,
    /// Connections of one user of this host by Unix sockets; root and the daemon's own user have no such limit.
    pub per_user: usize,
    /// The listeners for clients of other hosts; without this section there are none.
    pub tls: Option<TlsConfig>,
    /// The address at which metrics and status are served over HTTP; without it they are not served.
    pub metrics: Option<SocketAddr>,
    /// The address of the metrics may be one that other hosts can reach, although HTTP protects nothing.
    pub metrics_insecure: bool,
    /// Host names under which the metrics may be requested, beside addresses, `localhost` and this host's own name;
    /// `*`: any.
    pub metrics_hosts: Vec<String>,
    /// Tells clients of any daemon that may ask how this one is ([`crate::teller`]).
    pub cluster_status: bool,
    /// Real-time priority of the ring's thread, from 1 to 99; none: an ordinary one.
    pub realtime: Option<u8>,
    /// The levels of the log: one for all, and others for targets, which are crates and modules: `info,rota_net=debug`.
    /// The program that writes the log reads it.
    pub log: String,
    /// The port for Spread's clients; closed if there is no such section.
    pub spread: Option<SpreadConfig>,
}

/// The sockets for Spread's clients. Their protocol has no protection.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SpreadConfig {
    /// A Unix socket; Spread's own is `/tmp/4803`. `{node}` stands for the node's number.
    pub socket: Option<PathBuf>,
    /// Addresses to listen at; Spread's port is 4803.
    pub tcp: Vec<SocketAddr>,
    /// Networks whose clients may connect by TCP. Needed if one of the addresses is not of the loopback interface.
    pub allow: Allow,
}

/// Networks whose clients may connect by TCP; if there are none, only this host's.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Allow(Vec<IpNet>);

impl Default for DaemonConfig {
    fn default() -> Self {
        Self {
            socket: PathBuf::from("/run/rota/rota.sock"),
            admin: PathBuf::from("/run/rota/admin.sock"),
            tcp: Vec::new(),
            message_bytes: 1 << 20,
            clients: 4096,
            client_memberships: 1024,
            client_queue_bytes: 16 << 20,
            queues_bytes: 4 << 30,
            client_memory_bytes: 256 << 10,
            slow_clients: SlowClients::default(),
            throttle_ms: 2_000,
            throttle_then: ThrottleThen::default(),
            handshake_ms: 10_000,
            handshakes: 256,
            access: Vec::new(),
            per_address: 256,
            per_user: 1024,
            tls: None,
            metrics: None,
            metrics_insecure: false,
            metrics_hosts: Vec::new(),
            cluster_status: false,
            realtime: None,
            log: "info".to_owned(),
            spread: None,
        }
    }
}

impl Allow {
    /// Whether a client at this address may connect.
    pub fn allows(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        if self.0.is_empty() {
            address.is_loopback()
        } else {
            self.0.iter().any(|net| net.contains(&address))
        }
    }
}

impl fmt::Display for Allow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, others)) = self.0.split_first() else {
            return f.write_str("this host only");
        };
        first.fmt(f)?;
        others.iter().try_for_each(|net| write!(f, ", {net}"))
    }
}

/// The sections of a file that this crate reads.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct File {
    daemon: DaemonConfig,
}

impl DaemonConfig {
    /// Reads the section of a configuration file; the defaults where there is none.
    ///
    /// # Errors
    /// [`DaemonConfigError`], with the line where that is known.
    pub fn from_toml(text: &str) -> Result<Self, DaemonConfigError> {
        let file: File =
            toml::from_str(text).map_err(|error| DaemonConfigError::Syntax(Box::new(error)))?;
        file.daemon.check()?;
        Ok(file.daemon)
    }

    /// The path of the admin socket of this node.
    pub fn admin_of(&self, node: NodeId) -> PathBuf {
        rota_node::path_of(&self.admin, node)
    }

    /// Whether a daemon can run with this.
    ///
    /// # Errors
    /// [`DaemonConfigError`]: the first thing that is wrong.
    pub fn check(&self) -> Result<(), DaemonConfigError> {
        let not_zero = [
            ("message_bytes", self.message_bytes),
            ("clients", self.clients),
            ("client_memberships", self.client_memberships),
            ("client_queue_bytes", self.client_queue_bytes),
            ("handshake_ms", self.handshake_ms as usize),
            ("handshakes", self.handshakes),
            ("per_address", self.per_address),
            ("per_user", self.per_user),
            ("queues_bytes", usize::from(self.queues_bytes > 0)),
        ];
        if let Some((name, _)) = not_zero.into_iter().find(|(_, value)| *value == 0) {
            return Err(DaemonConfigError::Zero(name));
        }
        if !(1..=MOST_HOLD_MS).contains(&self.throttle_ms) {
            return Err(DaemonConfigError::Throttle(MOST_HOLD_MS));
        }
        if self.client_memory_bytes > MOST_MEMORY_BYTES {
            return Err(DaemonConfigError::MemoryBytes(MOST_MEMORY_BYTES));
        }
        if self.message_bytes > MOST_PAYLOAD_BYTES {
            return Err(DaemonConfigError::MessageBytes(MOST_PAYLOAD_BYTES));
        }
        let least = largest_message_frame(self.message_bytes);
        if self.client_queue_bytes < least {
            return Err(DaemonConfigError::QueueBytes(least));
        }
        let beyond = |address: &&SocketAddr| !address.ip().is_loopback();
        if let Some(address) = self.metrics.as_ref().filter(beyond)
            && !self.metrics_insecure
        {
            return Err(DaemonConfigError::OpenMetrics(*address));
        }
        if let Some(priority) = self
            .realtime
            .filter(|priority| !(1..=99).contains(priority))
        {
            return Err(DaemonConfigError::Realtime(priority));
        }
        if let Some(address) = self.tcp.iter().find(beyond) {
            return Err(DaemonConfigError::NotLoopback(*address));
        }
        if let Some(spread) = &self.spread
            && spread.allow.0.is_empty()
            && let Some(address) = spread.tcp.iter().find(beyond)
        {
            return Err(DaemonConfigError::OpenToAll(*address));
        }
        if let Some(tls) = &self.tls {
            self.check_tls(tls)?;
        }
        rules::check(self)
    }

    /// Whether node `me` can bind its Unix sockets: each path is short enough for the system, and no two are the same.
    ///
    /// # Errors
    /// [`DaemonConfigError`]: the first path that cannot be used.
    pub fn check_paths(&self, me: NodeId) -> Result<(), DaemonConfigError> {
        SocketPaths::of(self, me).check()
    }

    /// Whether this host has the users and groups of the rules; beyond what [`Self::check`] says.
    ///
    /// # Errors
    /// [`DaemonConfigError::Access`].
    pub fn check_here(&self) -> Result<(), DaemonConfigError> {
        self.look_up_access().map(|_| ())
    }

    pub(crate) fn look_up_access(&self) -> Result<Access, DaemonConfigError> {
        let access = Access::new(&self.access);
        access.map_err(|(rule, error)| DaemonConfigError::Access(rule, error))
    }

    /// Whether the ring of this node takes what daemons send each other, and all daemons are on it.
    ///
    /// # Errors
    /// [`DaemonConfigError::Ring`], [`DaemonConfigError::Observers`].
    pub fn check_ring(&self, node: &NodeConfig) -> Result<(), DaemonConfigError> {
        // Larger messages are sent in parts.
        let whole = self.message_bytes.min(Limits::default().backlog_bytes);
        let least = whole + OVERHEAD_BYTES;
        if node.message_limit() < least {
            return Err(DaemonConfigError::Ring(least));
        }
        if !node.observers().is_empty() {
            return Err(DaemonConfigError::Observers);
        }
        Ok(())
    }

    fn check_tls(&self, tls: &TlsConfig) -> Result<(), DaemonConfigError> {
        if tls.listen.is_empty() {
            return Err(DaemonConfigError::TlsNowhere);
        }
        if tls.client_ca.is_none() && !tls.anonymous {
            return Err(DaemonConfigError::TlsWithoutCa);
        }
        if tls.client_crl.is_some() && tls.client_ca.is_none() {
            return Err(DaemonConfigError::CrlWithoutCa);
        }
        if tls.anonymous && self.access.is_empty() {
            return Err(DaemonConfigError::TlsOpenToAll);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

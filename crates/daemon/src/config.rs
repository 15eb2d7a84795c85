//! The section `[daemon]` of a configuration.

mod change;
mod paths;
mod rules;
mod slow;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use ipnet::IpNet;
use rota_client::protocol::largest_message_frame;
use rota_core::groups::{Limits, MOST_HOLD_MS, MOST_PAYLOAD_BYTES, OVERHEAD_BYTES};
use rota_net::NodeConfig;
use serde::Deserialize;

use crate::access::{AccessError, AccessRule};
use crate::tls::TlsConfig;
pub use slow::{SlowClients, ThrottleThen};

/// The most memory for what one client is told, in bytes.
const MOST_MEMORY_BYTES: usize = 64 << 20;

/// What a daemon is told beside what every node is.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DaemonConfig {
    /// The Unix socket for clients, in a directory that exists. `{node}` stands for the node's number.
    pub socket: PathBuf,
    /// The Unix socket at which the daemon says how it is, for its owner only. `{node}` stands for the
    /// node's number.
    pub admin: PathBuf,
    /// Addresses of the loopback interface where clients can connect as well.
    pub tcp: Vec<SocketAddr>,
    /// The largest message of a client, in bytes; at most 64 MiB.
    pub message_bytes: usize,
    /// Clients that may be connected.
    pub clients: usize,
    /// Groups that one client may be in.
    pub client_memberships: usize,
    /// Bytes that may wait for a client that does not read: what becomes of one for whom more would wait,
    /// `slow_clients` says.
    pub client_queue_bytes: usize,
    /// Bytes that may wait for all clients together, and a quarter of these for those of one user or address: beyond
    /// that, the client for which most waits is treated as if that were too much for itself.
    pub queues_bytes: u64,
    /// Memory through which a client of this host is told things, if it can, in bytes; at most 64 MiB. 0: they go
    /// through its socket. What is in there, or in the socket, no longer counts as waiting.
    pub client_memory_bytes: usize,
    /// What becomes of such clients. They may ask for less patience, not for more.
    pub slow_clients: SlowClients,
    /// With `slow_clients = "throttle"`: how long at most those who send to the groups of a client are made to wait
    /// for it at once, in milliseconds.
    pub throttle_ms: u32,
    /// With `slow_clients = "throttle"`: what becomes of a client for which they have waited so long, or for which
    /// too much waits even so.
    pub throttle_then: ThrottleThen,
    /// How long a client may take to say who it is, in milliseconds.
    pub handshake_ms: u64,
    /// Connections that have not said who they are.
    pub handshakes: usize,
    /// Who may do what; whoever can open a socket may do everything where there is no rule.
    pub access: Vec<AccessRule>,
    /// Connections from one address, of all ports that are reached by TCP.
    pub per_address: usize,
    /// Connections of one user of this host by Unix sockets; of the daemon's own user and root as many as there may be.
    pub per_user: usize,
    /// Where clients of other hosts connect; nowhere if there is no such section.
    pub tls: Option<TlsConfig>,
    /// Address at which metrics and status are served over HTTP; nowhere if there is none.
    pub metrics: Option<SocketAddr>,
    /// That address may be one that other hosts can reach, though nothing is protected there.
    pub metrics_insecure: bool,
    /// Real-time priority of the ring's thread, from 1 to 99; none: an ordinary one.
    pub realtime: Option<u8>,
    /// The port for Spread's clients; closed if there is no such section.
    pub spread: Option<SpreadConfig>,
}

/// Where Spread's clients connect. Their protocol has no protection.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SpreadConfig {
    /// A Unix socket; Spread's own is `/tmp/4803`. `{node}` stands for the node's number.
    pub socket: Option<PathBuf>,
    /// Addresses to listen at; Spread's port is 4803.
    pub tcp: Vec<SocketAddr>,
    /// Who may connect by TCP. Needed where one of the addresses is not of the loopback interface.
    pub allow: Allow,
}

/// Networks whose clients may connect by TCP; none of them: this host's only.
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
            realtime: None,
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

/// What is wrong with the section.
#[derive(Debug)]
pub enum DaemonConfigError {
    /// An unknown setting, or a value of the wrong kind.
    Syntax(Box<toml::de::Error>),
    /// There are no clients, no room for them or no time.
    Zero(&'static str),
    /// The port for Spread's clients is open to other hosts, and `allow` does not say to which.
    OpenToAll(SocketAddr),
    /// Clients of other hosts could connect, and would not be protected.
    NotLoopback(SocketAddr),
    /// The path of a Unix socket is longer than so many bytes.
    LongPath(PathBuf, usize),
    /// Two sockets have one path.
    SamePath(PathBuf, &'static str, &'static str),
    /// `[daemon.tls]` listens nowhere.
    TlsNowhere,
    /// `[daemon.tls]` does not say what certificates clients have to have.
    TlsWithoutCa,
    /// `client_crl` without `client_ca`: nobody shows a certificate.
    CrlWithoutCa,
    /// Everybody could do everything from everywhere.
    TlsOpenToAll,
    /// A rule of `[[daemon.access]]`, counted from 1 on.
    Access(usize, AccessError),
    /// Metrics are served, and no rule lets anybody read them.
    MetricsForNobody,
    /// A daemon that runs was to lose all its rules.
    RulesGone,
    /// A daemon that runs cannot change so: what needs a restart would still be as it was.
    BeforeRestart(Box<DaemonConfigError>),
    /// Metrics could be read from other hosts, and nobody has said that they may.
    OpenMetrics(SocketAddr),
    /// No real-time priority has this number.
    Realtime(u8),
    /// Senders would wait too long, or not at all: the longest time, in milliseconds.
    Throttle(u32),
    /// A client would get too much memory: the limit, in bytes.
    MemoryBytes(usize),
    /// Messages would be too large: the limit, in bytes.
    MessageBytes(usize),
    /// Messages that are not sent in parts would be too large for the ring: the least `message_bytes` it needs.
    Ring(usize),
    /// The largest message would be too much for every client: the least `client_queue_bytes`.
    QueueBytes(usize),
}

impl fmt::Display for DaemonConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(error) => error.fmt(f),
            Self::Zero(name) => write!(f, "[daemon]: {name} must not be 0"),
            Self::LongPath(path, most) => write!(
                f,
                "[daemon]: the path of a socket has at most {most} bytes: {}",
                path.display()
            ),
            Self::SamePath(path, one, other) => write!(
                f,
                "[daemon]: {one} and {other} are both {}: each needs a path of its own",
                path.display()
            ),
            Self::OpenToAll(address) => write!(
                f,
                "[daemon.spread]: {address} can be reached from other hosts, and its clients are not \
                 protected: say with `allow` from which networks they may come"
            ),
            Self::NotLoopback(address) => write!(
                f,
                "[daemon]: {address} can be reached from other hosts, and clients would not be protected \
                 there: let them connect by [daemon.tls]"
            ),
            Self::TlsNowhere => f.write_str("[daemon.tls]: listen must not be empty"),
            Self::TlsWithoutCa => f.write_str(
                "[daemon.tls]: say with `client_ca` where certificates of clients come from, or \
                 `anonymous = true` if they need none",
            ),
            Self::CrlWithoutCa => {
                f.write_str("[daemon.tls]: `client_crl` is for certificates of `client_ca`")
            }
            Self::TlsOpenToAll => f.write_str(
                "[daemon.tls]: with `anonymous` everybody can connect: say with rules of \
                 [[daemon.access]] what they may do",
            ),
            Self::Access(rule, error) => write!(f, "[[daemon.access]], rule {rule}: {error}"),
            Self::MetricsForNobody => f.write_str(
                "[daemon]: no rule lets anybody read the metrics: give `admin` to an address, or to anyone",
            ),
            Self::RulesGone => f.write_str(
                "[[daemon.access]]: without rules all who are connected could do everything: that takes a \
                 restart, or a rule that gives it",
            ),
            Self::BeforeRestart(error) => {
                write!(f, "with what cannot change before a restart: {error}")
            }
            Self::OpenMetrics(address) => write!(
                f,
                "[daemon]: {address} can be reached from other hosts, and whoever reaches it can read the \
                 metrics and the names of all clients: say `metrics_insecure = true` if they may"
            ),
            Self::Realtime(priority) => write!(
                f,
                "[daemon]: realtime must be between 1 and 99, not {priority}"
            ),
            Self::Throttle(_)
            | Self::MemoryBytes(_)
            | Self::MessageBytes(_)
            | Self::Ring(_)
            | Self::QueueBytes(_) => self.fmt_limit(f),
        }
    }
}

impl DaemonConfigError {
    /// Numbers that others bound.
    fn fmt_limit(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Throttle(most) => {
                write!(f, "[daemon]: throttle_ms must be between 1 and {most}")
            }
            Self::MemoryBytes(limit) => {
                write!(f, "[daemon]: client_memory_bytes may be at most {limit}")
            }
            Self::MessageBytes(limit) => {
                write!(f, "[daemon]: message_bytes may be at most {limit}")
            }
            Self::Ring(least) => write!(
                f,
                "message_bytes of the ring must be at least {least} for message_bytes of [daemon]"
            ),
            Self::QueueBytes(least) => write!(
                f,
                "[daemon]: client_queue_bytes must be at least {least}, or nobody could be sent a \
                 message of message_bytes"
            ),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for DaemonConfigError {}

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

    /// Where the daemon of this node says how it is.
    pub fn admin_of(&self, node: rota_core::contract::NodeId) -> PathBuf {
        rota_net::path_of(&self.admin, node)
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
        self.check_access()
    }

    /// Whether the ring of this node takes what daemons send each other.
    ///
    /// # Errors
    /// [`DaemonConfigError::Ring`].
    pub fn check_ring(&self, node: &NodeConfig) -> Result<(), DaemonConfigError> {
        // Larger messages are sent in parts.
        let whole = self.message_bytes.min(Limits::default().backlog_bytes);
        let least = whole + OVERHEAD_BYTES;
        if node.message_limit() < least {
            return Err(DaemonConfigError::Ring(least));
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

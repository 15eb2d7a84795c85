//! The errors of the section `[daemon]`.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::access::AccessError;

/// An error in the section.
#[derive(Debug)]
pub enum DaemonConfigError {
    /// An unknown setting, or a value of the wrong kind.
    Syntax(Box<toml::de::Error>),
    /// A number of which there has to be at least one is 0.
    Zero(&'static str),
    /// The port for Spread's clients is open to other hosts, and `allow` does not name their networks.
    OpenToAll(SocketAddr),
    /// Clients of other hosts could connect, and would not be protected.
    NotLoopback(SocketAddr),
    /// The path of a Unix socket is longer than this number of bytes.
    LongPath(PathBuf, usize),
    /// Two sockets have one path.
    SamePath(PathBuf, &'static str, &'static str),
    /// `[daemon.tls]` listens nowhere.
    TlsNowhere,
    /// `[daemon.tls]` does not say what certificates clients have to have.
    TlsWithoutCa,
    /// `client_crl` without `client_ca`: no client shows a certificate.
    CrlWithoutCa,
    /// Everybody could do everything from everywhere.
    TlsOpenToAll,
    /// A rule of `[[daemon.access]]`, counted from 1 on.
    Access(usize, AccessError),
    /// Metrics are served, and no rule gives anybody the right to read them.
    MetricsForNobody,
    /// A daemon that runs was to lose all its rules.
    RulesGone,
    /// A running daemon cannot take this change: together with the settings that need a restart, it is an error.
    BeforeRestart(Box<DaemonConfigError>),
    /// Metrics could be read from other hosts, and `metrics_insecure` does not allow that.
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
    /// The ring has observers, and a daemon's clients join groups.
    Observers,
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
            Self::OpenMetrics(address) => write!(
                f,
                "[daemon]: {address} can be reached from other hosts, and whoever reaches it can read the \
                 metrics and the names of all clients: say `metrics_insecure = true` if they may"
            ),
            Self::BeforeRestart(_)
            | Self::Observers
            | Self::Realtime(_)
            | Self::Throttle(_)
            | Self::MemoryBytes(_)
            | Self::MessageBytes(_)
            | Self::Ring(_)
            | Self::QueueBytes(_) => self.fmt_limit(f),
        }
    }
}

impl DaemonConfigError {
    /// What the ring, or the system, bounds.
    fn fmt_limit(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeforeRestart(error) => {
                write!(f, "with what cannot change before a restart: {error}")
            }
            Self::Observers => f.write_str(
                "[paxos]: `observers` is for programs with the library, which deliver what a ring orders: clients of daemons join \
                 groups, and each daemon has to be on the ring; take it out",
            ),
            Self::Realtime(priority) => write!(
                f,
                "[daemon]: realtime must be between 1 and 99, not {priority}"
            ),
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

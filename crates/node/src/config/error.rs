//! The errors of a configuration.

use rota_core::contract::NodeId;
use rota_core::groups::NameError;
use rota_ring::{RingConfig, RingConfigError};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use rota_net::sockets::PathMtu;

/// An error of a configuration.
#[derive(Debug)]
pub enum ConfigError {
    /// The file cannot be read.
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// Not TOML, an unknown setting or a value of the wrong kind.
    Syntax(Box<toml::de::Error>),
    /// The same, in this line, which may contain a password.
    Secret(usize),
    /// The configuration cannot be written as TOML.
    Write(toml::ser::Error),
    /// Neither `key_file` nor `insecure = true` is there.
    NotSealed,
    /// Both are.
    InsecureWithKey,
    /// A node has the id 0.
    NodeIdZero,
    /// Two nodes have this id.
    DuplicateNode(u16),
    /// Two sockets have this address.
    DuplicateAddress(String),
    /// A node has port 0.
    PortZero(u16),
    /// The name of this node is none.
    NodeName(u16, NameError),
    /// This name could be that of two nodes.
    DuplicateName(String),
    /// This node is not listed.
    UnknownNode(NodeId),
    /// Not a multicast address, or without a port.
    NotMulticast(SocketAddr),
    /// A node's address is of the other IP version than the group or the other nodes.
    MixedAddresses(IpAddr),
    /// The address of this node is neither an address nor the name of a host.
    HostName(u16, String),
    /// The address of this node is not that of a single host.
    NoHost(u16, IpAddr),
    /// Some nodes have addresses of the loopback interface, and others do not.
    LoopbackBesideOthers,
    /// IPv6 multicast needs `interface`.
    NeedsInterface,
    /// `priority_method` is neither 1 nor 2.
    PriorityMethod(u8),
    /// A probability of `[faults]` is not between 0 and 1.
    Faults,
    /// `primary = "dynamic"` without `state_dir`.
    PrimaryNeedsState,
    /// `reset_primary` where nothing is kept of primaries.
    ResetWithoutPrimary,
    /// `primary_nodes` without `primary`.
    PrimaryNodesUnused,
    /// `primary_nodes` has none, or more than this number.
    PrimaryNodes(usize),
    /// `[paxos]` with an engine that has no votes.
    PaxosUnused,
    /// Votes are to be kept on disk, without `state_dir`.
    VotesNeedState,
    /// `primary` with an engine that votes.
    PrimaryWithVotes,
    /// `link_yields` with another engine than `fastcast`.
    YieldsUnused,
    /// `open_membership` with an engine that votes.
    OpenWithVotes,
    /// `acceptors` is empty.
    NoAcceptors,
    /// An acceptor is listed twice, or is no node.
    Acceptor(u16),
    /// An observer is listed twice, is an acceptor, or is no node.
    Observer(u16),
    /// `etcd` without `coordination = "etcd"`.
    EtcdUnused,
    /// `coordination = "etcd"`, and `etcd` names no member.
    NoEtcd,
    /// This is not the name of a member of etcd.
    Etcd(String),
    /// `etcd_tls` has a certificate without a key, or a key without a certificate.
    EtcdCertificate,
    /// `etcd_login` has no user.
    EtcdUser,
    /// Windows or sizes do not fit together.
    Ring(RingConfigError),
    /// A path takes no packet with the smallest datagram.
    PathMtu(PathMtu),
}

impl ConfigError {
    /// An error of the syntax. It shows the text that was not understood, but no password.
    pub(super) fn syntax(text: &str, error: toml::de::Error) -> Self {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        let before = text.as_bytes()[..at].split(|byte| *byte == b'\n').count();
        let is_secret = text
            .lines()
            .nth(before - 1)
            .is_some_and(|line| line.replace("password_file", "").contains("password"));
        match is_secret {
            true => Self::Secret(before),
            false => Self::Syntax(Box::new(error)),
        }
    }

    /// The text of an error about votes, where the text is always the same.
    const fn of_votes(&self) -> &'static str {
        match self {
            Self::VotesNeedState => {
                "votes have to outlive their node: set `state_dir`, or write `[paxos]` with `storage = \"memory\"` \
                 if a majority of the acceptors never ends at once"
            }
            Self::PrimaryWithVotes => {
                "primary says who goes on where nobody votes: take it out, acceptors decide that here"
            }
            Self::YieldsUnused => "link_yields is for engine = \"fastcast\": take it out",
            Self::OpenWithVotes => "open_membership is not for engines that vote: list all nodes",
            Self::NoAcceptors => "acceptors lists at least one node",
            Self::EtcdUnused => {
                "etcd is not asked: set `coordination = \"etcd\"` in [paxos], or take out what begins with `etcd`"
            }
            Self::NoEtcd => {
                "coordination = \"etcd\" has to know where etcd is: list its members, \
                 `etcd = [\"http://HOST:2379\"]` in [paxos]"
            }
            Self::EtcdCertificate => {
                "etcd_tls has one of `certificate` and `key`: they belong together, set both or none"
            }
            Self::EtcdUser => "etcd_login has no `user`: say who this node is at etcd",
            _ => "[paxos] is for engines that vote, and this one does not",
        }
    }

    /// Writes the text of an error of `[paxos]` that shows a value.
    fn fmt_of_votes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secret(line) => write!(
                f,
                "line {line} is not understood; it is not shown, since a password may be in it: those are in files of their own, \
                 which `password_file` names"
            ),
            Self::Acceptor(id) => {
                write!(f, "acceptor {id} is listed twice, or there is no such node")
            }
            Self::Observer(id) => write!(
                f,
                "observer {id} is listed twice, is an acceptor, or there is no such node"
            ),
            Self::Etcd(url) => write!(
                f,
                "etcd lists `{url}`, and members are named like http://HOST:PORT, mostly with port 2379; with `etcd_tls`, \
                 which says whom to trust, like https://HOST:PORT"
            ),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { path, error } => write!(f, "cannot read {}: {error}", path.display()),
            Self::Syntax(error) => error.fmt(f),
            Self::Write(error) => error.fmt(f),
            Self::NotSealed | Self::InsecureWithKey => f.write_str(self.of_seal()),
            Self::NodeIdZero
            | Self::DuplicateNode(_)
            | Self::DuplicateAddress(_)
            | Self::PortZero(_)
            | Self::NodeName(..)
            | Self::DuplicateName(_)
            | Self::UnknownNode(_)
            | Self::NotMulticast(_)
            | Self::MixedAddresses(_)
            | Self::HostName(..)
            | Self::NoHost(..)
            | Self::NeedsInterface
            | Self::LoopbackBesideOthers => self.fmt_of_nodes(f),
            Self::PriorityMethod(method) => write!(f, "priority_method is 1 or 2, not {method}"),
            Self::Faults => f.write_str("probabilities in [faults] are between 0 and 1"),
            Self::PrimaryNeedsState => f.write_str(
                "primary = \"dynamic\" has to remember what it agreed to: set `state_dir`",
            ),
            Self::ResetWithoutPrimary => {
                f.write_str("reset_primary is for nodes with primaries and a `state_dir`: others keep nothing of them")
            }
            Self::PrimaryNodesUnused => f.write_str(
                "primary_nodes says who counts in a primary: set `primary` to \"static\" or \"dynamic\"",
            ),
            Self::PrimaryNodes(most) => {
                write!(f, "primary_nodes lists at least one node, and at most {most}")
            }
            Self::PaxosUnused
            | Self::VotesNeedState
            | Self::PrimaryWithVotes
            | Self::YieldsUnused
            | Self::OpenWithVotes
            | Self::NoAcceptors
            | Self::EtcdUnused
            | Self::NoEtcd
            | Self::EtcdCertificate
            | Self::EtcdUser => f.write_str(self.of_votes()),
            Self::Secret(_) | Self::Acceptor(_) | Self::Observer(_) | Self::Etcd(_) => self.fmt_of_votes(f),
            Self::Ring(error) => error.fmt(f),
            Self::PathMtu(path) => write!(
                f,
                "a {path} leaves {} bytes for a datagram, and the least is {}: raise the MTU, or set \
                 datagram_bytes and have datagrams sent in IP fragments",
                path.payload(),
                RingConfig::MIN_DATAGRAM_BYTES
            ),
        }
    }
}

impl ConfigError {
    /// The text of an error of how datagrams are protected.
    fn of_seal(&self) -> &'static str {
        match self {
            Self::NotSealed => {
                "nothing says how datagrams are protected: make a key with `rota key new FILE`, give the \
                 same file to all nodes and write `key_file = \"FILE\"`; or write `insecure = true` to \
                 run without, on a network where everybody is trusted"
            }
            _ => "`insecure = true` and `key_file` exclude each other: take one of them out",
        }
    }

    /// Writes the text of an error of nodes and their addresses.
    fn fmt_of_nodes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NodeIdZero => f.write_str("node ids start at 1"),
            Self::DuplicateNode(id) => write!(f, "node {id} is listed twice"),
            Self::DuplicateAddress(address) => write!(f, "{address} is used by two sockets"),
            Self::PortZero(id) => write!(f, "node {id} needs ports that are not 0"),
            Self::NodeName(id, error) => write!(f, "the name of node {id}: {error}"),
            Self::DuplicateName(name) => write!(f, "two nodes could be called {name}"),
            Self::UnknownNode(node) => write!(f, "node {node} is not listed"),
            Self::NotMulticast(address) => write!(f, "{address} is no multicast address and port"),
            Self::MixedAddresses(address) => {
                write!(f, "{address} is of another IP version than the rest of the cluster")
            }
            Self::NeedsInterface => f.write_str("IPv6 multicast needs `interface = \"NAME\"`"),
            Self::HostName(id, name) => write!(
                f,
                "node {id}: {name:?} is neither an address nor the name of a host"
            ),
            Self::NoHost(id, address) => write!(
                f,
                "node {id} needs the address of its host, by which the others reach it, and {address} is none"
            ),
            Self::LoopbackBesideOthers => f.write_str(
                "some nodes have addresses of the loopback interface, such as 127.0.0.1, and others do not: they cannot \
                 reach each other",
            ),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for ConfigError {}

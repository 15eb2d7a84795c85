//! The errors of opening a node's sockets.

use rota_core::contract::NodeId;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::keys::KeyError;
use crate::paths::whole_path;

/// Why a node's sockets could not be opened.
#[derive(Debug)]
pub enum SocketError {
    /// The configuration does not list this node.
    UnknownNode(NodeId),
    /// The name of this node's host has no address yet.
    NoAddress(String),
    /// An address is in use, or this host does not have it.
    Bind {
        /// The address.
        address: SocketAddr,
        /// The error of the kernel.
        error: io::Error,
    },
    /// The keys of the cluster cannot be used.
    Key(PathBuf, KeyError),
    /// No network interface has this name.
    NoInterface(String),
    /// Multicast does not work with this group and interface.
    Multicast {
        /// The group.
        group: SocketAddr,
        /// The error of the kernel.
        error: io::Error,
    },
}

impl fmt::Display for SocketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownNode(node) => write!(f, "the configuration has no node {node}"),
            Self::NoAddress(host) => write!(
                f,
                "the name {host} of this node has no address: see `getent hosts {host}`"
            ),
            Self::Bind { address, error } if error.kind() == io::ErrorKind::AddrInUse => {
                write!(
                    f,
                    "{address} is in use: is another node running with the same ports?"
                )
            }
            Self::Bind { address, error } => write!(f, "cannot use {address}: {error}"),
            Self::Key(path, error) => write!(f, "{}: {error}", whole_path(path).display()),
            Self::NoInterface(name) => write!(f, "there is no network interface {name:?}"),
            Self::Multicast { group, error } => {
                write!(f, "cannot use the multicast group {group}: {error}")
            }
        }
    }
}

impl std::error::Error for SocketError {}

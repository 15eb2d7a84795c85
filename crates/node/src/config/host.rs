//! The check of a host for a node that is to run there, without a start: a node that runs is not disturbed.

use rota_core::contract::NodeId;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::path::{Path, PathBuf};

use super::NodeConfig;
use rota_net::sockets::SocketError;
use rota_net::{NodeAddress, whole_path};

/// Why a node cannot run on this host.
#[derive(Debug)]
pub enum HostError {
    /// An address or an interface that it does not have.
    Socket(SocketError),
    /// The address of a node that is this host's broadcast address.
    Broadcast(u16, IpAddr),
    /// The directory for what is kept, in which nothing can be written.
    State(PathBuf, io::Error),
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(error) => error.fmt(f),
            Self::Broadcast(node, address) => {
                write!(
                    f,
                    "node {node}: {address} is the broadcast address of a network of this host, and no host's"
                )
            }
            Self::State(path, error) if error.kind() == io::ErrorKind::NotFound => write!(
                f,
                "state_dir {}: the directory does not exist: make it, or mount what belongs there",
                whole_path(path).display()
            ),
            Self::State(path, error) => {
                write!(f, "state_dir {}: {error}", whole_path(path).display())
            }
        }
    }
}

impl std::error::Error for HostError {}

/// Checks that this host has what node `me` of a configuration whose names were looked up needs: its address, the interface, a directory that can be written.
///
/// # Errors
/// [`HostError`]: the first thing that is missing.
pub(super) fn check(config: &NodeConfig, me: NodeId) -> Result<(), HostError> {
    if let Some(own) = config.node(me) {
        if !own.is_known() {
            let host = own.host.clone().unwrap_or_default();
            return Err(HostError::Socket(SocketError::NoAddress(host)));
        }
        if let Err(error) = UdpSocket::bind((own.address, 0)) {
            let address = own.data();
            return Err(HostError::Socket(SocketError::Bind { address, error }));
        }
        check_broadcast(own, &config.nodes)?;
    }
    if let Some(name) = &config.interface
        && rota_net::interface_index(name).is_none()
    {
        let none = SocketError::NoInterface(name.clone());
        return Err(HostError::Socket(none));
    }
    match &config.state_dir {
        Some(path) => is_writable(path).map_err(|error| HostError::State(path.clone(), error)),
        None => Ok(()),
    }
}

/// Checks that all other nodes may be hosts. The kernel knows the broadcast addresses of the networks that it is
/// in, and lets no socket connect to these that has not asked for it.
fn check_broadcast(own: &NodeAddress, nodes: &[NodeAddress]) -> Result<(), HostError> {
    let others = nodes.iter().filter(|node| node.id != own.id);
    for node in others.filter(|node| node.is_known()) {
        let spoken =
            UdpSocket::bind((own.address, 0)).and_then(|socket| socket.connect(node.data()));
        if spoken.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
            return Err(HostError::Broadcast(node.id, node.address));
        }
    }
    Ok(())
}

/// Makes a file and takes it away again.
fn is_writable(directory: &Path) -> io::Result<()> {
    let path = directory.join(format!(".rota-check-{}", std::process::id()));
    File::create_new(&path)?;
    fs::remove_file(&path)
}

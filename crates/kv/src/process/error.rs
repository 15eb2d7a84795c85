//! The reasons why a process does not start.

use std::fmt;
use std::io;

use rota_core::contract::NodeId;
use rota_front::SealError;

use crate::config::ConfigError;

/// The reason why a process does not start.
#[derive(Debug)]
pub enum StartError {
    /// No `[[kv.process]]` has this node.
    NoProcess(NodeId),
    /// The file is wrong.
    Config(ConfigError),
    /// Its replica does not start.
    Replica(rota_replica::StartError),
    /// The configuration gives slots at first to other partitions than the state does: it does not change that.
    Slots,
    /// Its certificate cannot be used.
    Seal(SealError),
    /// An error of the system.
    System(&'static str, io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoProcess(node) => write!(f, "there is no `[[kv.process]]` with node {node}"),
            Self::Config(error) => write!(f, "{error}"),
            Self::Replica(error) => write!(f, "{error}"),
            Self::Slots => f.write_str(
                "the file gives slots to other partitions than its state has them: put `slots` and the `[[kv.partition]]` sections back",
            ),
            Self::Seal(error) => write!(f, "[kv.tls]: {error}"),
            Self::System(what, error) => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

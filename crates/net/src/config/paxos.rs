//! Who votes, and where votes are kept.

use rota_core::contract::NodeId;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

use super::{ConfigError, NodeConfig};

/// What a vote waits for before it counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VoteStorage {
    /// Nothing: votes are in memory, and a process that has ended has forgotten them.
    Memory,
    /// The system: votes survive the end of all processes, and all but the last moments a loss of power.
    Async,
    /// The disk.
    #[default]
    Sync,
}

impl VoteStorage {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Async, Self::Sync];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Async => "async",
            Self::Sync => "sync",
        }
    }
}

/// What engines of the Paxos family are told.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaxosConfig {
    /// The nodes that vote; the same on all nodes. Where it is not set, all that are listed, but no more than five: those with
    /// the smallest ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acceptors: Option<Vec<u16>>,
    /// What a vote waits for. All but `memory` need `state_dir`.
    #[serde(default)]
    pub storage: VoteStorage,
}

impl NodeConfig {
    /// What votes wait for; `None` where the engine has none.
    pub fn vote_storage(&self) -> Option<VoteStorage> {
        self.paxos.as_ref().map(|paxos| paxos.storage)
    }

    /// Where node `me` keeps its votes, a directory; `None` where it keeps none, or in memory.
    pub fn votes_directory(&self, me: NodeId) -> Option<PathBuf> {
        let storage = self.vote_storage()?;
        let directory = self.state_dir.as_ref();
        let directory = directory.filter(|_| storage != VoteStorage::Memory)?;
        Some(directory.join(format!("node-{me}.votes")))
    }

    pub(super) const fn check_paxos(&self) -> Result<(), ConfigError> {
        if self.paxos.is_some() {
            return Err(ConfigError::PaxosUnused);
        }
        Ok(())
    }
}

//! What a replica is.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use rota_core::contract::NodeId;
use rota_multiring::Resume;
use rota_node::RingsConfig;
use rota_storage::checkpoint::Subject;

use crate::error::StartError;

/// A replica of a partition.
#[derive(Clone, Debug)]
pub struct ReplicaConfig {
    /// The rings of the cluster.
    pub rings: RingsConfig,
    /// Its node.
    pub node: NodeId,
    /// Which partition it is of: all that have this number have the same state.
    pub partition: u32,
    /// The rings whose commands the partition applies: the same for all of its replicas.
    pub subscribe: Vec<u16>,
    /// The ring in which sessions begin and end: one that all partitions have to which a session's commands go.
    pub sessions: u16,
    /// Where its checkpoints are: an own directory, which has to be there.
    pub checkpoints: PathBuf,
    /// A checkpoint is due so long after the last one, if anything was applied.
    pub every: Duration,
    /// And when commands of so many bytes were.
    pub bytes: u64,
    /// Where the replicas of the partition give each other their checkpoints: its own address, at which it waits, and those of the others. Empty: it
    /// gives none, and stops when its rings have forgotten what it needs.
    pub peers: BTreeMap<NodeId, SocketAddr>,
    /// A checkpoint is given away at so many bytes a second, at most, to each that asks.
    pub recovery_bytes: u64,
}

impl ReplicaConfig {
    /// The replica of a partition that applies the commands of these rings; sessions begin in the last of them. A checkpoint is due each 10 s, and each
    /// 64 MiB; they are given away at 64 MiB a second, if there are `peers`.
    pub fn new(
        rings: RingsConfig,
        node: NodeId,
        (partition, subscribe): (u32, &[u16]),
        checkpoints: PathBuf,
    ) -> Self {
        Self {
            rings,
            node,
            partition,
            subscribe: subscribe.to_vec(),
            sessions: subscribe.last().copied().unwrap_or(0),
            checkpoints,
            every: Duration::from_secs(10),
            bytes: 64 << 20,
            peers: BTreeMap::new(),
            recovery_bytes: 64 << 20,
        }
    }

    /// Whether a state is of the partition's rings.
    pub(crate) fn check(&self, resume: &Resume) -> Result<(), StartError> {
        let has: Vec<u16> = resume.rings.iter().map(|ring| ring.of.rank.0).collect();
        let mut wanted = self.subscribe.clone();
        wanted.sort_unstable();
        wanted.dedup();
        match has == wanted {
            true => Ok(()),
            false => Err(StartError::Subscription { has, wanted }),
        }
    }

    pub(crate) fn subject(&self) -> Subject {
        Subject {
            cluster: u64::from(self.rings.common.cluster),
            partition: self.partition,
        }
    }
}

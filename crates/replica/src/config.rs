//! What a replica is.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use rota_core::contract::NodeId;
use rota_multiring::{Constants, Replicas, Resume, ResumeRing};
use rota_node::RingsConfig;
use rota_node::rings::RingsStartError;
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
    /// gives none, and stops when its rings have forgotten what it needs. Rings keep what a majority of the nodes that are named here by any replica
    /// of the partition has no checkpoint of.
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

    /// The replicas of the partition.
    pub(crate) fn replicas(&self) -> Replicas {
        self.peers.keys().copied().chain([self.node]).collect()
    }

    /// What acceptors of a ring keep for those who are behind, in instances; as this node is told.
    pub(crate) fn kept_instances(&self, ring: u16) -> u64 {
        let mut rings = self.rings.rings.iter();
        let at = rings.position(|section| section.id == ring);
        let of = at.and_then(|at| self.rings.of_ring(at).ok());
        let kept = of.and_then(|of| of.paxos?.kept_instances);
        kept.map_or(15_000, std::num::NonZero::get).min(1 << 60)
    }

    /// After so many rounds a state is due.
    pub(crate) fn due_rounds(&self) -> u64 {
        let rings = self.subscribe.iter();
        let kept = rings.map(|ring| self.kept_instances(*ring));
        kept.min().unwrap_or(u64::MAX) / 8
    }

    /// Whether a state is of the partition's rings.
    pub(crate) fn check(&self, resume: &Resume) -> Result<(), StartError> {
        let has: Vec<u16> = resume.rings.iter().map(|ring| ring.of.rank.0).collect();
        let mut wanted = self.subscribe.clone();
        wanted.sort_unstable();
        wanted.dedup();
        if has != wanted {
            return Err(StartError::Subscription { has, wanted });
        }
        let rings = (0..self.rings.rings.len()).filter_map(|at| self.rings.of_ring(at).ok());
        let rings: Vec<Constants> = rings
            .filter_map(|ring| Some(ring.ring_of?.constants))
            .collect();
        let is_other = |ring: &&ResumeRing| !rings.contains(&ring.of);
        match resume.rings.iter().find(is_other) {
            Some(ring) => Err(RingsStartError::State(ring.of.rank.0).into()),
            None => Ok(()),
        }
    }

    pub(crate) fn subject(&self) -> Subject {
        Subject {
            cluster: u64::from(self.rings.common.cluster),
            partition: self.partition,
        }
    }
}

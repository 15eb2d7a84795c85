//! The configuration of a replica.

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
    /// The number of its partition: all replicas with this number have the same state.
    pub partition: u32,
    /// The rings whose commands the partition applies: the same for all of its replicas.
    pub subscribe: Vec<u16>,
    /// The common ring, in which sessions begin and end: one that each partition has to which commands of a session go,
    /// and the same in the configurations of all these. Which sessions are alive follows from what it orders alone, so a
    /// command of several partitions counts in all of them or in none.
    pub sessions: u16,
    /// The directory of its checkpoints, which is its own and has to be there.
    pub checkpoints: PathBuf,
    /// The time after the last checkpoint at which the next one is due, if anything was applied.
    pub every: Duration,
    /// The bytes of commands after which a checkpoint is due, too.
    pub bytes: u64,
    /// The addresses at which the replicas of the partition give each other their checkpoints: its own one, at which it
    /// listens, and those of the others. Empty: the replica gives none, and stops when its rings have forgotten
    /// instances that it needs. Rings keep instances that are not covered by checkpoints of a majority of the nodes
    /// that any replica of the partition names here.
    pub peers: BTreeMap<NodeId, SocketAddr>,
    /// The bytes of a checkpoint, at most, that go to each peer in a second.
    pub recovery_bytes: u64,
}

impl ReplicaConfig {
    /// The replica of a partition that applies the commands of these rings; sessions begin in the last of them. A
    /// checkpoint is due each 10 s, and each 64 MiB; the replica gives checkpoints away at 64 MiB a second, if there
    /// are `peers`.
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

    /// The number of instances that acceptors of a ring keep for processes that are behind, as this node is configured.
    pub(crate) fn kept_instances(&self, ring: u16) -> u64 {
        let mut rings = self.rings.rings.iter();
        let at = rings.position(|section| section.id == ring);
        let of = at.and_then(|at| self.rings.of_ring(at).ok());
        let kept = of.and_then(|of| of.paxos?.kept_instances);
        kept.map_or(15_000, std::num::NonZero::get).min(1 << 60)
    }

    /// The number of rounds after which a state is due: an eighth of the instances that acceptors keep.
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

//! The settings of engines of the Paxos family: acceptors, the storage of votes, and coordination.

use rota_core::contract::NodeId;
use rota_paxos::uring::{Arbiter, Multicast, URingConfig};
use rota_ring::RingConfig;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use std::path::PathBuf;

use super::engine::capacity;
use super::{ConfigError, NodeConfig, PrimaryName};
use crate::coordination::{Coordination, Etcd, EtcdFileError, EtcdLogin, EtcdTls, etcd};
use rota_core::EngineName;

/// The default number of acceptors, at most: each more makes every decision wait for one more.
const MOST_BY_DEFAULT: usize = 5;

/// The storage that a vote waits for before it counts.
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

    /// The name in the configuration file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Async => "async",
            Self::Sync => "sync",
        }
    }
}

/// The authority that chooses the next configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CoordinationName {
    /// The acceptors of the configuration before.
    #[default]
    Embedded,
    /// The service etcd: the configuration that is stored there first.
    Etcd,
}

impl CoordinationName {
    /// Nodes with different authorities could both be right, about different configurations: to each other they are
    /// other clusters.
    pub(super) const fn mark(self) -> u32 {
        match self {
            Self::Embedded => 0,
            Self::Etcd => u32::from_be_bytes(*b"etcd"),
        }
    }
}

/// The settings of engines of the Paxos family.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaxosConfig {
    /// The nodes that vote; the same on all nodes. Without a value, all that are listed and do not observe, but no more
    /// than five: those with the smallest ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acceptors: Option<Vec<u16>>,
    /// The nodes that are never on the ring: they deliver all that it orders, vote for nothing, order nothing, and
    /// nobody waits for them. The same on all nodes; none of them is an acceptor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observers: Option<Vec<u16>>,
    /// The storage that a vote waits for. All but `memory` need `state_dir`.
    #[serde(default)]
    pub storage: VoteStorage,
    /// Decided instances that acceptors keep for nodes that are behind, where votes are (15,000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_instances: Option<NonZeroU64>,
    /// The approximate limit, in bytes, of what acceptors keep for a partition's replicas whose checkpoints are behind
    /// (1 GiB), where votes are. While it takes more the ring takes no messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_bytes: Option<NonZeroU64>,
    /// The approximate limit, in bytes, of the decided values that an acceptor keeps in memory (64 MiB): others are on
    /// disk alone, and are read back for nodes that are behind. With `storage = "memory"` all are in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<NonZeroU64>,
    /// Every message has an instance of its own, however small it is, or several. Otherwise small ones share instances.
    #[serde(default)]
    pub instance_per_message: bool,
    /// The authority that chooses the next configuration; the same on all nodes, for as long as the cluster lives.
    #[serde(default)]
    pub coordination: CoordinationName,
    /// `coordination = "etcd"`: its members, `http://HOST:PORT` each, or `https://HOST:PORT` with `etcd_tls`. They are
    /// asked one after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd: Option<Vec<String>>,
    /// Ask by TLS, with these files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd_tls: Option<EtcdTls>,
    /// Ask as this user, where etcd wants to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd_login: Option<EtcdLogin>,
}

impl NodeConfig {
    /// The storage that votes wait for; `None` where the engine has no votes.
    pub fn vote_storage(&self) -> Option<VoteStorage> {
        let set = self.paxos.as_ref().map(|paxos| paxos.storage);
        self.engine.has_votes().then(|| set.unwrap_or_default())
    }

    /// The directory in which node `me` keeps its votes; `None` where it keeps none, or keeps them in memory.
    pub fn votes_directory(&self, me: NodeId) -> Option<PathBuf> {
        let storage = self.vote_storage()?;
        let directory = self.state_dir.as_ref();
        let directory = directory.filter(|_| storage != VoteStorage::Memory)?;
        Some(directory.join(format!("node-{me}.votes")))
    }

    /// The nodes that vote as the cluster is founded, by ascending id.
    pub fn acceptors(&self) -> Vec<NodeId> {
        let mut nodes = match self
            .paxos
            .as_ref()
            .and_then(|paxos| paxos.acceptors.as_ref())
        {
            Some(nodes) => nodes.iter().filter_map(|id| NodeId::new(*id)).collect(),
            None => {
                let mut members = self.members();
                let observers = self.observers();
                members.retain(|node| !observers.contains(node));
                members.truncate(MOST_BY_DEFAULT);
                members
            }
        };
        nodes.sort_unstable();
        nodes
    }

    /// The nodes that deliver what the ring orders, and are never on it.
    pub fn observers(&self) -> Vec<NodeId> {
        let paxos = self.paxos.as_ref();
        let set = paxos.and_then(|paxos| paxos.observers.as_ref());
        let nodes = set.into_iter().flatten();
        nodes.filter_map(|id| NodeId::new(*id)).collect()
    }

    /// A warning about the acceptors, where a setting is allowed and seldom wanted: a sentence.
    pub fn votes_warning(&self) -> Option<String> {
        let count = self.acceptors().len();
        let is_even = self.engine.has_votes() && count.is_multiple_of(2);
        is_even.then(|| {
            format!(
                "{count} acceptors survive as many failures as {}: an odd number is best (set `acceptors` in [paxos])",
                count - 1
            )
        })
    }

    /// The authority that chooses the next configuration.
    pub const fn coordination(&self) -> CoordinationName {
        match &self.paxos {
            Some(paxos) => paxos.coordination,
            None => CoordinationName::Embedded,
        }
    }

    /// The members of etcd, and the key below which configurations are there; `None` where etcd is not asked.
    pub fn etcd(&self) -> Option<(&[String], String)> {
        let paxos = self.paxos.as_ref();
        let paxos = paxos.filter(|paxos| paxos.coordination == CoordinationName::Etcd)?;
        Some((paxos.etcd.as_deref()?, etcd::prefix(self.cluster)))
    }

    fn etcd_tls(&self) -> Option<&EtcdTls> {
        self.paxos.as_ref()?.etcd_tls.as_ref()
    }

    fn etcd_login(&self) -> Option<&EtcdLogin> {
        self.paxos.as_ref()?.etcd_login.as_ref()
    }

    /// The user that node `me` is at etcd, if one is configured. Without a node, the setting as it is.
    pub fn etcd_user(&self, me: Option<NodeId>) -> Option<String> {
        let login = self.etcd().and(self.etcd_login())?;
        Some(me.map_or_else(|| login.user.clone(), |me| login.of(me).user))
    }

    /// Reads the files that node `me` needs for etcd, if there are any.
    ///
    /// # Errors
    /// [`EtcdFileError`]: one of them cannot be used.
    pub fn check_etcd_files(&self, me: NodeId) -> Result<(), EtcdFileError> {
        self.coordination_service(me).map(|_| ())
    }

    /// The service that node `me` asks which configuration follows; `None` where there is none.
    pub(crate) fn coordination_service(
        &self,
        me: NodeId,
    ) -> Result<Option<Box<dyn Coordination>>, EtcdFileError> {
        let Some((endpoints, _)) = self.etcd() else {
            return Ok(None);
        };
        let tls = self.etcd_tls().map(|tls| tls.of(me));
        let login = self.etcd_login().map(|login| login.of(me));
        let etcd = Etcd::open(endpoints, self.cluster, tls.as_ref(), login.as_ref())?;
        Ok(Some(Box::new(etcd)))
    }

    /// A warning about coordination, where a setting is allowed and has a consequence to know of beforehand: a
    /// sentence.
    pub fn coordination_warning(&self) -> Option<String> {
        let (_, prefix) = self.etcd()?;
        let forgets = self.vote_storage() == Some(VoteStorage::Memory);
        forgets.then(|| {
            format!(
                "votes in memory are gone when a majority of the acceptors has ended, and etcd still knows the cluster: it \
                 is founded anew only after the keys below {prefix} are deleted"
            )
        })
    }

    /// A warning about the login at etcd, where a setting is allowed and seldom wanted: a sentence.
    pub fn login_warning(&self) -> Option<String> {
        let in_clear = self.etcd_login().is_some() && self.etcd_tls().is_none();
        in_clear.then(|| {
            "the password for etcd is sent in the clear: set `etcd_tls`, or trust everybody on the network to it".to_owned()
        })
    }

    /// The configuration of Ring Paxos and U-Ring Paxos: the settings of this file over the engine's defaults.
    pub fn uring_config(&self, ring: &RingConfig) -> URingConfig {
        let mut config = URingConfig::new(ring.members.clone(), &ring.timers);
        config.acceptor.forgets = self.vote_storage() == Some(VoteStorage::Memory);
        let paxos = self.paxos.as_ref();
        config.proposer.value_per_message = paxos.is_some_and(|paxos| paxos.instance_per_message);
        let kept = paxos.and_then(|paxos| paxos.kept_instances);
        config.acceptor.kept_instances =
            kept.map_or(config.acceptor.kept_instances, NonZeroU64::get);
        let hold = paxos.and_then(|paxos| paxos.hold_bytes);
        config.acceptor.hold_bytes = hold.map_or(config.acceptor.hold_bytes, NonZeroU64::get);
        let memory = paxos.and_then(|paxos| paxos.memory_bytes);
        let memory = memory.and_then(|bytes| usize::try_from(bytes.get()).ok());
        config.acceptor.memory_bytes = memory.unwrap_or(config.acceptor.memory_bytes);
        config.learner.feeds_merge = self.ring_of.is_some();
        config.acceptors = self.acceptors();
        config.observers = self.observers();
        config.arbiter = match self.coordination() {
            CoordinationName::Embedded => Arbiter::Embedded,
            CoordinationName::Etcd => Arbiter::Service,
        };
        config.multicast = (self.engine == EngineName::RingPaxos).then_some(Multicast {
            cluster: ring.cluster,
            datagram_bytes: ring.datagram_bytes,
            seal_bytes: ring.seal_bytes,
            capacity: capacity(self.link_mbps, ring),
        });
        config.proposer.message_bytes = ring.message_bytes;
        config.proposer.backlog_bytes = ring.backlog_bytes;
        config
    }

    pub(super) fn check_paxos(&self) -> Result<(), ConfigError> {
        let Some(storage) = self.vote_storage() else {
            return match self.paxos {
                Some(_) => Err(ConfigError::PaxosUnused),
                None => Ok(()),
            };
        };
        if storage != VoteStorage::Memory && self.state_dir.is_none() {
            return Err(ConfigError::VotesNeedState);
        }
        if self.primary != PrimaryName::None {
            return Err(ConfigError::PrimaryWithVotes);
        }
        if self.open_membership {
            return Err(ConfigError::OpenWithVotes);
        }
        self.check_coordination()?;
        let set = self
            .paxos
            .as_ref()
            .and_then(|paxos| paxos.acceptors.as_ref());
        let listed = |id: &u16| NodeId::new(*id).is_some_and(|id| self.node(id).is_some());
        if let Some(id) = set.into_iter().flatten().find(|id| !listed(id)) {
            return Err(ConfigError::Acceptor(*id));
        }
        let acceptors = self.acceptors();
        if acceptors.is_empty() {
            return Err(ConfigError::NoAcceptors);
        }
        match acceptors.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(twice) => Err(ConfigError::Acceptor(twice[0].get())),
            None => self.check_observers(),
        }
    }

    fn check_observers(&self) -> Result<(), ConfigError> {
        let paxos = self.paxos.as_ref();
        let set = paxos.and_then(|paxos| paxos.observers.as_deref());
        let set = set.unwrap_or_default();
        let votes = self.acceptors();
        let is_wrong = |(at, id): &(usize, &u16)| {
            let node = NodeId::new(**id).filter(|node| self.node(*node).is_some());
            set[..*at].contains(id) || node.is_none_or(|node| votes.contains(&node))
        };
        match set.iter().enumerate().find(is_wrong) {
            Some((_, id)) => Err(ConfigError::Observer(*id)),
            None => Ok(()),
        }
    }

    fn check_coordination(&self) -> Result<(), ConfigError> {
        let Some(paxos) = &self.paxos else {
            return Ok(());
        };
        let tls = self.etcd_tls();
        if tls.is_some_and(|tls| tls.certificate.is_some() != tls.key.is_some()) {
            return Err(ConfigError::EtcdCertificate);
        }
        if self.etcd_login().is_some_and(|login| login.user.is_empty()) {
            return Err(ConfigError::EtcdUser);
        }
        let is_unused = tls.is_none() && paxos.etcd_login.is_none();
        match (paxos.coordination, &paxos.etcd) {
            (CoordinationName::Embedded, None) if is_unused => Ok(()),
            (CoordinationName::Embedded, _) => Err(ConfigError::EtcdUnused),
            (CoordinationName::Etcd, None) => Err(ConfigError::NoEtcd),
            (CoordinationName::Etcd, Some(urls)) if urls.is_empty() => Err(ConfigError::NoEtcd),
            (CoordinationName::Etcd, Some(urls)) => {
                match urls
                    .iter()
                    .find(|url| !etcd::is_endpoint(url, tls.is_some()))
                {
                    Some(url) => Err(ConfigError::Etcd(url.clone())),
                    None => Ok(()),
                }
            }
        }
    }
}

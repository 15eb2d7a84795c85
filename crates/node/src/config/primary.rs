//! The rule for primary configurations, as a configuration names it; and the files that a node keeps on disk.

use rota_core::contract::NodeId;
use rota_core::primary::{HEADER_BYTES, OWN_BYTES, Rule, first_record};
use rota_ring::RingConfig;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

use super::{ConfigError, NodeConfig};

/// The rule by which a configuration is primary.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrimaryName {
    /// None is, and nothing is added to messages.
    #[default]
    None,
    /// More than half of the nodes that count are members.
    Static,
    /// More than half of the members of the last primary are, or half of them and the smallest.
    Dynamic,
}

impl PrimaryName {
    /// Nodes with different rules must not order messages together: those with one put a number before
    /// each message, and no two rules have primaries that exclude each other. So to each other they are
    /// other clusters.
    const fn mark(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Static => u32::from_be_bytes(*b"stat"),
            Self::Dynamic => u32::from_be_bytes(*b"dyna"),
        }
    }
}

/// The record with which a node begins whose own record of primaries is missing or refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResetPrimary {
    /// The node has forgotten what it had agreed to: it does not count until it has been in a primary again.
    Forgotten,
    /// There has been no primary yet, as on a first start; nor was there any other electorate.
    First,
}

impl NodeConfig {
    /// The file of node `me` for its newest ring id.
    pub fn ring_id_file(&self, me: NodeId) -> Option<PathBuf> {
        let directory = self.state_dir.as_ref()?;
        Some(directory.join(format!("node-{me}.ring")))
    }

    /// The file of node `me` for its record of primaries, if the node keeps one.
    pub fn primary_file(&self, me: NodeId) -> Option<PathBuf> {
        let directory = self.state_dir.as_ref();
        let directory = directory.filter(|_| self.primary_in_force() == PrimaryName::Dynamic)?;
        Some(directory.join(format!("node-{me}.primary")))
    }

    /// The file of node `me` for the electorates that it has had and met, if the node keeps one.
    pub fn electorate_file(&self, me: NodeId) -> Option<PathBuf> {
        let directory = self.state_dir.as_ref();
        let directory = directory.filter(|_| self.primary_in_force() != PrimaryName::None)?;
        Some(directory.join(format!("node-{me}.electorates")))
    }

    /// The nodes that count, by ascending id: `primary_nodes`, or else all that are listed.
    pub fn counted_nodes(&self) -> Vec<NodeId> {
        let Some(nodes) = &self.primary_nodes else {
            return self.members();
        };
        let mut nodes: Vec<NodeId> = nodes.iter().filter_map(|id| NodeId::new(*id)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// The rule by which node `me` knows primaries, if there is one.
    pub fn primary_rule(&self, me: NodeId) -> Option<Rule> {
        match self.primary_in_force() {
            PrimaryName::None => None,
            PrimaryName::Static => Some(Rule::StaticMajority {
                configured: self.counted_nodes(),
            }),
            PrimaryName::Dynamic => Some(Rule::DynamicLinear {
                first: self.first_primary(me),
            }),
        }
    }

    /// The nodes that count as the last primary for node `me` before there was one. A node that is not among them
    /// itself knows of none.
    fn first_primary(&self, me: NodeId) -> Vec<NodeId> {
        let mut nodes = self.counted_nodes();
        if !nodes.contains(&me) {
            nodes.clear();
        }
        nodes
    }

    /// The first record of primaries in a new file of node `me`.
    pub(crate) fn first_primary_record(&self, me: NodeId) -> Vec<u8> {
        match self.reset_primary {
            Some(ResetPrimary::Forgotten) => first_record(&[]),
            Some(ResetPrimary::First) | None => first_record(&self.first_primary(me)),
        }
    }

    /// The number that this cluster's datagrams carry: nodes with different values of `primary` or `transport`, or with different
    /// ways to agree on configurations, are different clusters.
    pub fn wire_cluster(&self) -> u32 {
        self.cluster
            ^ self.primary_in_force().mark()
            ^ super::engine::mark(self.engine)
            ^ super::transport::mark(self.transport)
            ^ self.coordination().mark()
            ^ self.ring_of.as_ref().map_or(0, crate::rings::mark)
    }

    /// The rule by which configurations are primary: engines with views do not do without one.
    pub const fn primary_in_force(&self) -> PrimaryName {
        match self.primary {
            PrimaryName::None if self.engine.has_views() => PrimaryName::Static,
            primary => primary,
        }
    }

    pub(super) fn check_primary(&self) -> Result<(), ConfigError> {
        let is_dynamic = self.primary == PrimaryName::Dynamic;
        if is_dynamic && self.state_dir.is_none() {
            return Err(ConfigError::PrimaryNeedsState);
        }
        let keeps = self.primary_in_force() != PrimaryName::None && self.state_dir.is_some();
        if self.reset_primary.is_some() && !keeps {
            return Err(ConfigError::ResetWithoutPrimary);
        }
        let Some(nodes) = &self.primary_nodes else {
            return Ok(());
        };
        if self.primary_in_force() == PrimaryName::None {
            return Err(ConfigError::PrimaryNodesUnused);
        }
        if nodes.contains(&0) {
            return Err(ConfigError::NodeIdZero);
        }
        if nodes.is_empty() || nodes.len() > RingConfig::MAX_MEMBERS {
            return Err(ConfigError::PrimaryNodes(RingConfig::MAX_MEMBERS));
        }
        Ok(())
    }

    /// The largest message that an application may submit. With primaries the ring takes larger ones, as
    /// the layer adds to them.
    pub fn message_limit(&self) -> usize {
        let default = RingConfig::new(self.cluster, Vec::new()).message_bytes;
        self.message_bytes.unwrap_or(default)
    }

    /// Makes room for the data that the layer adds to messages, and for its own messages. A wrong setting stays wrong.
    pub(super) fn make_room_for_primary(&self, ring: &mut RingConfig) {
        let is_sound = (1..=ring.backlog_bytes).contains(&ring.message_bytes);
        if self.primary != PrimaryName::None && !self.engine.has_views() && is_sound {
            ring.message_bytes = (ring.message_bytes + HEADER_BYTES).max(OWN_BYTES);
            ring.backlog_bytes = ring.backlog_bytes.max(ring.message_bytes);
        }
    }
}

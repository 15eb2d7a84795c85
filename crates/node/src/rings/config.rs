//! A configuration with several rings, and that of each of them.

use rota_core::contract::NodeId;
use rota_multiring::{Constants, RingOf};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::net::SocketAddr;

use super::error::RingsError;
use super::section::RingSection;
use crate::config::{EngineName, NodeConfig};
use rota_net::Transport;

/// The number of rings, at most: each costs a process three sockets.
const MOST_RINGS: usize = 1024;
/// The configuration of the processes of several rings.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RingsConfig {
    /// The settings that all rings have in common. The `engine` there does not count.
    pub common: NodeConfig,
    /// Each of them.
    pub rings: Vec<RingSection>,
}

/// The numbers of a ring that nodes have to agree on, as a mark in the cluster's number on the wire: nodes with others
/// do not hear each other.
pub(crate) fn mark(of: &RingOf) -> u32 {
    let Constants {
        rank,
        per_round,
        origin,
    } = of.constants;
    let mixed =
        (u64::from(rank.0) << 32 | u64::from(per_round.get())).wrapping_add(origin.rotate_left(17));
    let mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 32) as u32
}

impl RingsConfig {
    /// Rings with all nodes on this host: as [`NodeConfig::loopback`], with further ports for each ring.
    pub fn loopback(nodes: u16, rings: u16, base_port: u16) -> Self {
        let section = |id: u16| RingSection {
            id,
            port_offset: Some((id - 1).saturating_mul(2 * nodes + 1)),
            ..RingSection::default()
        };
        Self {
            common: NodeConfig::loopback(nodes, base_port),
            rings: (1..=rings).map(section).collect(),
        }
    }

    /// Reads a file's content: that of a node, with `engine = "multi-ring"` and a `[[ring]]` section for each ring.
    ///
    /// # Errors
    /// [`RingsError`].
    pub fn from_toml(text: &str) -> Result<Self, RingsError> {
        let table = toml::from_str(text);
        Self::from_table(table.map_err(|error| RingsError::Syntax(Box::new(error)))?)
    }

    /// Reads a file that is parsed already, and has nothing else any more.
    ///
    /// # Errors
    /// [`RingsError`].
    pub fn from_table(mut table: toml::Table) -> Result<Self, RingsError> {
        let syntax = |error| RingsError::Syntax(Box::new(error));
        table.remove("engine");
        let rings = table
            .remove("ring")
            .unwrap_or_else(|| toml::Value::Array(Vec::new()));
        let rings: Vec<RingSection> = rings.try_into().map_err(syntax)?;
        let common: NodeConfig = table.try_into().map_err(syntax)?;
        let config = Self { common, rings };
        config.check()?;
        Ok(config)
    }

    /// Whether the file is for several rings.
    pub fn is_meant(text: &str) -> bool {
        let table: Option<toml::Table> = toml::from_str(text).ok();
        table.is_some_and(|table| {
            table.contains_key("ring")
                || table.get("engine").and_then(toml::Value::as_str) == Some("multi-ring")
        })
    }

    /// Checks that the configuration can be run.
    ///
    /// # Errors
    /// [`RingsError`]: what is wrong with it.
    pub fn check(&self) -> Result<(), RingsError> {
        if self.rings.is_empty() || self.rings.len() > MOST_RINGS {
            return Err(RingsError::Count);
        }
        let mut marked = self.rings.iter().filter(|ring| ring.control);
        if let Some(second) = marked.nth(1) {
            return Err(RingsError::Control(second.id));
        }
        let (mut ids, mut ports) = (BTreeSet::new(), BTreeSet::new());
        for (at, ring) in self.rings.iter().enumerate() {
            if ring.id == 0 || !ids.insert(ring.id) {
                return Err(RingsError::Id(ring.id));
            }
            let config = self.of_ring(at)?;
            let used = config.nodes.iter();
            let mut used =
                used.flat_map(|node| [node.place(node.data_port), node.place(node.token_port)]);
            if !used.all(|place| ports.insert(place)) {
                return Err(RingsError::Ports(ring.id));
            }
            config
                .check()
                .map_err(|error| RingsError::Of(ring.id, error))?;
        }
        Ok(())
    }

    /// The same configuration with the addresses of the nodes' names, as node `me` finds them: the names of all rings are
    /// looked up once ([`NodeConfig::resolved`]).
    #[must_use]
    pub fn resolved(&self, me: NodeId) -> Self {
        Self {
            common: self.common.resolved(me),
            rings: self.rings.clone(),
        }
    }

    /// The rings that a node is on, by their places here.
    pub fn rings_of(&self, me: NodeId) -> Vec<usize> {
        let has = |ring: &RingSection| match &ring.nodes {
            Some(nodes) => nodes.contains(&me.get()),
            None => self.common.node(me).is_some(),
        };
        let rings = self.rings.iter().enumerate();
        rings
            .filter(|(_, ring)| has(ring))
            .map(|(at, _)| at)
            .collect()
    }

    /// The place of the control ring: that which is marked so, or the first one.
    pub(super) fn control(&self) -> usize {
        let marked = self.rings.iter().position(|ring| ring.control);
        marked.unwrap_or(0)
    }

    /// The configuration of the ring at this place.
    ///
    /// # Errors
    /// [`RingsError`].
    pub fn of_ring(&self, at: usize) -> Result<NodeConfig, RingsError> {
        let ring = self.rings.get(at).ok_or(RingsError::Count)?;
        let engine = ring.engine.unwrap_or(EngineName::URingPaxos);
        if !engine.has_votes() {
            return Err(RingsError::Engine(ring.id, engine));
        }
        let mut config = self.common.clone();
        (config.engine, config.ring_of) = (engine, Some(ring.of()?));
        if let Some(paxos) = &ring.paxos {
            config.paxos = Some(paxos.clone());
        }
        if let Some(nodes) = &ring.nodes {
            config.nodes.retain(|node| nodes.contains(&node.id));
            if config.nodes.is_empty() || config.nodes.len() != nodes.len() {
                return Err(RingsError::Nodes(ring.id));
            }
        }
        let offset = match ring.port_offset {
            Some(offset) => Some(offset),
            None => u16::try_from(2 * at).ok(),
        };
        let shift = |port: u16| offset.and_then(|offset| port.checked_add(offset));
        for node in &mut config.nodes {
            let ports = (shift(node.data_port), shift(node.token_port));
            let (Some(data), Some(token)) = ports else {
                return Err(RingsError::Ports(ring.id));
            };
            (node.data_port, node.token_port) = (data, token);
        }
        if let Transport::Multicast(group) = config.transport {
            let port = shift(group.port()).ok_or(RingsError::Ports(ring.id))?;
            config.transport = Transport::Multicast(SocketAddr::new(group.ip(), port));
        }
        let directory = config.state_dir.as_ref();
        config.state_dir = directory.map(|dir| dir.join(format!("ring-{}", ring.id)));
        config.trace = None;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_multiring::Rank;
    use rota_multiring::level::Mode;

    const FILE: &str = r#"
cluster = 7
engine = "multi-ring"
insecure = true
transport = "unicast"
[[node]]
id = 1
address = "10.0.0.1"
data_port = 7701
token_port = 7702
[[node]]
id = 2
address = "10.0.0.2"
data_port = 7701
token_port = 7702
[paxos]
storage = "memory"
[[ring]]
id = 1
nodes = [1]
[[ring]]
id = 4
engine = "ring-paxos"
per_round = 3
leveling = "paper"
lambda = 2000
"#;

    fn node(id: u16) -> NodeId {
        NodeId::new(id).expect("not 0")
    }

    #[test]
    fn each_ring_has_its_nodes_ports_and_numbers() {
        assert!(RingsConfig::is_meant(FILE) && !RingsConfig::is_meant("cluster = 7"));
        let config = RingsConfig::from_toml(FILE).expect("it is sound");
        assert_eq!(config.rings_of(node(1)), [0, 1]);
        assert_eq!(config.rings_of(node(2)), [1]);
        assert_eq!(config.rings_of(node(3)), [0; 0]);
        let [first, second] = [0, 1].map(|at| config.of_ring(at).expect("it is sound"));
        assert_eq!((first.nodes.len(), second.nodes.len()), (1, 2));
        assert_eq!(
            (first.nodes[0].data_port, second.nodes[0].data_port),
            (7701, 7703)
        );
        let of = second.ring_of.expect("one of several");
        assert_eq!(
            (of.constants.rank, of.constants.per_round.get()),
            (Rank(4), 3)
        );
        assert_eq!(
            of.mode,
            Mode::Paper {
                delta: 5_000_000,
                lambda: 2000
            }
        );
        assert_ne!(first.wire_cluster(), second.wire_cluster());
    }

    #[test]
    fn the_names_of_all_rings_are_looked_up_once() {
        let file = FILE.replace("10.0.0.1", "localhost");
        let config = RingsConfig::from_toml(&file).expect("it is sound");
        assert!(!config.common.nodes[0].is_known());
        let resolved = config.resolved(node(1));
        for at in [0, 1] {
            let ring = resolved.of_ring(at).expect("it is sound");
            assert!(ring.nodes.iter().all(rota_net::NodeAddress::is_known));
        }
        assert_eq!(resolved.rings, config.rings);
    }

    /// Nodes with other constants would deliver in other orders: they do not hear each other.
    #[test]
    fn other_constants_are_another_cluster() {
        let marks = [
            FILE.to_owned(),
            FILE.replace("per_round = 3", "per_round = 2"),
            FILE.replace("per_round = 3", "per_round = 3\norigin = 5"),
            FILE.replace("id = 4", "id = 5"),
        ];
        let marks = marks.map(|file| {
            let config = RingsConfig::from_toml(&file).expect("it is sound");
            config.of_ring(1).expect("it is sound").wire_cluster()
        });
        let distinct: BTreeSet<u32> = marks.into_iter().collect();
        assert_eq!(distinct.len(), 4);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let wrong = [
            ("id = 4", "id = 1", "ring 1: ids are"),
            ("id = 4", "id = 0", "ring 0: ids are"),
            ("nodes = [1]", "nodes = [3]", "ring 1: its `nodes`"),
            ("nodes = [1]", "nodes = []", "ring 1: its `nodes`"),
            (
                "\"ring-paxos\"",
                "\"accelerated-ring\"",
                "cannot feed a merge",
            ),
            (
                "leveling = \"paper\"",
                "leveling = \"pull\"",
                "`delta_ms` and `lambda`",
            ),
            ("lambda = 2000", "lambda = 0", "`delta_ms` and `lambda`"),
            ("lambda = 2000", "port_offset = 1", "the same port"),
            ("lambda = 2000", "port_offset = 60000", "beyond 65535"),
            ("lambda = 2000", "no_such = 1", "no_such"),
            ("lambda = 2000", "origin = 140737488355329", "2^47"),
            ("cluster = 7", "no_such = 7", "no_such"),
            (
                "[[ring]]",
                "[[ring]]\ncontrol = true",
                "ring 4: `control` is",
            ),
        ];
        for (this, that, says) in wrong {
            let error = RingsConfig::from_toml(&FILE.replace(this, that)).expect_err(that);
            assert!(error.to_string().contains(says), "{that}: {error}");
        }
        let none = &FILE[..FILE.find("[[ring]]").expect("a ring")];
        let error = RingsConfig::from_toml(none).expect_err("it has no ring");
        assert!(error.to_string().contains("[[ring]]"), "{error}");
    }
}

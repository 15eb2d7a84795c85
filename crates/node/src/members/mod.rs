//! The numbered list of a cluster's nodes, which changes while they run.
//!
//! A cluster begins with the nodes that its configuration lists: that is list 0. Each change makes the list with the next
//! number, at one place of the total order, so that no two lists of one ring have the same number. Two sides of a split
//! may both make one: then the list of the later ring counts, as [`Version`] says, on all nodes alike.
//!
//! | module | holds |
//! |---|---|
//! | here | the list, its changes, and who can have other nodes while it runs |
//! | `bytes` | the list as bytes |
//! | `file` | the list on a node's disk |

pub mod bytes;
mod file;

pub use file::{MemberFile, MemberFileError};

use rota_core::contract::{NodeId, RingId};
use rota_core::wire::MAX_MEMBERS;
use rota_net::NodeAddress;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use crate::config::{ConfigError, NodeConfig, PrimaryName, with_nodes};

/// Which of two lists counts: the larger one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Version {
    /// The number of changes since the configuration.
    pub number: u64,
    /// The ring on which the last change was ordered; `None` of the nodes that the configuration lists.
    pub made: Option<RingId>,
}

impl Version {
    /// Of the nodes that the configuration lists.
    pub const FIRST: Self = Self {
        number: 0,
        made: None,
    };
}

/// The nodes of a cluster, ascending by id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberList {
    /// Says which of two lists counts.
    pub version: Version,
    /// The nodes as a configuration has them: without the addresses that names have.
    pub nodes: Vec<NodeAddress>,
}

/// A change of the list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// A node more.
    Add(NodeAddress),
    /// A node less.
    Remove(NodeId),
    /// A node is at another address. It keeps its name, unless there is a new one.
    Replace(NodeAddress),
}

/// Why a list cannot be changed like that.
#[derive(Debug)]
pub enum ChangeError {
    /// This node is not in the list.
    Unknown(NodeId),
    /// This node is in the list already, at this place.
    Listed(u16, String),
    /// This is the only node.
    Last(NodeId),
    /// The list has no room for more nodes.
    Full,
    /// The new list cannot be that of a cluster.
    Nodes(ConfigError),
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(node) => write!(f, "node {node} is not listed"),
            Self::Listed(node, place) => write!(
                f,
                "node {node} is listed already, at {place}: `rota member replace` gives it another address"
            ),
            Self::Last(node) => write!(f, "node {node} is the only one: a cluster has a node"),
            Self::Full => write!(
                f,
                "a cluster has at most {MAX_MEMBERS} nodes, with names of at most {} bytes in all",
                MemberList::MOST_BYTES
            ),
            Self::Nodes(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ChangeError {}

impl MemberList {
    /// The most bytes of a list.
    pub const MOST_BYTES: usize = 24 << 10;

    /// The nodes that a configuration lists.
    pub fn of(config: &NodeConfig) -> Self {
        let mut nodes = config.nodes.clone();
        for node in &mut nodes {
            if node.host.is_some() {
                // Where a name leads to is each node's own matter.
                node.address = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
            }
        }
        nodes.sort_unstable_by_key(|node| node.id);
        Self {
            version: Version::FIRST,
            nodes,
        }
    }

    /// The node with this id.
    pub fn node(&self, id: NodeId) -> Option<&NodeAddress> {
        NodeAddress::find(&self.nodes, id)
    }

    /// The configuration with these nodes in place of its own.
    ///
    /// # Errors
    /// [`ConfigError`]: what is wrong with the nodes.
    pub fn put_into(&self, config: &NodeConfig) -> Result<NodeConfig, ConfigError> {
        with_nodes(config, self.nodes.clone())
    }

    /// The next list, with this change, which was ordered on ring `made`. `config` says how nodes reach each other. The
    /// same on all nodes of a cluster.
    ///
    /// # Errors
    /// [`ChangeError`].
    pub fn with(
        &self,
        change: &Change,
        made: RingId,
        config: &NodeConfig,
    ) -> Result<Self, ChangeError> {
        let mut nodes = self.nodes.clone();
        let place = |id: u16| nodes.iter().position(|node| node.id == id);
        match change {
            Change::Add(node) => match NodeId::new(node.id).and_then(|id| self.node(id)) {
                Some(listed) => {
                    let place = listed.place(listed.token_port);
                    return Err(ChangeError::Listed(node.id, place));
                }
                None => nodes.push(node.clone()),
            },
            Change::Remove(id) => match place(id.get()) {
                Some(_) if nodes.len() == 1 => return Err(ChangeError::Last(*id)),
                Some(place) => drop(nodes.remove(place)),
                None => return Err(ChangeError::Unknown(*id)),
            },
            Change::Replace(node) => {
                let id = NodeId::new(node.id).ok_or(ChangeError::Nodes(ConfigError::NodeIdZero))?;
                let place = place(node.id).ok_or(ChangeError::Unknown(id))?;
                let name = node.name.clone().or_else(|| nodes[place].name.take());
                nodes[place] = NodeAddress {
                    name,
                    ..node.clone()
                };
            }
        }
        nodes.sort_unstable_by_key(|node| node.id);
        let list = Self {
            version: Version {
                number: self.version.number + 1,
                made: Some(made),
            },
            nodes,
        };
        list.put_into(config).map_err(ChangeError::Nodes)?;
        let has_room = list.nodes.len() <= MAX_MEMBERS && list.encode().len() <= Self::MOST_BYTES;
        has_room.then_some(list).ok_or(ChangeError::Full)
    }
}

/// Why nodes with this configuration keep the nodes that they started with; `None` if they can have others while they
/// run.
pub fn why_fixed(config: &NodeConfig) -> Option<&'static str> {
    if config.engine.has_votes() {
        return Some(
            "the nodes of an engine that votes do not change while it runs; which of them are its acceptors does (rota member \
             vote): a node whose disk was lost takes its place again by itself; for other nodes found the cluster anew \
             (operations.md, Founding anew)",
        );
    }
    if config.engine.has_views() || config.primary != PrimaryName::None {
        return Some(
            "who is listed counts in primary configurations here, and that does not change while a daemon runs: change \
             `[[node]]` in the file of each node, and restart the daemons one by one",
        );
    }
    config.open_membership.then_some(
        "with `open_membership` nodes join without being listed: there is nothing to change",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_core::EngineName;
    use rota_core::contract::Incarnation;

    fn id(node: u16) -> NodeId {
        NodeId::new(node).unwrap()
    }

    fn ring(number: u64) -> RingId {
        RingId {
            ring_seq: number,
            rep: id(1),
            incarnation: Incarnation(7),
        }
    }

    fn node(id: u16, place: &str, port: u16) -> NodeAddress {
        NodeAddress::at(id, place, (port, port + 1))
    }

    #[test]
    fn each_change_makes_the_next_list_and_says_what_is_wrong_with_itself() {
        let config = NodeConfig::loopback(3, 27_000);
        let first = MemberList::of(&config);
        let change = |list: &MemberList, change| list.with(&change, ring(8), &config);
        let four = change(&first, Change::Add(node(4, "127.0.0.1", 9000))).expect("it is new");
        assert_eq!((four.version.number, four.nodes.len()), (1, 4));
        assert!(four.version > first.version);
        let gone = change(&four, Change::Remove(id(2))).expect("it is listed");
        let ids: Vec<u16> = gone.nodes.iter().map(|node| node.id).collect();
        assert_eq!(ids, [1, 3, 4]);
        let mut named = node(2, "127.0.0.1", 9100);
        named.name = Some("two".to_owned());
        let named = change(&gone, Change::Add(named)).expect("it is new again");
        let moved = change(&named, Change::Replace(node(2, "127.0.0.1", 9200))).expect("it may");
        let two = moved.node(id(2)).expect("it is listed");
        assert_eq!((two.data_port, two.name.as_deref()), (9200, Some("two")));

        let refused = |list: &MemberList, wrong, words: &str| {
            let said = change(list, wrong).expect_err(words).to_string();
            assert!(said.contains(words), "{said}");
        };
        refused(
            &four,
            Change::Add(node(4, "127.0.0.1", 9300)),
            "listed already",
        );
        refused(
            &four,
            Change::Add(node(5, "127.0.0.1", 9000)),
            "used by two sockets",
        );
        refused(&four, Change::Add(node(5, "10.0.0.1", 9300)), "loopback");
        refused(&four, Change::Add(node(5, "no host", 9300)), "neither");
        refused(&four, Change::Add(node(0, "127.0.0.1", 9300)), "start at 1");
        refused(&four, Change::Remove(id(9)), "not listed");
        refused(
            &four,
            Change::Replace(node(9, "127.0.0.1", 9300)),
            "not listed",
        );
        let mut alone = first;
        alone.nodes.truncate(1);
        refused(&alone, Change::Remove(id(1)), "the only one");
    }

    #[test]
    fn of_two_lists_the_one_with_more_changes_counts_and_then_that_of_the_later_ring() {
        let version = |number, made| Version { number, made };
        let ascending = [
            Version::FIRST,
            version(1, Some(ring(9))),
            version(2, Some(ring(3))),
            version(2, Some(ring(4))),
        ];
        assert!(ascending.is_sorted_by(|one, other| one < other));
    }

    #[test]
    fn engines_that_count_nodes_keep_theirs() {
        let ring = NodeConfig::loopback(3, 27_000);
        assert_eq!(why_fixed(&ring), None);
        let mut totem = ring.clone();
        totem.engine = EngineName::TotemRing;
        assert_eq!(why_fixed(&totem), None);
        let refused = |change: fn(&mut NodeConfig)| {
            let mut config = ring.clone();
            change(&mut config);
            why_fixed(&config).expect("it keeps its nodes")
        };
        let votes = refused(|config| config.engine = EngineName::URingPaxos);
        assert!(votes.contains("acceptors"));
        for engine in [EngineName::FastCast, EngineName::Lcr] {
            let mut config = ring.clone();
            config.engine = engine;
            assert!(why_fixed(&config).is_some_and(|why| why.contains("primary")));
        }
        assert!(refused(|config| config.primary = PrimaryName::Static).contains("primary"));
        assert!(refused(|config| config.open_membership = true).contains("open_membership"));
    }
}

//! The requests of operators, and their answers, as JSON; and why one is refused, in words.

use std::fmt;

use rota_core::contract::{NodeId, SubmitError};
use rota_net::NodeAddress;
use rota_node::MemberList;
use rota_node::members::{Change, ChangeError};
use serde::{Deserialize, Serialize};

/// A request about the nodes of the cluster, at the socket for that.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum MemberRequest {
    /// Say which nodes there are.
    List,
    /// Add a node.
    Add(MemberPlace),
    /// Remove a node.
    Remove {
        /// Its number.
        id: u16,
        /// Also if it is on the ring, or few nodes are.
        force: bool,
    },
    /// Give a node, which is not on the ring, another address.
    Replace(MemberPlace),
    /// Have a node vote, where the engine has acceptors.
    Vote {
        /// Its number.
        id: u16,
        /// The number of the acceptor in whose place it comes, if it is not to be one more.
        instead_of: Option<u16>,
        /// Also if no majority of those that are to vote then is there.
        force: bool,
    },
    /// Have a node vote no more.
    Unvote {
        /// Its number.
        id: u16,
        /// Also if no majority of those that are to vote then is there.
        force: bool,
    },
}

/// A node, and where it is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberPlace {
    /// Its number.
    pub id: u16,
    /// Its address, or the name of its host.
    pub address: String,
    /// The name of its daemon for clients.
    pub name: Option<String>,
    /// Its UDP port for data; `None`: as the others have it.
    pub data_port: Option<u16>,
    /// Its UDP port for tokens; `None`: as the others have it.
    pub token_port: Option<u16>,
    /// Also if few nodes are on the ring.
    pub force: bool,
}

/// The answer to a request.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MemberReply {
    /// Whether it was done.
    pub done: bool,
    /// What came of it, for people.
    pub text: String,
    /// The number of the list in force: how often it has changed since the configuration.
    pub number: u64,
    /// The nodes.
    pub nodes: Vec<MemberStatus>,
    /// Which of them vote, and are to, where the engine has acceptors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acceptors: Option<AcceptorStatus>,
}

/// The acceptors, and the list of those that are to be.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AcceptorStatus {
    /// The number of the list; 0 while the acceptors are those of the configuration.
    pub list: u64,
    /// The nodes that are to vote.
    pub listed: Vec<u16>,
    /// The nodes that do.
    pub voting: Vec<u16>,
}

/// A node of the cluster.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MemberStatus {
    /// Its number.
    pub id: u16,
    /// The name of its daemon for clients, if it has one.
    pub name: Option<String>,
    /// Its address, or the name of its host.
    pub address: String,
    /// Its UDP port for data.
    pub data_port: u16,
    /// Its UDP port for tokens.
    pub token_port: u16,
    /// Whether it is on the ring of the daemon that was asked.
    pub on_ring: bool,
}

/// Why a change is not made.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The daemons keep the nodes they started with.
    Fixed(&'static str),
    /// The list cannot be changed like that.
    Change(ChangeError),
    /// No port was given, and the nodes have different ones.
    NoPort,
    /// With multicast, a second node at this address was not expected when the first one started.
    SameHost(u16),
    /// This node is on the ring, and is to be removed.
    Removed(NodeId),
    /// This node is on the ring, and is to be elsewhere.
    Replaced(NodeId),
    /// Of the listed nodes, only so many are on the ring.
    Few(usize, usize),
    /// These nodes keep no list on disk.
    Forgetful(Vec<NodeId>),
    /// These nodes have begun with other files than this one.
    Differing(Vec<NodeId>),
    /// Another change came first.
    Outdated,
    /// Another change is being made through this daemon.
    Busy,
    /// The daemons did not come to one list in time; these have not told theirs.
    Late(Vec<NodeId>),
    /// The ring does not take a message of so many bytes about the list.
    Unsent(usize, SubmitError),
}

impl From<ChangeError> for Refusal {
    fn from(error: ChangeError) -> Self {
        Self::Change(error)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(why) => f.write_str(why),
            Self::Change(error) => error.fmt(f),
            Self::NoPort => f.write_str(
                "the nodes have different ports: say --data-port and --token-port",
            ),
            Self::SameHost(node) => write!(
                f,
                "node {node} has this address already, and does not let its multicasts be heard on its own host: list both \
                 nodes in the configuration, and restart that daemon"
            ),
            Self::Removed(node) => write!(
                f,
                "node {node} is on the ring: stop it first, or say --force, and it leaves and stops"
            ),
            Self::Replaced(node) => write!(f, "node {node} is on the ring: stop it first"),
            Self::Few(present, listed) => write!(
                f,
                "of {listed} listed nodes {present} on this ring: the list changes where more than half of them are, so that \
                 two sides of a split do not both change it; bring more of them back, or say --force if they are gone for good"
            ),
            Self::Forgetful(nodes) => write!(
                f,
                "{} no list on disk, and would forget it: set `state_dir` there",
                they(nodes, "keeps", "keep")
            ),
            Self::Differing(nodes) => write!(
                f,
                "{} in its configuration than this one: make `[[node]]` the same in all files, and restart the daemons where it \
                 was another",
                they(nodes, "has other nodes", "have other nodes")
            ),
            Self::Outdated => f.write_str("another change came first: look at the list, and ask again"),
            Self::Busy => f.write_str("another change is being made through this daemon: ask again"),
            Self::Late(nodes) if nodes.is_empty() => f.write_str(
                "not done in time, as the ring changes or is slow; it may be done yet: look at the list, and ask again",
            ),
            Self::Unsent(bytes, error) => {
                write!(f, "the list of nodes needs a message of {bytes} bytes: {error}")?;
                match error {
                    SubmitError::TooLarge { .. } => write!(
                        f,
                        ", as `message_bytes` of the ring says: set it to {bytes} or more on this node, and restart it"
                    ),
                    _ => Ok(()),
                }
            }
            Self::Late(nodes) => write!(
                f,
                "{} not say which list of nodes counts there, as a daemon of an earlier version does not",
                they(nodes, "does", "do")
            ),
        }
    }
}

/// Nodes, and the verb that goes with their number.
fn they(nodes: &[NodeId], one: &str, several: &str) -> String {
    let names: Vec<String> = nodes.iter().map(ToString::to_string).collect();
    match &names[..] {
        [name] => format!("node {name} {one}"),
        _ => format!("nodes {} {several}", names.join(", ")),
    }
}

impl MemberRequest {
    /// The change that is asked for, of this list, and whether it is forced; `None` if none is.
    pub(super) fn change(self, list: &MemberList) -> Result<Option<(Change, bool)>, Refusal> {
        Ok(Some(match self {
            // Those about acceptors do not change the nodes.
            Self::List | Self::Vote { .. } | Self::Unvote { .. } => return Ok(None),
            Self::Add(place) => {
                let ports = common_ports(list);
                (Change::Add(place.node(ports)?), place.force)
            }
            Self::Replace(place) => {
                let id = NodeId::new(place.id);
                let listed = id.and_then(|id| list.node(id));
                let ports = listed.map(|node| (node.data_port, node.token_port));
                (Change::Replace(place.node(ports)?), place.force)
            }
            Self::Remove { id, force } => {
                // No node has the number 0: it is not listed.
                let Some(id) = NodeId::new(id) else {
                    let error = rota_node::ConfigError::NodeIdZero;
                    return Err(Refusal::Change(ChangeError::Nodes(error)));
                };
                (Change::Remove(id), force)
            }
        }))
    }
}

impl MemberPlace {
    /// The node, with these ports if none are given.
    fn node(&self, usual: Option<(u16, u16)>) -> Result<NodeAddress, Refusal> {
        let data = self.data_port.or(usual.map(|(data, _)| data));
        let token = self.token_port.or(usual.map(|(_, token)| token));
        let (Some(data), Some(token)) = (data, token) else {
            return Err(Refusal::NoPort);
        };
        let node = NodeAddress::at(self.id, &self.address, (data, token));
        Ok(NodeAddress {
            name: self.name.clone(),
            ..node
        })
    }
}

/// The ports that all nodes have.
fn common_ports(list: &MemberList) -> Option<(u16, u16)> {
    let mut ports = list
        .nodes
        .iter()
        .map(|node| (node.data_port, node.token_port));
    let first = ports.next()?;
    ports.all(|other| other == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use rota_node::NodeConfig;

    use super::*;

    fn place(data_port: Option<u16>) -> MemberPlace {
        MemberPlace {
            id: 4,
            address: "10.0.0.4".to_owned(),
            name: None,
            data_port,
            token_port: data_port.map(|port| port + 1),
            force: false,
        }
    }

    #[test]
    fn ports_are_those_of_the_others_where_they_have_the_same() {
        let mut list = MemberList::of(&NodeConfig::loopback(2, 27_000));
        let none = MemberRequest::Add(place(None)).change(&list);
        assert!(matches!(none, Err(Refusal::NoPort)));
        for node in &mut list.nodes {
            (node.data_port, node.token_port) = (7701, 7702);
        }
        let ports = |request: MemberRequest| match request.change(&list) {
            Ok(Some((Change::Add(node) | Change::Replace(node), false))) => {
                (node.data_port, node.token_port)
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(ports(MemberRequest::Add(place(None))), (7701, 7702));
        assert_eq!(ports(MemberRequest::Add(place(Some(9000)))), (9000, 9001));
        let known = MemberPlace {
            id: 2,
            ..place(None)
        };
        assert_eq!(ports(MemberRequest::Replace(known)), (7701, 7702));
    }

    #[test]
    fn requests_are_json() {
        let all = [
            (MemberRequest::List, "\"list\""),
            (
                MemberRequest::Remove { id: 3, force: true },
                "{\"remove\":{\"id\":3,\"force\":true}}",
            ),
        ];
        for (request, text) in all {
            assert_eq!(serde_json::to_string(&request).expect("JSON"), text);
            assert_eq!(
                serde_json::from_str::<MemberRequest>(text).expect(text),
                request
            );
        }
    }
}

//! The list of acceptors: the nodes that are to vote, as the ring has ordered it.
//!
//! The acceptors of a configuration say who votes; the list says who is to. It is an entry of the table that every
//! process has ([`super::accounts`]), and a part of each base, so all know the same list at the same place of the order.
//! Configurations come nearer to it by one acceptor at a time (`membership/seats.rs`).
//!
//! Each list has a number, one more than that of the list it takes the place of. A list with any other number changes
//! nothing: of two operators who both have seen list 3 one makes list 4, and the other is told so. Before the first
//! list, number 0, the acceptors are those of the configurations.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::accounts::{Command, Refused, Replicas};
use rota_core::contract::NodeId;
use rota_core::mutants::{self, Mutant};

/// The most acceptors that a list has.
pub const MOST_ACCEPTORS: usize = 31;

/// The newest list.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct AcceptorList {
    number: u64,
    nodes: Replicas,
}

impl AcceptorList {
    /// The list with this number, as it was written.
    pub(super) fn restore(number: u64, nodes: Replicas) -> Option<Self> {
        (number > 0 && is_sound(&nodes)).then_some(Self { number, nodes })
    }

    /// Its number; 0 if none was ordered.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// The nodes that are to vote; none if none was ordered.
    pub const fn nodes(&self) -> &Replicas {
        &self.nodes
    }

    /// Whether none was ordered.
    pub const fn is_none(&self) -> bool {
        self.number == 0
    }

    /// Whether a node is to vote.
    pub fn has(&self, node: NodeId) -> bool {
        self.nodes.contains(&node)
    }

    /// Takes a list that was ordered.
    pub(super) fn take(&mut self, number: u64, nodes: Replicas) -> Result<(), Refused> {
        if !is_sound(&nodes) {
            return Err(Refused::Unsound);
        }
        if number != self.number.saturating_add(1) && !mutants::on(Mutant::U153) {
            return Err(Refused::List(self.number));
        }
        *self = Self { number, nodes };
        Ok(())
    }
}

/// Whether a list can have these nodes.
pub(super) fn is_sound(nodes: &Replicas) -> bool {
    (1..=MOST_ACCEPTORS).contains(&nodes.len())
}

/// The reason why a list is not ordered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unfit {
    /// It has nobody.
    Empty,
    /// It has this number of nodes, which is more than [`MOST_ACCEPTORS`].
    Many(usize),
    /// It has this node more than once.
    Twice(NodeId),
    /// No process knows this node.
    Unknown(NodeId),
    /// This node observes: it never votes.
    Observes(NodeId),
    /// These nodes of the list are not there now, and the others are no majority of it.
    Away(Vec<NodeId>),
    /// It follows another list than the newest, which has this number.
    Old(u64),
    /// This process can have nothing ordered now: it observes, has left, or has too much waiting.
    Busy,
}

impl core::fmt::Display for Unfit {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let text = match self {
            Self::Empty => "a ring needs an acceptor: the last one is not removed".to_string(),
            Self::Many(count) => format!("{count} acceptors: a ring has {MOST_ACCEPTORS} at most"),
            Self::Twice(node) => format!("node {node} is listed twice"),
            Self::Unknown(node) => format!("node {node} is none of the ring's nodes"),
            Self::Observes(node) => format!("node {node} observes, and never votes"),
            Self::Away(nodes) => {
                let names: Vec<String> = nodes.iter().map(ToString::to_string).collect();
                let names = names.join(", ");
                format!("no majority of these acceptors is there: {names} not")
            }
            Self::Old(number) => format!("another list came first: the newest is list {number}"),
            Self::Busy => "nothing can be ordered here now".to_string(),
        };
        f.write_str(&text)
    }
}

impl AcceptorList {
    /// The list of these nodes that follows this one, of which whoever asks knows the number. `nodes`: those of the
    /// ring, `observers` of them observe.
    ///
    /// # Errors
    /// [`Unfit`].
    pub(super) fn next(
        &self,
        (list, follows): (&[NodeId], u64),
        (nodes, observers): (&[NodeId], &[NodeId]),
        is_there: impl Fn(NodeId) -> bool,
    ) -> Result<Command, Unfit> {
        let mut set = BTreeSet::new();
        for node in list {
            if !nodes.contains(node) {
                return Err(Unfit::Unknown(*node));
            }
            if observers.contains(node) {
                return Err(Unfit::Observes(*node));
            }
            if !set.insert(*node) {
                return Err(Unfit::Twice(*node));
            }
        }
        if set.is_empty() {
            return Err(Unfit::Empty);
        }
        if !is_sound(&set) {
            return Err(Unfit::Many(set.len()));
        }
        if self.number != follows {
            return Err(Unfit::Old(self.number));
        }
        let away: Vec<NodeId> = set
            .iter()
            .copied()
            .filter(|node| !is_there(*node))
            .collect();
        match 2 * away.len() < set.len() {
            true => Ok(Command::Acceptors(follows + 1, set)),
            false => Err(Unfit::Away(away)),
        }
    }
}

//! Sessions, quorums, and the knowledge of a node of them.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::contract::{Incarnation, NodeId, Process, RingId, has_majority};
use crate::mutants::{self, Mutant};

/// The rule by which configurations are primary. The same on all nodes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rule {
    /// Configurations with more than half of the configured nodes are primary.
    StaticMajority {
        /// All nodes, present or not.
        configured: Vec<NodeId>,
    },
    /// Configurations with a quorum of the last primary are primary: more than half of its members, or half of them and
    /// the smallest.
    DynamicLinear {
        /// The members of the session that counts as the last primary before there was one. Empty on a node that is not
        /// among them, or whose disk was lost: such a node does not count until it has been in a primary.
        first: Vec<NodeId>,
    },
}

impl Rule {
    /// Whether more than half of `configured` are among `members`.
    pub(super) fn majority(configured: &[NodeId], members: &[Process]) -> bool {
        let mut configured = configured.to_vec();
        configured.sort_unstable();
        configured.dedup();
        has_majority(&configured, members)
    }
}

/// A configuration that became primary, or may have.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Session {
    /// Also its place among the sessions: numbers of rings grow at every node.
    pub ring: RingId,
    /// By ascending id, never empty.
    pub members: Vec<NodeId>,
}

impl Session {
    pub fn new(ring: RingId, mut members: Vec<NodeId>) -> Self {
        members.sort_unstable();
        members.dedup();
        Self { ring, members }
    }

    /// The session that counts as the last primary before there was one.
    pub fn first(nodes: &[NodeId]) -> Option<Self> {
        let ring = RingId {
            ring_seq: 0,
            rep: *nodes.iter().min()?,
            incarnation: Incarnation(0),
        };
        Some(Self::new(ring, nodes.to_vec()))
    }

    pub fn has(&self, node: NodeId) -> bool {
        self.members.binary_search(&node).is_ok()
    }

    /// Whether these nodes are more than half of its members, or half of them and the smallest: two
    /// quorums always have a member in common.
    pub fn has_quorum(&self, here: impl Fn(NodeId) -> bool) -> bool {
        let count = self.members.iter().filter(|node| here(**node)).count();
        let (twice, all) = (2 * count, self.members.len());
        let distinguished = self.members.first().is_some_and(|first| here(*first));
        twice > all || twice == all && (distinguished || mutants::on(Mutant::P04))
    }
}

/// The knowledge of a node of primaries.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Knowledge {
    /// The last primary. `None`: this node may have forgotten, and does not count as a member of any.
    pub last: Option<Session>,
    /// The attempts since then whose result this node does not know; ascending.
    pub attempts: Vec<Session>,
    /// The rings of those of these sessions to which, as far as this node is concerned, the state of all primaries
    /// before was carried.
    pub carried: BTreeSet<RingId>,
}

impl Knowledge {
    /// The knowledge of a node that has not been in any primary yet.
    pub fn first(nodes: &[NodeId]) -> Self {
        let last = Session::first(nodes);
        Self {
            carried: last.iter().map(|first| first.ring).collect(),
            last,
            attempts: Vec::new(),
        }
    }

    /// Drops from `carried` the rings of neither the last primary nor an attempt.
    pub fn forget_others(&mut self) {
        let sessions = self.last.iter().chain(&self.attempts);
        let rings: BTreeSet<RingId> = sessions.map(|session| session.ring).collect();
        let keeps = mutants::on(Mutant::I02);
        self.carried.retain(|ring| keeps || rings.contains(ring));
    }

    /// Whether this node has the state of the last primary, which may have been any of the open attempts.
    pub fn carries(&self, last: &Session, open: &[Session]) -> bool {
        let mut may_be_last = open.iter().chain([last]);
        may_be_last.all(|session| self.carried.contains(&session.ring))
    }
}

impl Session {
    /// Its invariants.
    fn check(&self) {
        let pairs = self.members.windows(2);
        assert!(!self.members.is_empty(), "a primary has members");
        assert!(
            pairs.into_iter().all(|pair| pair[0] < pair[1]),
            "members of a primary are sorted, each once"
        );
    }
}

impl Knowledge {
    /// Its invariants.
    pub fn check(&self) {
        let mut attempts = self.attempts.windows(2);
        assert!(
            attempts.all(|pair| pair[0].ring < pair[1].ring),
            "attempts are in order, each once"
        );
        let sessions = || self.last.iter().chain(&self.attempts);
        sessions().for_each(Session::check);
        let is_known = |ring: &RingId| sessions().any(|session| session.ring == *ring);
        assert!(
            self.carried.iter().all(is_known),
            "only the last primary and attempts are carried on"
        );
    }
}

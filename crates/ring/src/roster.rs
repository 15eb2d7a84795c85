//! The members of a ring, and the place of one of them.

use alloc::string::String;
use alloc::vec::Vec;

use super::RingConfig;
use crate::wire::Settings;
use rota_core::contract::{NodeId, Process, RingId};
use rota_core::invariants::FEW;

/// A ring as one of its members sees it. Nothing here changes while the ring lasts.
#[derive(Clone, Debug)]
pub(super) struct Roster {
    ring: RingId,
    /// By ascending id.
    members: Vec<Process>,
    /// The settings of the members, in their order; empty on a ring of one.
    told: Vec<Settings>,
    me: NodeId,
    /// Place of this member among the members.
    my_index: u16,
    successor: NodeId,
    predecessor: NodeId,
}

impl Roster {
    /// Member `me` of `ring`, whose `members` are listed by ascending id and contain it.
    pub fn new(ring: RingId, members: Vec<Process>, told: Vec<Settings>, me: NodeId) -> Self {
        let count = members.len();
        let my_index = members
            .iter()
            .position(|member| member.node == me)
            .unwrap_or(0);
        let neighbour = |step: usize| members[(my_index + step) % count].node;
        Self {
            ring,
            me,
            my_index: my_index as u16,
            successor: neighbour(1),
            predecessor: neighbour(count - 1),
            members,
            told,
        }
    }

    /// The ring's identity.
    pub const fn ring(&self) -> RingId {
        self.ring
    }

    /// The members, by ascending id.
    pub fn members(&self) -> &[Process] {
        &self.members
    }

    /// This member.
    pub const fn me(&self) -> NodeId {
        self.me
    }

    /// The place of this member.
    pub const fn my_index(&self) -> u16 {
        self.my_index
    }

    /// The member that this one passes the token to.
    pub const fn successor(&self) -> NodeId {
        self.successor
    }

    /// The member that passes the token to this one.
    pub const fn predecessor(&self) -> NodeId {
        self.predecessor
    }

    /// Whether this member has no other beside it: such a ring needs no token.
    pub const fn is_alone(&self) -> bool {
        self.members.len() == 1
    }

    /// Whether this member created the ring's first token.
    pub fn is_rep(&self) -> bool {
        self.ring.rep == self.me
    }

    /// The member at a place.
    #[inline(always)]
    pub fn process(&self, index: u16) -> Process {
        self.members[usize::from(index)]
    }

    /// The place of a node, if it is on the ring.
    #[inline(always)]
    pub fn index_of(&self, node: NodeId) -> Option<u16> {
        let found = self
            .members
            .binary_search_by_key(&node, |member| member.node);
        // At most 128 members.
        found.ok().map(|index| index as u16)
    }

    /// Whether both rings have the same nodes.
    pub fn has_nodes_of(&self, other: &Self) -> bool {
        let nodes = self.members.iter().map(|member| member.node);
        nodes.eq(other.members.iter().map(|member| member.node))
    }

    /// One sentence for each member and each setting that differs from `own`.
    pub fn differences(&self, own: &RingConfig) -> Vec<String> {
        own.differences(&self.members, &self.told)
    }

    /// Its invariants.
    pub fn check(&self) {
        let count = self.members.len();
        assert!(
            usize::from(self.my_index) < count,
            "this member is on the ring"
        );
        assert_eq!(self.process(self.my_index).node, self.me, "at its place");
        assert!(
            count > FEW || self.members.is_sorted_by(|a, b| a.node < b.node),
            "members are sorted by node, each once"
        );
        assert!(
            self.told.is_empty() || self.told.len() == count,
            "each has said how it is configured"
        );
        assert!(
            self.members
                .iter()
                .any(|member| member.node == self.ring.rep),
            "the representative is a member"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_core::contract::Incarnation;

    fn node(id: u16) -> NodeId {
        NodeId::new(id).expect("not 0")
    }

    fn roster(ids: &[u16], me: u16) -> Roster {
        let incarnation = Incarnation(7);
        let process = |&id: &u16| Process {
            node: node(id),
            incarnation,
        };
        let ring = RingId {
            ring_seq: 4,
            rep: node(ids[0]),
            incarnation,
        };
        let members = ids.iter().map(process).collect();
        let roster = Roster::new(ring, members, Vec::new(), node(me));
        roster.check();
        roster
    }

    #[test]
    fn the_last_member_passes_the_token_to_the_first() {
        let last = roster(&[2, 5, 9], 9);
        assert_eq!((last.predecessor(), last.successor()), (node(5), node(2)));
        let first = roster(&[2, 5, 9], 2);
        assert_eq!((first.predecessor(), first.successor()), (node(9), node(5)));
        assert!(first.is_rep() && !last.is_rep());
    }

    #[test]
    fn a_member_alone_is_its_own_neighbour() {
        let alone = roster(&[3], 3);
        assert!(alone.is_alone());
        assert_eq!((alone.predecessor(), alone.successor()), (node(3), node(3)));
    }

    #[test]
    fn members_are_found_by_their_nodes() {
        let roster = roster(&[2, 5, 9], 5);
        assert_eq!(roster.index_of(node(9)), Some(2));
        assert_eq!(roster.index_of(node(4)), None);
        assert_eq!(roster.process(2).node, node(9));
    }
}

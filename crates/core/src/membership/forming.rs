//! How a configured list of processes becomes a ring.
//!
//! Every process says [`Hello`] to the others until its ring runs. When the representative, the one
//! with the smallest id, knows all incarnations, it announces the ring with [`Form`] to whoever
//! still says hello without it. When all have it, the representative creates the first token.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::contract::{Incarnation, NodeId, Process, RingId, Time};
use crate::wire::{Form, Hello};

/// Progress of a ring that is not installed everywhere yet.
#[derive(Debug)]
pub(super) struct Forming {
    me: Process,
    expected: Vec<NodeId>,
    known: BTreeMap<NodeId, Incarnation>,
    installed: BTreeSet<NodeId>,
    /// The ring, once the representative has named it.
    ring: Option<RingId>,
    /// On the representative: number of the next ring it names.
    next_ring_seq: u64,
    pub next_hello: Time,
}

impl Forming {
    pub fn new(me: Process, expected: Vec<NodeId>, now: Time) -> Self {
        let known = BTreeMap::from([(me.node, me.incarnation)]);
        Self {
            me,
            expected,
            known,
            installed: BTreeSet::new(),
            ring: None,
            next_ring_seq: 1,
            next_hello: now,
        }
    }

    pub fn is_rep(&self) -> bool {
        self.expected.first() == Some(&self.me.node)
    }

    /// Whether a hello claims to come from this very node.
    pub fn is_me(&self, hello: &Hello) -> bool {
        self.me.node == hello.process.node
    }

    pub const fn ring(&self) -> Option<RingId> {
        self.ring
    }

    /// Who has not said hello yet.
    pub fn missing(&self) -> Vec<NodeId> {
        let known = |node: &&NodeId| !self.known.contains_key(node);
        self.expected.iter().filter(known).copied().collect()
    }

    /// What to say to the others.
    pub const fn hello(&self, cluster: u32) -> Hello {
        Hello {
            cluster,
            process: self.me,
            installed: self.ring,
        }
    }

    /// Notes a hello from a listed node. A node that restarted counts with its newer life; the
    /// representative then gives up the ring it has named for the older one and names another. Says
    /// whether the node had another life before.
    pub fn on_hello(&mut self, hello: &Hello) -> bool {
        let Process { node, incarnation } = hello.process;
        let before = self.known.insert(node, incarnation);
        let restarted = before.is_some_and(|before| before != incarnation);
        if restarted && self.is_rep() {
            self.ring = None;
            self.installed.clear();
        }
        if self.ring.is_some() && hello.installed == self.ring {
            self.installed.insert(node);
        }
        restarted
    }

    /// On the representative: names the ring as soon as everybody is known.
    pub fn name_ring(&mut self) -> Option<Form> {
        if !self.is_rep() || self.ring.is_some() || !self.missing().is_empty() {
            return None;
        }
        let ring = RingId {
            ring_seq: self.next_ring_seq,
            rep: self.me.node,
            incarnation: self.me.incarnation,
        };
        self.next_ring_seq += 1;
        self.ring = Some(ring);
        self.installed.insert(self.me.node);
        Some(Form {
            cluster: 0,
            ring,
            members: self.members(),
        })
    }

    pub fn members(&self) -> Vec<Process> {
        let process = |(&node, &incarnation)| Process { node, incarnation };
        self.known.iter().map(process).collect()
    }

    /// Elsewhere: whether an announced ring is the one this process waits for. One that replaces a
    /// ring without a token yet comes from a later life of the representative, or is its next.
    pub fn fits(&self, form: &Form) -> bool {
        let nodes = form.members.iter().map(|member| member.node);
        let newer = |ring: RingId| {
            ring.incarnation != form.ring.incarnation || ring.ring_seq < form.ring.ring_seq
        };
        self.ring.is_none_or(newer)
            && form.members.contains(&self.me)
            && nodes.eq(self.expected.iter().copied())
            && self.expected.first() == Some(&form.ring.rep)
    }

    /// Takes an announced ring.
    pub fn install(&mut self, form: &Form) {
        self.ring = Some(form.ring);
        self.known = form
            .members
            .iter()
            .map(|m| (m.node, m.incarnation))
            .collect();
    }

    /// On the representative: whether everybody has the ring.
    pub fn is_complete(&self) -> bool {
        self.ring.is_some() && self.installed.len() == self.expected.len()
    }
}

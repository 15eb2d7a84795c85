//! Signs that a process is gone, and who is better left alone for a while.

use alloc::collections::BTreeMap;

use crate::contract::{NodeId, Process, Time};

/// Two refusals within this time count as a death (A4): one may be of a datagram from before the
/// process started.
const REFUSALS_WITHIN: u64 = 50_000_000;

/// Refusals by the kernels of peers: nobody listens at their address.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    last: BTreeMap<NodeId, Time>,
}

impl Refusals {
    /// Notes one; answers whether the node's process is dead.
    pub fn note(&mut self, now: Time, node: NodeId) -> bool {
        let before = self.last.insert(node, now);
        before.is_some_and(|before| now.since(before) <= REFUSALS_WITHIN)
    }

    /// A process of this node was heard.
    pub fn clear(&mut self, node: NodeId) {
        self.last.remove(&node);
    }
}

/// Processes with whom rings were tried in vain: some link between them and a member is cut for good,
/// and to try again and again would leave nobody in service (P-12).
#[derive(Debug, Default)]
pub(super) struct BackOff {
    failures: BTreeMap<NodeId, Failures>,
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    until: Time,
}

/// The longest pause is the token loss time shifted by this.
const MAX_SHIFT: u32 = 6;

impl BackOff {
    /// A ring was tried with a process that was there to be heard, and formed without it. The first
    /// time costs nothing: it may have been a lost packet.
    pub fn failed(&mut self, now: Time, process: Process, token_loss: u64) -> bool {
        let failures = self.failures.entry(process.node).or_insert(Failures {
            count: 0,
            until: now,
        });
        failures.count = failures.count.saturating_add(1);
        if failures.count < 2 {
            return false;
        }
        let shift = (failures.count - 1).min(MAX_SHIFT);
        failures.until = now.after(token_loss << shift);
        true
    }

    /// A ring with this node has lasted.
    pub fn lasted(&mut self, node: NodeId) {
        self.failures.remove(&node);
    }

    /// Whether a node is to be left alone now.
    pub fn is_avoided(&self, now: Time, node: NodeId) -> bool {
        self.failures
            .get(&node)
            .is_some_and(|failures| now < failures.until)
    }
}

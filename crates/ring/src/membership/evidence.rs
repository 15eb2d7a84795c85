//! Signs that a process is gone, and the back-off from processes that are better left alone for a while.

use alloc::collections::{BTreeMap, VecDeque};
use core::hash::Hasher;

use rota_core::contract::{Incarnation, NodeId, Process, Time};
use rota_core::fingerprint::Fingerprint;

/// Two refusals within this time count as a death (A4): one may be of a datagram from before the
/// process started.
const REFUSALS_WITHIN: u64 = 50_000_000;

/// Refusals by the kernels of peers: no process listens at their address.
#[derive(Clone, Debug, Default)]
pub(super) struct Refusals {
    last: BTreeMap<NodeId, Time>,
}

impl Refusals {
    /// Notes a refusal; returns whether the node's process is dead.
    pub fn note(&mut self, now: Time, node: NodeId) -> bool {
        let before = self.last.insert(node, now);
        before.is_some_and(|before| now.since(before) <= REFUSALS_WITHIN)
    }

    pub fn fingerprint(&self, print: &mut Fingerprint<'_, impl Hasher>) {
        for (node, at) in &self.last {
            print.add(node);
            print.past(*at);
        }
    }

    /// Forgets the refusals of a node, as a process of it was heard.
    pub fn clear(&mut self, node: NodeId) {
        self.last.remove(&node);
    }
}

/// Lives of nodes that are over: a later process of the same node has been on a ring. Their packets that are left in
/// the network must not pass for news.
#[derive(Clone, Debug, Default)]
pub(super) struct Former {
    /// The last life of each node that was on a ring, and since when; `None` if it has left of its own will.
    latest: BTreeMap<NodeId, (Incarnation, Option<Time>)>,
    over: VecDeque<Process>,
}

/// The most lives remembered. Packets do not stay in a network for as long as it takes to restart this often.
const LIVES: usize = 256;

impl Former {
    /// Notes a process that is on an installed ring. If it is a new life of its node, returns the time since which the
    /// life before was on a ring, unless that one left of its own will.
    pub fn on_ring(&mut self, now: Time, process: Process) -> Option<Time> {
        let Process { node, incarnation } = process;
        let (before, since) = *self.latest.entry(node).or_insert((incarnation, Some(now)));
        if before == incarnation {
            return None;
        }
        self.latest.insert(node, (incarnation, Some(now)));
        if self.over.len() == LIVES {
            self.over.pop_front();
        }
        self.over.push_back(Process {
            node,
            incarnation: before,
        });
        since
    }

    /// Notes that a process leaves of its own will: however short its life was, that says nothing against its node.
    pub fn on_leave(&mut self, process: Process) {
        if let Some((incarnation, since)) = self.latest.get_mut(&process.node)
            && *incarnation == process.incarnation
        {
            *since = None;
        }
    }

    pub fn contains(&self, process: Process) -> bool {
        self.over.contains(&process)
    }

    /// Its invariants.
    pub fn check(&self) {
        assert!(self.over.len() <= LIVES, "few lives are remembered");
    }

    pub fn fingerprint(&self, print: &mut Fingerprint<'_, impl Hasher>) {
        for (node, (incarnation, since)) in &self.latest {
            print.add((node, incarnation));
            since.iter().for_each(|since| print.past(*since));
        }
        print.add(&self.over);
    }
}

/// Processes with which rings were tried in vain: some link between them and a member is cut for good, and to try again
/// and again would leave no process in service (P-12).
#[derive(Clone, Debug, Default)]
pub(super) struct BackOff {
    failures: BTreeMap<NodeId, Failures>,
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    /// The number of times that the node fell silent on rings that had not lasted.
    silent: u32,
    until: Time,
    /// The time from which on a join may be let in all the same.
    open_at: Time,
}

impl Failures {
    /// The time, in nanoseconds, to leave the node alone: twice as long with each failure, so that a short trouble is
    /// soon forgotten. From the fifth on four times as long: else a ring of many nodes, each of which cannot hear some
    /// other, would try for minutes.
    fn pause(&self, token_loss: u64) -> u64 {
        let count = self.count.max(self.silent);
        let twice = count.saturating_sub(1);
        let more = count.saturating_sub(4);
        token_loss << (twice.saturating_add(more)).min(MAX_SHIFT)
    }

    /// Whether the node falls silent again and again: the first time may have been chance.
    const fn is_unsteady(&self) -> bool {
        self.silent >= 2
    }
}

/// The longest pause is the token loss time shifted by this.
const MAX_SHIFT: u32 = 6;

impl BackOff {
    fn of(&mut self, now: Time, node: NodeId) -> &mut Failures {
        self.failures.entry(node).or_insert(Failures {
            count: 0,
            silent: 0,
            until: now,
            open_at: now,
        })
    }

    /// Notes that a ring was tried with a process that was there to be heard, and formed without it. Returns whether
    /// the node is left alone now: the first time costs nothing, as it may have been a lost packet.
    pub fn failed(&mut self, now: Time, process: Process, token_loss: u64) -> bool {
        let failures = self.of(now, process.node);
        failures.count = failures.count.saturating_add(1);
        if failures.count < 2 {
            return false;
        }
        let pause = failures.pause(token_loss);
        failures.until = now.after(pause);
        failures.open_at = failures.open_at.max(now.after(pause / 4));
        true
    }

    /// Notes that a ring that had not lasted broke because a member fell silent, or that a node is back whose last life
    /// was as short. Returns whether the node is left alone now: the first time costs nothing. The node leaves no other
    /// alone itself, so it is not let in before its time.
    pub fn fell_silent(&mut self, now: Time, process: Process, token_loss: u64) -> bool {
        let failures = self.of(now, process.node);
        failures.silent = failures.silent.saturating_add(1);
        if !failures.is_unsteady() {
            return false;
        }
        failures.until = now.after(failures.pause(token_loss));
        failures.open_at = failures.until;
        true
    }

    /// Whether a node falls silent again and again.
    pub fn is_unsteady(&self, node: NodeId) -> bool {
        self.failures.get(&node).is_some_and(Failures::is_unsteady)
    }

    /// Whether a join of this node may be let in although it is left alone.
    pub fn is_open(&self, now: Time, node: NodeId) -> bool {
        self.failures
            .get(&node)
            .is_none_or(|failures| now >= failures.open_at)
    }

    /// Notes that a join of a node that is left alone was let in: the next has to wait.
    pub fn let_in(&mut self, now: Time, node: NodeId, token_loss: u64) {
        if let Some(failures) = self.failures.get_mut(&node) {
            failures.open_at = now.after(failures.pause(token_loss) / 4);
        }
    }

    /// Notes that a ring with this node has lasted: that makes up for one failure. It does not make up for all: if some
    /// other link is cut, rings of nodes that hear each other last, and each would begin the trouble anew. Only a
    /// steady ring makes up for a silence.
    pub fn lasted(&mut self, now: Time, node: NodeId, is_steady: bool) {
        if let Some(failures) = self.failures.get_mut(&node) {
            failures.count = failures.count.saturating_sub(1);
            failures.silent = failures.silent.saturating_sub(u32::from(is_steady));
            failures.until = now;
            failures.open_at = now;
        }
    }

    /// Forgets the failures of a node: a ring with it has lasted for longer than any node is left alone.
    pub fn forget(&mut self, node: NodeId) {
        self.failures.remove(&node);
    }

    pub fn fingerprint(&self, print: &mut Fingerprint<'_, impl Hasher>) {
        for (node, failures) in &self.failures {
            let silent = failures.silent.min(MAX_SHIFT + 1);
            print.add((node, failures.count.min(MAX_SHIFT + 1), silent));
            print.due(failures.until);
            print.due(failures.open_at);
        }
    }

    /// The nodes that are left alone now, each with whether it falls silent again and again.
    pub fn avoided(&self, now: Time) -> impl Iterator<Item = (NodeId, bool)> {
        let all = self.failures.iter();
        let avoided = all.filter(move |(_, failures)| now < failures.until);
        avoided.map(|(node, failures)| (*node, failures.is_unsteady()))
    }

    /// The time until which some node is left alone.
    pub fn until(&self) -> Option<Time> {
        self.failures.values().map(|failures| failures.until).max()
    }

    /// Whether a node is to be left alone now.
    pub fn is_avoided(&self, now: Time, node: NodeId) -> bool {
        self.failures
            .get(&node)
            .is_some_and(|failures| now < failures.until)
    }
}

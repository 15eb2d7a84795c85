//! Signs that a process is gone, and who is better left alone for a while.

use alloc::collections::{BTreeMap, VecDeque};
use core::hash::Hasher;

use rota_core::contract::{Incarnation, NodeId, Process, Time};
use rota_core::fingerprint::Fingerprint;

/// Two refusals within this time count as a death (A4): one may be of a datagram from before the
/// process started.
const REFUSALS_WITHIN: u64 = 50_000_000;

/// Refusals by the kernels of peers: nobody listens at their address.
#[derive(Clone, Debug, Default)]
pub(super) struct Refusals {
    last: BTreeMap<NodeId, Time>,
}

impl Refusals {
    /// Notes one; answers whether the node's process is dead.
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

    /// A process of this node was heard.
    pub fn clear(&mut self, node: NodeId) {
        self.last.remove(&node);
    }
}

/// Lives of nodes that are over: a later process of the same node has been on a ring. What is left of
/// theirs in the network must not pass for news.
#[derive(Clone, Debug, Default)]
pub(super) struct Former {
    /// The last life of each node that was on a ring, and since when; `None` if it has left of its own will.
    latest: BTreeMap<NodeId, (Incarnation, Option<Time>)>,
    over: VecDeque<Process>,
}

/// Lives remembered. Packets do not stay in a network for as long as it takes to restart so often.
const LIVES: usize = 256;

impl Former {
    /// A process is on an installed ring. Since when the node's life before it was on one, if this is a new one, and that one has not left
    /// of its own will.
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

    /// A process leaves of its own will: however short its life was, that says nothing against its node.
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

    pub fn fingerprint(&self, print: &mut Fingerprint<'_, impl Hasher>) {
        for (node, (incarnation, since)) in &self.latest {
            print.add((node, incarnation));
            since.iter().for_each(|since| print.past(*since));
        }
        print.add(&self.over);
    }
}

/// Processes with whom rings were tried in vain: some link between them and a member is cut for good,
/// and to try again and again would leave nobody in service (P-12).
#[derive(Clone, Debug, Default)]
pub(super) struct BackOff {
    failures: BTreeMap<NodeId, Failures>,
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    /// How often it fell silent on rings that had not lasted.
    silent: u32,
    until: Time,
    /// From when on a join may be let in all the same.
    open_at: Time,
}

impl Failures {
    /// How long to leave the node alone: twice as long with each failure, so that a short trouble is soon
    /// forgotten. From the fifth on four times as long: else a ring of many nodes, each of which cannot
    /// hear some other, would try for minutes.
    fn pause(&self, token_loss: u64) -> u64 {
        let count = self.count.max(self.silent);
        let twice = count.saturating_sub(1);
        let more = count.saturating_sub(4);
        token_loss << (twice.saturating_add(more)).min(MAX_SHIFT)
    }

    /// It falls silent again and again: the first time may have been chance.
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

    /// A ring was tried with a process that was there to be heard, and formed without it. The first
    /// time costs nothing: it may have been a lost packet.
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

    /// A ring that had not lasted has broken because a member fell silent, or a node is back whose last life was as short. The first time
    /// costs nothing. It leaves nobody alone itself: it is not let in before its time.
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

    /// A join of a node that is left alone was let in: the next has to wait.
    pub fn let_in(&mut self, now: Time, node: NodeId, token_loss: u64) {
        if let Some(failures) = self.failures.get_mut(&node) {
            failures.open_at = now.after(failures.pause(token_loss) / 4);
        }
    }

    /// A ring with this node has lasted: that makes up for one failure. Not for all of them: where some
    /// other link is cut, rings of those who hear each other last, and each would begin the trouble anew.
    /// It takes longer to make up for a silence.
    pub fn lasted(&mut self, now: Time, node: NodeId, is_steady: bool) {
        if let Some(failures) = self.failures.get_mut(&node) {
            failures.count = failures.count.saturating_sub(1);
            failures.silent = failures.silent.saturating_sub(u32::from(is_steady));
            failures.until = now;
            failures.open_at = now;
        }
    }

    /// A ring with this node has lasted for longer than anybody is left alone.
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

    /// Who is left alone now, and whether that is since it falls silent again and again.
    pub fn avoided(&self, now: Time) -> impl Iterator<Item = (NodeId, bool)> {
        let all = self.failures.iter();
        let avoided = all.filter(move |(_, failures)| now < failures.until);
        avoided.map(|(node, failures)| (*node, failures.is_unsteady()))
    }

    /// Until when somebody is left alone.
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

//! Says in the log what an operator should know before it hurts: counters that ought to stand still and
//! do not. Seldom, so that no trouble fills a disk (P-52).

use rota_core::contract::{NodeId, Status, Time};

/// How often the counters are looked at.
const EVERY_NANOS: u64 = 10_000_000_000;

/// What is watched, and what it means when it grows.
const WATCHED: [(&str, &str); 27] = [
    (
        "rotations_slow",
        "the token took more than a quarter of the token loss time to go round: processes wait for a \
         processor, or the network is full; consider a slower timing",
    ),
    (
        "duplicate_nodes",
        "another process goes by the number of this node",
    ),
    (
        "members_deaf",
        "a member that hears tokens but misses packets was excluded: look at its MTU and firewall; with multicast also at \
         IGMP in the switches: where the group does not arrive, transport = \"unicast\" does without",
    ),
    (
        "self_lossy",
        "this node loses much of what the others get: it has left the ring for a while; look at its cable, its port and its \
         processors",
    ),
    (
        "self_mute",
        "nobody receives what this node sends, though its tokens arrive: it has left the ring for a while; look at its \
         firewall, its MTU and whether its multicast leaves it",
    ),
    (
        "self_hung",
        "the application took nothing, and all waited for it: this node has left the ring until it takes deliveries again",
    ),
    (
        "members_unsteady",
        "a node fell silent again and again, and the ring broke each time: it is left alone for a while; look at what makes \
         it stand still, or at its cable",
    ),
    (
        "back_offs",
        "a node can be heard, but no ring with it holds: it is left alone for a while; look for links \
         that work in one direction only",
    ),
    (
        "net_kernel_drops",
        "a socket's buffer was full and the kernel dropped datagrams: see net.core.rmem_max",
    ),
    (
        "net_checksum_errors",
        "datagrams were damaged on their way, are sealed, or are forged",
    ),
    (
        "net_seal_unknown_key",
        "datagrams are sealed under a key that this node does not have, or not sealed: compare the key \
         files of the nodes",
    ),
    (
        "net_seal_forged",
        "datagrams are not authentic: a node has a wrong key or another `cluster`, or they were damaged or forged",
    ),
    (
        "net_seal_old",
        "datagrams came much later than others of their sender: delayed on purpose, or a path that \
         reorders a lot",
    ),
    (
        "net_seal_seen",
        "datagrams came twice: replayed, or a path that doubles them",
    ),
    (
        "net_seal_misdirected",
        "datagrams came to another node than they were sealed for, or back to their sender: replayed",
    ),
    (
        "net_seal_old_life",
        "datagrams are from an earlier life of their sender: replayed, two processes use one number, or \
         the clock of the sender was set back before it started",
    ),
    (
        "net_seal_unchecked",
        "more datagrams than can be checked claim to be from nodes that have just started: forged",
    ),
    (
        "net_foreign_source",
        "datagrams came from an address that no node has",
    ),
    (
        "datagrams_foreign_cluster",
        "datagrams came of another `cluster`, or of a node with another `transport` or `primary`: give each cluster its own \
         ports and group",
    ),
    (
        "net_send_errors",
        "the kernel of this host refuses what this node sends: look at its firewall (Operation not permitted), and whether \
         its interface and its address are still there (No such device, Network is unreachable)",
    ),
    (
        "net_link_forged",
        "connections for links were not authentic: a node has a wrong key, or they were damaged, forged or replayed",
    ),
    (
        "net_link_unknown_key",
        "connections for links came under a key that this node does not have, or without one: compare the key files \
         of the nodes",
    ),
    (
        "net_link_refused",
        "connections for links were refused: other programs at the port, another cluster or version, or two \
         processes with one number",
    ),
    (
        "uring_messages_foreign",
        "a node belongs to a cluster that was founded before this one, or anew: restart the one that is outside, and move \
         its log away first if it votes",
    ),
    (
        "primary_forgotten",
        "this node was in a primary that it does not know: its disk was lost or replaced, and it counts in no quorum \
         before it is in the next one",
    ),
    (
        "net_trace_lines_lost",
        "the trace has ended, as its file took no more: the node goes on without it; restart it when there is room again",
    ),
    (
        "uring_logs_given_up",
        "the acceptor's log has failed, or its disk was silent for too long: it is opened again; look at the disk",
    ),
];

/// The counters that ought to stand still: a driver warns in its log when one has grown.
pub fn watched_counters() -> impl Iterator<Item = &'static str> {
    WATCHED.into_iter().map(|(name, _)| name)
}

/// Looks at the counters now and then.
#[derive(Debug)]
pub(super) struct Watch {
    node: NodeId,
    at: Time,
    before: [u64; WATCHED.len()],
    /// What was said last.
    notes: Vec<String>,
    /// What the engine was doing then.
    state: String,
}

impl Watch {
    pub const fn new(node: NodeId, now: Time) -> Self {
        Self {
            node,
            at: now.after(EVERY_NANOS),
            before: [0; WATCHED.len()],
            notes: Vec::new(),
            state: String::new(),
        }
    }

    #[inline]
    pub fn is_due(&self, now: Time) -> bool {
        now >= self.at
    }

    /// Logs a line for each that has grown, and each sentence that is new.
    pub fn look(&mut self, now: Time, status: Status) {
        self.at = now.after(EVERY_NANOS);
        let (node, counters) = (self.node.get(), &status.counters);
        for note in &status.notes {
            if !self.notes.contains(note) {
                tracing::warn!(node, "{note}");
            }
        }
        self.notes = status.notes;
        if status.state != self.state {
            tracing::info!(node, "the ring: {}", status.state);
            self.state = status.state;
        }
        let longest_us = counters.get("rotation_longest_us").copied().unwrap_or(0);
        for ((name, meaning), before) in WATCHED.into_iter().zip(&mut self.before) {
            let count = counters.get(name).copied().unwrap_or(0);
            let times = count.saturating_sub(*before);
            *before = count;
            if times == 0 {
                continue;
            }
            if name == "rotations_slow" {
                tracing::warn!(node, times, longest_us, "{meaning}");
            } else {
                tracing::warn!(node, times, "{meaning} ({name})");
            }
        }
    }
}

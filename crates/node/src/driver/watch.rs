//! Warnings in the log for an operator, before it hurts: counters that ought to stand still and do not. They are rare,
//! so that no trouble fills a disk (P-52).

use std::collections::BTreeMap;

use rota_core::contract::{NodeId, Status, Time};

/// The time between two looks at the counters: a new warning is logged at once.
const EVERY_NANOS: u64 = 1_000_000_000;
/// The time for which the same warning is not repeated.
const QUIET_NANOS: u64 = 10_000_000_000;
/// From one line about the ring's state to the next.
const STATE_NANOS: u64 = 3_000_000_000;
/// The time after which a missing node has not just started.
const MISSING_NANOS: u64 = 4_000_000_000;

/// The counters that are watched, and the meaning of their growth.
const WATCHED: [(&str, &str); 33] = [
    (
        "rotations_slow",
        "the token took more than a quarter of the token loss time to go round: processes wait for a \
         processor, or the network is full; consider a slower timing",
    ),
    (
        "ring_needs_far",
        "this ring is waited for more than 2^30 instances further than it is: it skips there step by step; is another ring of the \
         same processes far ahead, or founded with another `origin`?",
    ),
    (
        "ring_needs_refused",
        "somebody waits for an instance of this ring that never comes, beyond 2^47: a process of its rings is wrong",
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
        "datagrams_other_version",
        "datagrams came of another version of the format: a node runs an older or a newer program, and neither is on a ring \
         with it; compare `rota --version` on all nodes",
    ),
    (
        "net_link_other_version",
        "connections for links came of another version: a node runs an older or a newer program; compare `rota --version` on \
         all nodes",
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
        "connections for links were refused: other programs at the port, another cluster, or two processes with one \
         number",
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
    (
        "uring_reads_failed",
        "the acceptor's log could not tell decided values that it should have: others are asked for them; look at the disk",
    ),
    (
        "uring_instances_lost",
        "the acceptor's log was opened again without decided values that it alone had: they are forgotten here; look at \
         the disk",
    ),
];

/// The counters that ought to stand still: a driver warns in its log when one has grown.
pub fn watched_counters() -> impl Iterator<Item = &'static str> {
    WATCHED.into_iter().map(|(name, _)| name)
}

/// A counter that is watched.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    /// Its value at the last warning.
    before: u64,
    /// The time of that warning.
    said: Option<Time>,
}

/// Looks at the counters now and then.
#[derive(Debug)]
pub(super) struct Watch {
    node: NodeId,
    at: Time,
    counted: [Counted; WATCHED.len()],
    /// The notes that were logged, and the last time of each.
    notes: BTreeMap<String, Time>,
    /// The engine's state at the last line about that.
    state: String,
    state_at: Option<Time>,
    missing: Missing,
}

impl Watch {
    /// `members`: the nodes of the configuration.
    pub const fn new(node: NodeId, members: Vec<NodeId>, now: Time) -> Self {
        Self {
            node,
            at: now.after(EVERY_NANOS),
            counted: [Counted {
                before: 0,
                said: None,
            }; WATCHED.len()],
            notes: BTreeMap::new(),
            state: String::new(),
            state_at: None,
            missing: Missing::new(members),
        }
    }

    /// These are the nodes of the configuration from now on.
    pub fn expect(&mut self, members: Vec<NodeId>) {
        self.missing.members = members;
    }

    #[inline]
    pub fn is_due(&self, now: Time) -> bool {
        now >= self.at
    }

    /// Logs a line for each that has grown, each sentence that is new, and the nodes that are missing.
    pub fn look(&mut self, now: Time, status: &Status) {
        self.at = now.after(EVERY_NANOS);
        let node = self.node.get();
        self.say_notes(now, &status.notes);
        let may_say = self
            .state_at
            .is_none_or(|said| now.since(said) >= STATE_NANOS);
        if status.state != self.state && may_say {
            // The text behind a semicolon says what a node on a ring lacks.
            if status.state.starts_with("operational") && status.state.contains("; ") {
                tracing::warn!(node, "the ring: {}", status.state);
            } else {
                tracing::info!(node, "the ring: {}", status.state);
            }
            status.state.clone_into(&mut self.state);
            self.state_at = Some(now);
        }
        if let Some(what) = self.missing.look(now, &status.state) {
            tracing::warn!(node, "{what}");
        }
        let counters = &status.counters;
        let longest_us = counters.get("rotation_longest_us").copied().unwrap_or(0);
        for ((name, meaning), counted) in WATCHED.into_iter().zip(&mut self.counted) {
            let count = counters.get(name).copied().unwrap_or(0);
            let times = count.saturating_sub(counted.before);
            let is_quiet = counted
                .said
                .is_some_and(|said| now.since(said) < QUIET_NANOS);
            if times == 0 || is_quiet {
                continue;
            }
            *counted = Counted {
                before: count,
                said: Some(now),
            };
            if name == "rotations_slow" {
                tracing::warn!(node, times, longest_us, "{meaning}");
            } else {
                tracing::warn!(node, times, "{meaning} ({name})");
            }
        }
    }

    fn say_notes(&mut self, now: Time, notes: &[String]) {
        let node = self.node.get();
        self.notes
            .retain(|note, said| notes.contains(note) || now.since(*said) < QUIET_NANOS);
        for note in notes {
            if !self.notes.contains_key(note) {
                tracing::warn!(node, "{note}");
            }
            self.notes.insert(note.clone(), now);
        }
    }
}

/// The nodes that are in the configuration, and not on the ring.
#[derive(Debug)]
struct Missing {
    members: Vec<NodeId>,
    /// The missing nodes, and since when.
    now: (Vec<NodeId>, Time),
    said: Vec<NodeId>,
}

impl Missing {
    const fn new(members: Vec<NodeId>) -> Self {
        Self {
            members,
            now: (Vec::new(), Time(0)),
            said: Vec::new(),
        }
    }

    /// The line about nodes that have been missing for a while, and about nodes that are back. No node counts as
    /// missing from a ring that forms or changes.
    fn look(&mut self, now: Time, state: &str) -> Option<String> {
        let on_ring = ring_of(state)?;
        let mut missing = self.members.clone();
        missing.retain(|node| !on_ring.contains(&node.get()));
        if missing != self.now.0 {
            self.now = (missing, now);
        }
        let (missing, since) = &self.now;
        if *missing == self.said || now.since(*since) < MISSING_NANOS {
            return None;
        }
        self.said.clone_from(missing);
        let names: Vec<String> = missing.iter().map(ToString::to_string).collect();
        let names = names.join(", ");
        match missing.len() {
            0 => None,
            1 => Some(format!(
                "node {names} is not on the ring: is it running, and is UDP let through in both directions?"
            )),
            _ => Some(format!(
                "nodes {names} are not on the ring: are they running, and is UDP let through in both directions? With \
                 multicast also: does the group reach the others?"
            )),
        }
    }
}

/// The nodes on a ring that has formed, as its state names them; `None` in any other state.
fn ring_of(state: &str) -> Option<Vec<u16>> {
    // Engines with views have a ring beside, also in no view.
    let rest = state.split_once("operational: ")?.1;
    let list = rest.split([' ', ';', '(']).take_while(|word| {
        let number = word.trim_end_matches(',');
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    let numbers = list.map(|word| word.trim_end_matches(',').parse().ok());
    numbers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn missing() -> Missing {
        Missing::new((1..=3).filter_map(NodeId::new).collect())
    }

    #[test]
    fn who_is_missing_for_a_while_is_named_once() {
        let mut missing = missing();
        let ring =
            "operational: 1, 2 (configuration 2, coordinator 1); its disk has had votes for 2.0 s";
        let said: Vec<String> = (1..20)
            .filter_map(|second| missing.look(Time(second * SECOND), ring))
            .collect();
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("node 3 is not on the ring"), "{said:?}");
        // Back, and away again.
        for second in 20..30 {
            assert_eq!(
                missing.look(Time(second * SECOND), "operational: 1, 2, 3"),
                None
            );
        }
        let again =
            (30..40).filter_map(|second| missing.look(Time(second * SECOND), "operational: 1"));
        let again: Vec<String> = again.collect();
        assert!(
            again.len() == 1 && again[0].starts_with("nodes 2, 3 are not"),
            "{again:?}"
        );
    }

    #[test]
    fn nobody_is_missing_from_a_ring_that_forms() {
        let mut missing = missing();
        for second in 1..20 {
            let state = match second % 4 {
                0 => "operational: 1",
                1 => "gathering: waiting for 2",
                2 => "operational: 1, 2, 3",
                _ => "committing",
            };
            assert_eq!(missing.look(Time(second * SECOND), state), None);
        }
    }
}

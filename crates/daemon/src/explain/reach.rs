//! Nodes whose multicast reaches nobody, and nodes that the multicast of others does not reach, though all else passes.

use std::collections::BTreeSet;

use super::links::FEW;
use super::{Finding, Seen, list, sum};

/// The places to look at where packets do not arrive.
const HEAR: &str = "look at the firewall and the MTU there; with multicast at IGMP in the switches: where the group does not arrive, \
                    transport = \"unicast\" does without";
const SPEAK: &str = "look at the firewall and the MTU there, and whether its multicast leaves it (`interface`); transport = \"unicast\" \
                     does without";

/// Questions for values in an interval that are more than chance.
const SOME: u64 = 3;

/// The trouble, if the nodes that were asked show it: each engine counts the packets that did not come.
pub(super) fn look(seen: &[Seen]) -> Option<Finding> {
    let deaf = nodes(seen, |one| is_deaf(one) && others_send(seen, one.node()));
    let mute = nodes(seen, |one| is_mute(one, seen));
    let all = seen.len() > 1 && are_all(seen);
    if all && (deaf.len() == seen.len() || mute.len() == seen.len()) {
        return Some(Finding::wrong(format!(
            "no node ({}) gets the packets of any other, though tokens or links go round: multicast does not pass: {HEAR}",
            list(seen.iter().map(Seen::node))
        )));
    }
    // Of one that is mute the others lack all, and it lacks nothing.
    if let ([node], true) = (mute.as_slice(), all)
        && !deaf.contains(node)
    {
        return Some(Finding::wrong(format!(
            "what node {node} multicasts reaches nobody, though all else does: {SPEAK}"
        )));
    }
    (!deaf.is_empty()).then(|| {
        Finding::wrong(format!(
            "node {} gets none of the packets that others send, but for what it asks for: {HEAR}",
            list(deaf)
        ))
    })
}

/// Whether all members of the rings of those who were asked were asked.
pub(super) fn are_all(seen: &[Seen]) -> bool {
    let asked: BTreeSet<u16> = seen.iter().map(Seen::node).collect();
    let mut members = seen.iter().flat_map(|one| &one.after.members);
    members.all(|node| asked.contains(node))
}

fn nodes(seen: &[Seen], is_so: impl Fn(&Seen) -> bool) -> Vec<u16> {
    let those = seen.iter().filter(|one| is_so(one));
    those.map(Seen::node).collect()
}

fn others_send(seen: &[Seen], node: u16) -> bool {
    let mut others = seen.iter().filter(|one| one.node() != node);
    others.any(|one| sent(one) >= FEW)
}

/// Packets, or messages of an engine whose values are multicast.
fn sent(one: &Seen) -> u64 {
    let counters = ["packets_sent", "fast_packets_sent", "net_submissions"];
    sum(counters.map(|name| one.grown(name)))
}

/// It asks for all that others send.
fn is_deaf(one: &Seen) -> bool {
    let ring = one.grown("packets_received") == 0 && one.grown("packets_requested") >= FEW;
    let (received, repaired) = (
        one.grown("fast_packets_received"),
        one.grown("fast_packets_repaired"),
    );
    // One question may be about many values, and some packets come again before they are asked for.
    ring || most(repaired.saturating_mul(4), received)
        || one.grown("uring_values_asked_for") >= SOME
}

/// It sends again all that it sends.
fn is_mute(one: &Seen, seen: &[Seen]) -> bool {
    let ring = most(one.grown("retransmissions"), one.grown("packets_sent"));
    let views = most(
        one.grown("fast_packets_resent"),
        one.grown("fast_packets_sent"),
    );
    // One that is deaf asks for all of everybody: of who is mute all others lack something.
    let mut others = seen.iter().filter(|other| other.node() != one.node());
    let views = views && others.all(|other| other.grown("fast_packets_repaired") > 0);
    ring || views || one.grown("uring_values_sent_again") >= FEW
}

/// More than a few, and nine of ten at least.
const fn most(part: u64, whole: u64) -> bool {
    part >= FEW && part.saturating_mul(10) >= whole.saturating_mul(9)
}

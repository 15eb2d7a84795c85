//! Packets that get lost: their senders, and the places.

use std::collections::BTreeSet;

use super::{Finding, Seen, list, reach, sum};

/// Fewer lost packets than this are nobody's business.
pub(super) const FEW: u64 = 5;
/// Nor is less than this part of what came.
const RARE: f64 = 0.001;

/// The packets of one node that another one lost.
struct Loss {
    at: u16,
    of: u16,
    packets: u64,
}

pub(super) fn look(seen: &[Seen]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let losses: Vec<Loss> = seen.iter().flat_map(losses_of).collect();
    let senders: BTreeSet<u16> = losses.iter().map(|loss| loss.of).collect();
    let mut told = BTreeSet::new();
    for of in senders {
        if let Some(finding) = lost_everywhere(of, &losses, seen) {
            told.insert(of);
            findings.push(finding);
        }
    }
    for one in seen {
        let mine = losses
            .iter()
            .filter(|loss| loss.at == one.node() && !told.contains(&loss.of));
        let mine: Vec<&Loss> = mine.collect();
        findings.extend(lost_at(one, &mine));
    }
    match reach::look(seen) {
        Some(finding) => findings.push(finding),
        None if losses.is_empty() && findings.is_empty() => findings.extend(resent(seen)),
        None => {}
    }
    findings.extend(seen.iter().filter_map(yields));
    findings
}

/// FastCast's senders go by a lower capacity after losses at one node, as they were told to do.
fn yields(seen: &Seen) -> Option<Finding> {
    let level = |name: &str| seen.after.counters.get(name).copied().unwrap_or(0) as f64 / 1e3;
    let (link, slowest) = (level("fast_link_kbps"), level("fast_slowest_link_kbps"));
    let packets = seen.grown("fast_packets_lost");
    (seen.grown("fast_link_lowered") > 0).then(|| {
        Finding::note(format!(
            "node {} has lost {packets} packets just now: its link is taken to take in {link:.1} Mbit/s, and all go by \
             {slowest:.1} Mbit/s; others use links, too, or they are slower than link_mbps says (fast_link_lowered)",
            seen.node()
        ))
    })
}

fn losses_of(seen: &Seen) -> Vec<Loss> {
    let received = seen.grown("packets_received");
    let loss = |(&of, after): (&u16, &crate::PeerStatus)| {
        let before = seen.before.peers.get(&of).map_or(0, |peer| peer.repaired);
        let (at, packets) = (seen.node(), after.repaired.saturating_sub(before));
        Loss { at, of, packets }
    };
    let matters =
        |loss: &Loss| loss.packets >= FEW && loss.packets as f64 >= RARE * received as f64;
    seen.after.peers.iter().map(loss).filter(matters).collect()
}

/// Packets of a node get lost on their way to all others that were asked, at least two.
fn lost_everywhere(of: u16, losses: &[Loss], seen: &[Seen]) -> Option<Finding> {
    let others: Vec<u16> = seen
        .iter()
        .map(Seen::node)
        .filter(|node| *node != of)
        .collect();
    let loses = |at: &u16| losses.iter().any(|loss| loss.at == *at && loss.of == of);
    let full = |one: &Seen| one.node() != of && one.grown("net_kernel_drops") > 0;
    if others.len() < 2 || !others.iter().all(loses) || seen.iter().any(full) {
        return None;
    }
    // Nodes that lose packets of any sender have a trouble of their own.
    let only = |loss: &Loss| loss.of == of || loss.at == of;
    if !losses.iter().all(only) {
        return None;
    }
    Some(Finding::wrong(format!(
        "what node {of} sends gets lost on its way to all others ({}): look at the link, the port and the \
         send queue of node {of}",
        list(others)
    )))
}

/// The losses of a node.
fn lost_at(seen: &Seen, losses: &[&Loss]) -> Option<Finding> {
    let node = seen.node();
    let packets = sum(losses.iter().map(|loss| loss.packets));
    let drops = seen.grown("net_kernel_drops");
    if packets == 0 {
        return (drops > 0).then(|| full_buffer(node, drops));
    }
    let received = seen.grown("packets_received").max(packets);
    let percent = 100.0 * packets as f64 / received as f64;
    let senders = list(losses.iter().map(|loss| loss.of));
    let what = format!(
        "node {node} asks for many retransmissions: {packets} packets of what node {senders} sent \
         ({percent:.1} %) came only when asked for"
    );
    if drops > 0 {
        return Some(Finding::wrong(format!(
            "{what}; {}",
            full_buffer(node, drops).text
        )));
    }
    let injected = seen.grown("net_faults");
    let why = if injected > 0 {
        format!("its configuration injects faults ({injected})")
    } else if losses.len() == 1 {
        format!(
            "the link from node {senders} to node {node} loses datagrams; no receive buffer was full"
        )
    } else {
        format!("the link or the port of node {node} loses datagrams; no receive buffer was full")
    };
    Some(Finding::wrong(format!("{what}: lossy link: {why}")))
}

fn full_buffer(node: u16, drops: u64) -> Finding {
    Finding::wrong(format!(
        "the kernel of node {node} has dropped {drops} datagrams because a receive buffer was full: the node \
         gets too little of a processor, or receive_buffer_bytes (net.core.rmem_max) is too small"
    ))
}

/// Packets were sent again, and nobody who was asked has got any so.
fn resent(seen: &[Seen]) -> Vec<Finding> {
    let who = if reach::are_all(seen) {
        "whoever asked for them has not got them so either: look at the MTU, at firewalls, and with multicast at IGMP"
    } else {
        "a node that was not asked loses packets"
    };
    let again = seen.iter().filter(|one| sends_again(one)).map(|one| {
        let (node, resent) = (one.node(), one.grown("retransmissions"));
        Finding::wrong(format!(
            "node {node} has sent {resent} packets again: {who}"
        ))
    });
    again.collect()
}

fn sends_again(one: &Seen) -> bool {
    let resent = one.grown("retransmissions");
    let all = sum(["packets_sent", "packets_received"].map(|name| one.grown(name)));
    resent >= FEW && resent as f64 >= RARE * all as f64
}

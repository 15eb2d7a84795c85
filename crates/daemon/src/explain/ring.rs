//! The nodes on each ring, and events that ought not to happen there.

use std::collections::BTreeSet;

use crate::status::DaemonStatus;

use super::{Finding, Seen, bytes, list, time};

/// Counters that say something by themselves when they grow, and what.
const TELLING: [(&str, &str); 22] = [
    (
        "duplicate_nodes",
        "another process goes by its number: stop one of the two",
    ),
    (
        "members_deaf",
        "a member that hears tokens but not packets was excluded: look at its MTU and its firewall; with multicast also at \
         IGMP in the switches: where the group does not arrive, transport = \"unicast\" does without",
    ),
    (
        "self_lossy",
        "it loses much of what the others get, and has left the ring for a while: look at its cable, its port and its \
         processors",
    ),
    (
        "self_mute",
        "nobody receives what it sends, and it has left the ring for a while: look at its firewall, its MTU, and whether its \
         multicast leaves it",
    ),
    (
        "self_hung",
        "its application took nothing, and all waited for it until it left the ring: look at what its program does with deliveries",
    ),
    (
        "members_unsteady",
        "a node fell silent again and again, and the ring broke each time: look at what makes it stand still, or at its cable",
    ),
    (
        "back_offs",
        "some node is heard, and no ring with it holds: look for a link that works in one direction only",
    ),
    (
        "persist_failures",
        "its disk does not take ring numbers: it joins no ring",
    ),
    (
        "coordination_failures",
        "etcd does not answer, or has forgotten the cluster, and no ring changes until it is back: see the log",
    ),
    (
        "vote_groups_slow",
        "its disk has taken more than half a second for a group of votes: look at the disk, and at who else uses it",
    ),
    (
        "net_too_large",
        "a path takes smaller datagrams than it sends: set a smaller datagram_bytes everywhere",
    ),
    (
        "net_seal_unknown_key",
        "datagrams come under a key that it does not have: compare the key files",
    ),
    (
        "net_seal_forged",
        "datagrams are not authentic: a node has another key of the same number, or another `cluster`, or they are forged: \
         compare the key files",
    ),
    (
        "net_seal_old_life",
        "datagrams are from an earlier life of their sender: two processes use one number, the clock of the sender was set \
         back before it started (a restart of the sender mends that), or they are replayed",
    ),
    (
        "net_link_forged",
        "connections for links are not authentic: a node has another key of the same number, or they are forged: compare the \
         key files",
    ),
    (
        "net_link_unknown_key",
        "connections for links come under a key that it does not have, or without one: compare the key files",
    ),
    (
        "net_link_refused",
        "connections for links are refused: a node has another `cluster` or another engine, two processes use one number, or \
         other programs connect to that port: compare the configurations",
    ),
    (
        "net_foreign_source",
        "datagrams come from an address that no node of its configuration has: compare the lists of nodes",
    ),
    (
        "datagrams_foreign_cluster",
        "datagrams of another `cluster` come, or of nodes with another `transport` or `primary`: compare the configurations, \
         and give each cluster its own ports and group",
    ),
    (
        "datagrams_other_version",
        "datagrams of another version of the format come: a node runs an older or a newer program, and is on no ring with \
         those of this version: compare `rota --version` on all nodes, and upgrade the one that is behind",
    ),
    (
        "net_link_other_version",
        "connections for links come of another version: a node runs an older or a newer program: compare `rota --version` on \
         all nodes, and upgrade the one that is behind",
    ),
    (
        "net_send_errors",
        "its kernel refuses what it sends: look at the firewall of that host, and whether its interface and its address are \
         still there",
    ),
];

/// Votes that a disk has had for so long are worth a word.
const SLOW_DISK_MS: u64 = 500;

pub(super) fn look(seen: &[Seen]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for one in seen {
        let (node, status) = (one.node(), &one.after);
        findings.extend(no_ring(node, status));
        let notes = status.notes.iter();
        findings.extend(notes.map(|note| Finding::wrong(format!("seen by node {node}: {note}"))));
        let changes = one.grown("configurations");
        if changes > 0 {
            let losses = one.grown("token_losses");
            let why = if losses > 0 {
                format!(
                    ", {losses} of them because the token was lost: a pause, a cable, or a slow host"
                )
            } else {
                String::new()
            };
            let text = format!("the ring of node {node} has changed {changes} times just now{why}");
            findings.push(Finding::wrong(text));
        }
        findings.extend(disk(one));
        findings.extend(unkept(one));
        for (name, meaning) in TELLING {
            if one.grown(name) > 0 {
                findings.push(Finding::wrong(format!("node {node}: {meaning} ({name})")));
            }
        }
    }
    findings.extend(absent(seen));
    findings.extend(no_majority(seen));
    findings
}

/// The nodes that a daemon's engine is with, as it says, ordering messages or not.
pub fn company(status: &DaemonStatus) -> Option<BTreeSet<u16>> {
    let list = status.ring.split_once("operational: ")?.1;
    let words = list.split([' ', ';', '(']);
    let nodes = words.map_while(|word| word.trim_end_matches(',').parse().ok());
    Some(nodes.collect())
}

/// The nodes in the configuration that are not with a daemon; none while that is not settled.
pub fn missing(status: &DaemonStatus) -> Vec<u16> {
    let Some(company) = company(status) else {
        return Vec::new();
    };
    let nodes = status.nodes.iter().copied();
    nodes.filter(|node| !company.contains(node)).collect()
}

/// A node that orders nothing, and what it says of that.
fn no_ring(node: u16, status: &DaemonStatus) -> Option<Finding> {
    if status.is_operational() {
        return None;
    }
    let ring = &status.ring;
    let missing = missing(status);
    let lacks = match missing.is_empty() {
        true => String::new(),
        false => format!("; not with it: node {}", list(missing)),
    };
    let text = match ring.strip_prefix("no majority: ") {
        Some(why) => format!(
            "node {node} is in no majority: {why}. Start the nodes that do not run, and look at the links to them; where \
             they are lost for good, see `rota storage recover`"
        ),
        None => format!("node {node} is on no ring: {ring}{lacks}"),
    };
    Some(Finding::wrong(text))
}

/// The words of a node that is not in the ring of the newest configuration it knows, with the number behind them.
const OUTSIDE: &str = "outside the ring of configuration ";

/// All nodes that could make another configuration are outside, and stay there.
fn no_majority(seen: &[Seen]) -> Option<Finding> {
    let number = |ring: &str| {
        let number = ring.strip_prefix(OUTSIDE)?;
        let number: String = number.chars().take_while(char::is_ascii_digit).collect();
        (!number.is_empty()).then_some(number)
    };
    let stays = |one: &Seen| {
        let (before, after) = (number(&one.before.ring)?, number(&one.after.ring)?);
        (before == after).then_some(after)
    };
    let first = stays(seen.first()?)?;
    let nodes = seen.iter().flat_map(|one| one.after.nodes.iter().copied());
    let nodes: BTreeSet<u16> = nodes.collect();
    let all = seen.iter().all(|one| stays(one).as_ref() == Some(&first));
    (all && 2 * seen.len() > nodes.len()).then(|| {
        Finding::wrong(format!(
            "nothing is ordered: those that were asked are all outside the ring of configuration {first}, so a majority of its \
             acceptors is not there. Start those that do not run. Where they all run, a majority has lost what it had promised \
             (a disk, or the power with storage = \"async\"): go on from what is left with `rota storage recover`, or found the \
             cluster anew"
        ))
    })
}

/// A disk that takes no votes: it may never answer, and then no counter grows.
fn disk(one: &Seen) -> Option<Finding> {
    let now = |name| one.after.counters.get(name).copied().unwrap_or(0);
    let node = one.node();
    let text = if now("votes_failed") > 0 {
        format!(
            "node {node}: the log of its votes has failed: see its log, and mend the disk; it is opened again by itself \
             (votes_failed)"
        )
    } else if now("votes_waiting_ms") > SLOW_DISK_MS {
        let (had, waiting) = (now("votes_waiting_ms"), now("votes_waiting_bytes"));
        format!(
            "node {node}: its disk has had votes for {}, and has not answered; {} wait: look at the disk, or stop \
             the node: the others go on if enough of them vote (votes_waiting_ms)",
            time(had as f64 * 1e3),
            bytes(usize::try_from(waiting).unwrap_or(usize::MAX))
        )
    } else if now("votes_syncing_ms") > SLOW_DISK_MS {
        format!(
            "node {node}: its disk has been making votes durable for {}: until it has, a loss of power forgets what \
             came since (votes_syncing_ms)",
            time(now("votes_syncing_ms") as f64 * 1e3),
        )
    } else {
        return None;
    };
    Some(Finding::wrong(text))
}

/// A list of nodes that is not on disk.
fn unkept(one: &Seen) -> Option<Finding> {
    let node = one.node();
    let unkept = one.after.counters.get("members_unkept").copied();
    (unkept.unwrap_or(0) > 0).then(|| {
        Finding::wrong(format!(
            "node {node}: the list of nodes could not be stored, and it would start with an older one: see its log, and look at \
             the disk of its `state_dir`; it is stored again each second until that is done (members_unkept)"
        ))
    })
}

/// The reason why nodes that all run may stay alone.
const ALONE: &str = "Where each stays alone and `transport` is multicast, the group does not reach the others: look at IGMP in the \
                     switches, at `interface` and at firewalls; transport = \"unicast\" does without";

/// Nodes that are missing, and rings that are two.
fn absent(seen: &[Seen]) -> Vec<Finding> {
    let settled = seen.iter().filter(|one| one.after.is_operational());
    let mut rings: Vec<BTreeSet<u16>> = Vec::new();
    for one in settled {
        let ring: BTreeSet<u16> = one.after.members.iter().copied().collect();
        if !ring.is_empty() && !rings.contains(&ring) {
            rings.push(ring);
        }
    }
    let are_alone = seen.len() > 1
        && seen
            .iter()
            .all(|one| company(&one.after).is_some_and(|company| company.len() == 1));
    if rings.len() > 1 {
        let rings: Vec<String> = rings
            .into_iter()
            .map(|ring| format!("({})", list(ring)))
            .collect();
        let alone = if are_alone {
            format!(". {ALONE}")
        } else {
            String::new()
        };
        let text = format!(
            "the network is split, or they are just meeting: there are rings of {}{alone}",
            rings.join(" and ")
        );
        return vec![Finding::wrong(text)];
    }
    let Some(ring) = rings.pop() else {
        let alone = are_alone.then(|| Finding::wrong(format!("each node is alone. {ALONE}")));
        return alone.into_iter().collect();
    };
    let nodes: BTreeSet<u16> = seen
        .iter()
        .flat_map(|one| one.after.nodes.iter().copied())
        .collect();
    let missing = nodes.difference(&ring);
    let one = |node: &u16| {
        Finding::wrong(format!(
            "node {node} is not on the ring, which goes on without it: is it running, and is UDP let through \
             in both directions?"
        ))
    };
    missing.map(one).collect()
}

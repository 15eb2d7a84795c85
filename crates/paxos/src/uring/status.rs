//! The status of a process, in sentences for people.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::accounts::Partition;
use super::engine::URing;
use super::peers::Peers;
use super::voter::Voter;
use crate::{AcceptorId, Config};
use rota_core::contract::{NodeId, Process};

/// One sentence.
pub fn state(of: &URing) -> String {
    let Some(config) = of.membership.config() else {
        let refounded = of.membership.is_refounded(&of.cx);
        return match (of.membership.foundation.resumed(), refounded) {
            (0, _) => "waiting for all acceptors: the cluster is not founded",
            (_, false) => "waiting for the others: there is a state, and no configuration",
            (_, true) => "the others have founded the cluster anew: the state is of the one before",
        }
        .to_string();
    };
    let number = config.number;
    if of.membership.foundation.has_foreign() && of.stream.is_none() {
        return format!(
            "outside: the others have founded the cluster anew; configuration {number} is another one's"
        );
    }
    if of.cx.observes() {
        let ring: Vec<NodeId> = config.ring.iter().map(|process| process.node).collect();
        let acceptors = of.membership.informants(&of.cx, &of.links);
        let alone = match acceptors.is_empty() {
            true => "; no acceptor is there",
            false => "",
        };
        return format!("observes: {} (configuration {number}){alone}", names(&ring));
    }
    if of.stream.is_none() {
        let lost = lost_stores(config, &of.links, &of.voter).unwrap_or_default();
        return format!("outside the ring of configuration {number}{lost}");
    }
    if !of.is_operational() {
        let waits = waits_for(of).unwrap_or_default();
        return format!("configuration {number} begins{waits}");
    }
    if let Some(missing) = missing_majority(of, config) {
        let (missing, all) = (names(&missing), config.acceptors.len());
        return format!(
            "no majority: nothing is ordered, as of the {all} acceptors these are not there: {missing} \
             (configuration {number})"
        );
    }
    let ring: Vec<NodeId> = config.ring.iter().map(|process| process.node).collect();
    let (ring, coordinator) = (names(&ring), config.coordinator.node);
    let log = of.voter.trouble();
    format!("operational: {ring} (configuration {number}, coordinator {coordinator}){log}")
}

/// The partitions that need so much that the ring takes no messages soon, or takes none now.
pub fn needed(of: &URing) -> Option<String> {
    let (bytes, most) = (
        of.learning.needed_bytes(),
        of.cx.settings.acceptor.hold_bytes,
    );
    if bytes < most / 2 {
        return None;
    }
    let accounts = of.accounts();
    let is_last = |partition: &Partition| {
        let account = accounts.account(*partition);
        account.is_some_and(|(needed, _)| Some(needed) == accounts.needed())
    };
    let whose = accounts.partitions().filter(is_last).map(|partition| {
        let replicas = accounts.account(partition).map(|(_, replicas)| replicas);
        let nodes: Vec<NodeId> = replicas.into_iter().flatten().copied().collect();
        format!("partition {partition} (replicas: {})", names(&nodes))
    });
    let whose: Vec<String> = whose.collect();
    let whose = whose.join(", ");
    let then = match bytes < most {
        true => "when that is full the ring takes no messages",
        false => "it is full, and the ring takes no messages",
    };
    let (bytes, most) = (bytes >> 20, most >> 20);
    Some(format!(
        "{bytes} of {most} MiB are kept for {whose}, of which no majority has a checkpoint behind it: {then}"
    ))
}

fn names(nodes: &[NodeId]) -> String {
    let names: Vec<String> = nodes.iter().map(ToString::to_string).collect();
    names.join(", ")
}

/// The words that no majority of the acceptors has its store, if those that are there say so: nothing goes on by itself
/// then.
fn lost_stores(config: &Config, links: &Peers, voter: &Voter) -> Option<String> {
    let now = |who: &AcceptorId| {
        if who.node == voter.id().node {
            return voter.votes().then(|| voter.id());
        }
        links.at(who.node)?.here?.acceptor
    };
    let is_other = |who: &&AcceptorId| now(who).is_some_and(|now| now != **who);
    let lost = config.acceptors.iter().filter(is_other);
    let lost: Vec<NodeId> = lost.map(|who| who.node).collect();
    let all = config.acceptors.len();
    let is_majority_left = 2 * (all - lost.len()) > all;
    (!is_majority_left).then(|| {
        let (count, nodes) = (lost.len(), names(&lost));
        format!(": {count} of its {all} acceptors have lost their stores ({nodes})")
    })
}

/// Acceptors of the configuration to which there is no link, if too few are left for a majority. For the status alone:
/// links that are down in one place only do not keep the ring from ordering along the others.
fn missing_majority(of: &URing, config: &Config) -> Option<Vec<NodeId>> {
    let there = |process: Process| of.membership.is_there(&of.cx, &of.links, process);
    let is_there = |who: &AcceptorId| {
        let process = config.ring.iter().find(|process| process.node == who.node);
        process.is_some_and(|process| there(*process))
    };
    let acceptors = config.acceptors.iter();
    let missing: Vec<NodeId> = acceptors
        .filter(|who| !is_there(who))
        .map(|who| who.node)
        .collect();
    let is_majority_there = 2 * missing.len() < config.acceptors.len();
    (!is_majority_there).then_some(missing)
}

/// The instances or promises that the round waits for, as far as this process knows.
fn waits_for(of: &URing) -> Option<String> {
    if let Some(lack) = of.voter.lack() {
        let missing = lack.upto.saturating_sub(of.learning.next());
        return Some(format!(": {missing} instances to learn"));
    }
    let nodes = of.unpromised();
    (!nodes.is_empty()).then(|| format!(": waits for promises of {}", names(&nodes)))
}

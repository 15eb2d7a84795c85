//! The harm that an order about what a ring keeps would do.

use std::collections::BTreeSet;

use rota_core::contract::NodeId;
use rota_multiring::Rank;
use rota_multiring::accounts::{Command, Partition};
use rota_node::rings::RingsStatus;

use super::presence::{Presence, Presences};
use super::{Order, table};

/// The reason why nobody knows of a replica that was one when the account was opened.
const UNLISTED: &str = "the file of this process has no such replica";

/// The harm that an order would do, or why it would do nothing. Of a ring that this process is not on, nothing is known
/// here.
pub(super) fn harm(status: &RingsStatus, order: &Order, presences: &Presences) -> Option<String> {
    let table = table(status, order.ring)?;
    let (partition, stay) = match &order.command {
        Command::Abandon(partition) => (*partition, None),
        Command::Replace(partition, nodes) => (*partition, Some(nodes)),
        _ => return None,
    };
    let Some((_, kept_for)) = table.account(partition) else {
        let Rank(ring) = order.ring;
        return Some(format!(
            "ring {ring} keeps nothing for partition {partition}"
        ));
    };
    let mut nodes = stay.into_iter().flatten();
    if let Some(other) = nodes.find(|node| !presences.contains_key(*node)) {
        return Some(format!(
            "node {other} has no replica of partition {partition}, by the file of this process: the ring would keep everything until it says that it has a state"
        ));
    }
    let all: BTreeSet<NodeId> = presences.keys().chain(kept_for).copied().collect();
    let lost = all
        .into_iter()
        .filter(|node| stay.is_none_or(|stay| !stay.contains(node)));
    let heard = status.heard.iter().find(|(of, _)| *of == order.ring);
    let is_heard = |node: NodeId| heard.is_some_and(|(_, nodes)| nodes.contains(&node));
    let mut harmed = lost.filter_map(|node| match presences.get(&node) {
        _ if is_heard(node) => Some(is_there(node, partition)),
        Some(Presence::Here) => Some(is_there(node, partition)),
        Some(Presence::Away) => None,
        _ if order.absent.contains(&node) => None,
        Some(Presence::Unknown(why)) => Some(is_unknown(node, partition, why)),
        None => Some(is_unknown(node, partition, UNLISTED)),
    });
    harmed.next()
}

fn is_there(node: NodeId, partition: Partition) -> String {
    format!(
        "node {node} has a replica of partition {partition}, and is there: the ring would forget what it needs. Stop it first, if it is not to come back"
    )
}

fn is_unknown(node: NodeId, partition: Partition, why: &str) -> String {
    format!(
        "nobody knows whether node {node} is there, which has a replica of partition {partition} ({why}): if it is, the ring would forget what it needs. Stop its process; if its host is gone for good, say so with ABSENT {node} (--absent {node})"
    )
}

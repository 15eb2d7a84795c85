//! Clients that do not read, or ask for more than the ring takes.

use std::collections::BTreeMap;

use crate::status::ClientStatus;

use super::{Finding, Seen, bytes, time};

/// The time without a read after which a client is stuck, in milliseconds.
const STUCK_MS: u64 = 1000;
/// Bytes that may wait for a client that reads now and then.
const LITTLE_BYTES: usize = 4096;
/// Bytes that wait for a client that reads too slowly.
const LAG_BYTES: usize = 1 << 20;
/// Clients that are named; of more than that, how many more.
const NAMED: usize = 10;

pub(super) fn look(seen: &[Seen]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for one in seen {
        let node = one.node();
        let mut clients: Vec<&ClientStatus> = one.after.clients.iter().collect();
        clients.sort_by_key(|client| std::cmp::Reverse(client.waiting_bytes));
        let said: Vec<Finding> = clients
            .into_iter()
            .filter_map(|client| lagging(node, client))
            .collect();
        let more = said.len().saturating_sub(NAMED);
        findings.extend(said.into_iter().take(NAMED));
        if more > 0 {
            findings.push(Finding::wrong(format!(
                "and {more} more clients of node {node} lag"
            )));
        }
        findings.extend(dropped(one));
        findings.extend(excluded(one));
        findings.extend(not_ready(one));
        findings.extend(held_back(one));
        findings.extend(throttled(one));
        findings.extend(held(one));
    }
    findings
}

fn lagging(node: u16, client: &ClientStatus) -> Option<Finding> {
    let (name, waits) = (&client.name, bytes(client.waiting_bytes));
    if !client.throttles.is_empty() {
        let (to, long) = (
            some(&client.throttles),
            time(client.throttling_ms as f64 * 1e3),
        );
        return Some(Finding::wrong(format!(
            "client {name} of node {node} reads too slowly, and others are slowed down for it: who sends to {to} \
             has waited for {long}, until it has read most of the {waits} that wait for it or throttle_ms have passed"
        )));
    }
    // Nothing waits for one that was told no messages, but word that its own were taken: it reads that when it has to.
    let only_sends = client.messages == 0;
    if client.waiting_bytes > LITTLE_BYTES && client.unread_ms >= STUCK_MS && !only_sends {
        let seconds = client.unread_ms as f64 / 1e3;
        return Some(Finding::wrong(format!(
            "client {name} of node {node} is stuck: it has not read for {seconds:.0} s, and {waits} wait for \
             it. The ring does not wait; the client is disconnected when client_queue_bytes is full"
        )));
    }
    (client.waiting_bytes >= LAG_BYTES).then(|| {
        Finding::wrong(format!(
            "client {name} of node {node} lags: {waits} wait for it, as it reads more slowly than it is sent"
        ))
    })
}

fn dropped(seen: &Seen) -> Option<Finding> {
    let slow = seen.grown("clients_slow");
    (slow > 0).then(|| {
        Finding::wrong(format!(
            "node {} has disconnected {slow} clients that did not read: their names are in its log",
            seen.node()
        ))
    })
}

fn excluded(seen: &Seen) -> Option<Finding> {
    seen.after.excluded.then(|| {
        Finding::wrong(format!(
            "node {} is excluded: it is in no primary view, its clients are told nothing, and their requests wait",
            seen.node()
        ))
    })
}

fn not_ready(seen: &Seen) -> Option<Finding> {
    let waits = !seen.before.groups_ready && !seen.after.groups_ready;
    waits.then(|| {
        Finding::wrong(format!(
            "node {} waits for other daemons to say which groups they know: requests of its clients wait",
            seen.node()
        ))
    })
}

/// Clients that are held back are no fault: they ask for more than the ring takes.
fn held_back(seen: &Seen) -> Option<Finding> {
    let before = |name: &str| {
        seen.before
            .clients
            .iter()
            .any(|client| client.name == name && client.held_back)
    };
    let held = seen
        .after
        .clients
        .iter()
        .filter(|client| client.held_back && before(&client.name));
    let count = held.count();
    (count > 0).then(|| {
        Finding::note(format!(
            "{count} clients of node {} have more to send than the ring takes, and are held back",
            seen.node()
        ))
    })
}

/// Clients for which others had to wait, but for those that are named anyway.
fn throttled(seen: &Seen) -> Option<Finding> {
    let (times, micros) = (
        seen.grown("clients_throttling"),
        seen.grown("clients_throttling_us"),
    );
    let now = seen.after.clients.iter();
    let mut now = now.filter(|client| !client.throttles.is_empty());
    (times > 0 && now.next().is_none()).then(|| {
        Finding::wrong(format!(
            "clients of node {} read too slowly: {times} times others had to wait for them, for {} in all. Their \
             names are in its log",
            seen.node(),
            time(micros as f64)
        ))
    })
}

/// Clients that wait for others are no fault of their own.
fn held(seen: &Seen) -> Vec<Finding> {
    let mut by_slow: BTreeMap<&str, usize> = BTreeMap::new();
    let slow = seen
        .after
        .clients
        .iter()
        .filter_map(|one| one.held_for.as_deref());
    slow.for_each(|slow| *by_slow.entry(slow).or_default() += 1);
    let node = seen.node();
    let note = |(slow, count)| {
        Finding::note(format!(
            "{count} clients of node {node} have a message that waits for {slow}, which reads too slowly"
        ))
    };
    by_slow.into_iter().map(note).collect()
}

/// Names in a row, but not all of many.
fn some(names: &[String]) -> String {
    let first: Vec<&str> = names.iter().take(3).map(String::as_str).collect();
    let more = names.len() - first.len();
    let first = first.join(", ");
    if more == 0 {
        return first;
    }
    format!("{first} and {more} more")
}

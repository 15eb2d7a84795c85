//! Clients that do not read, or ask for more than the ring takes.

use rota_daemon::ClientStatus;

use super::{Finding, Seen, bytes};

/// Who has not read for so long, in milliseconds, is stuck.
const STUCK_MS: u64 = 1000;
/// For whom so much waits, reads too slowly.
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
        findings.extend(not_ready(one));
        findings.extend(held_back(one));
    }
    findings
}

fn lagging(node: u16, client: &ClientStatus) -> Option<Finding> {
    let (name, waits) = (&client.name, bytes(client.waiting_bytes));
    if client.waiting_bytes > 0 && client.unread_ms >= STUCK_MS {
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

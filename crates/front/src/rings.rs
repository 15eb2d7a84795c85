//! The rings of a service, as its operator sees them: `RINGS`, and metrics. Also the two orders that only an operator
//! gives, for replicas that do not come back: what a ring keeps for them is let go. An order that would do harm is
//! refused with the reason.

mod harm;
mod presence;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use bytes::Bytes;
use rota_core::contract::{Histogram, NodeId};
use rota_multiring::Rank;
use rota_multiring::accounts::{Command, Partition, Table};
use rota_node::rings::{FoundedRing, MergeWait, RingsStatus};
use rota_resp::Reply;

use crate::command::{Refused, error, is, number};
use crate::metrics::Text;

pub use presence::{Lookout, Presence, Presences};

const USAGE: &str = "ERR try RINGS, RINGS ABANDON ring partition [ABSENT node,node,...], or RINGS REPLACE ring partition node,node,... [ABSENT node,node,...]";

/// The first word of the reply to an order that would do harm, or nothing.
pub const REFUSED: &str = "REFUSED";

/// What an operator wants of the rings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Their state.
    Show,
    /// A command ordered in one of them.
    Order(Order),
}

/// An order of an operator: what a ring keeps is let go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Order {
    /// The ring.
    pub ring: Rank,
    /// The command that is ordered there.
    pub command: Command,
    /// The nodes whose hosts are gone for good, by what the operator says: nobody else can know.
    pub absent: BTreeSet<NodeId>,
}

impl Order {
    /// The partition that an order is about.
    const fn partition(&self) -> Option<Partition> {
        match &self.command {
            Command::Abandon(partition) | Command::Replace(partition, _) => Some(*partition),
            _ => None,
        }
    }
}

fn small<T: TryFrom<i64>>(text: &[u8]) -> Refused<T> {
    let number = number(text)?;
    T::try_from(number).map_err(|_| error("ERR value is not an integer or out of range"))
}

fn nodes(text: &[u8]) -> Refused<BTreeSet<NodeId>> {
    let node = |part: &[u8]| {
        let node = NodeId::new(small(part)?);
        node.ok_or_else(|| error("ERR a node is a number from 1 on"))
    };
    text.split(|byte| *byte == b',').map(node).collect()
}

/// Reads the arguments of `RINGS`.
///
/// # Errors
/// The reply to arguments that cannot be read.
pub fn ask(arguments: &[Bytes]) -> Refused<Ask> {
    let order = |ring: &[u8], command, absent: &[Bytes]| {
        let absent = match absent {
            [] => BTreeSet::new(),
            [word, absent] if is(word, "ABSENT") => nodes(absent)?,
            _ => return Err(error(USAGE)),
        };
        let ring = Rank(small(ring)?);
        Ok(Ask::Order(Order {
            ring,
            command,
            absent,
        }))
    };
    match arguments {
        [] => Ok(Ask::Show),
        [word, ring, partition, rest @ ..] if is(word, "ABANDON") => {
            order(ring, Command::Abandon(small(partition)?), rest)
        }
        [word, ring, partition, replicas, rest @ ..] if is(word, "REPLACE") => {
            let command = Command::Replace(small(partition)?, nodes(replicas)?);
            order(ring, command, rest)
        }
        _ => Err(error(USAGE)),
    }
}

/// The reply to what an operator wants. `show`: the state of the rings; `replicas`: those of a partition. Both may take
/// seconds, in a thread of their own. `give`: has a command ordered.
pub async fn answer<E: fmt::Display>(
    ask: Ask,
    (show, replicas): (
        impl FnOnce() -> Option<RingsStatus> + Send + 'static,
        impl FnOnce(Partition) -> Presences + Send + 'static,
    ),
    give: impl FnOnce(Rank, Command) -> Result<(), E>,
) -> Reply {
    let of = match &ask {
        Ask::Show => None,
        Ask::Order(order) => order.partition(),
    };
    // The rings are asked last: they may hear of who did not answer.
    let look = move || {
        let replicas = of.map(replicas).unwrap_or_default();
        Some((show()?, replicas))
    };
    let Ok(Some((status, replicas))) = tokio::task::spawn_blocking(look).await else {
        return error("TRYAGAIN the rings do not say how they are just now");
    };
    let Ask::Order(order) = ask else {
        return shown(&status);
    };
    if let Some(why) = harm::harm(&status, &order, &replicas) {
        return Reply::Error(format!("{REFUSED} {why}"));
    }
    tracing::warn!(?order, "an operator lets go what a ring keeps");
    match give(order.ring, order.command) {
        Ok(()) => Reply::OK,
        Err(error) => Reply::Error(format!("ERR {error}")),
    }
}

/// The reply to `RINGS`, of a service whose partitions always have the rings of their file: lines as `INFO` has them,
/// with a section for the merge, one for each ring, and one for each that was founded while processes ran.
pub fn shown(status: &RingsStatus) -> Reply {
    let mut text = String::from("# Merge\r\n");
    match status.point {
        Some(point) => line(&mut text, "point_round", point.round),
        // In the middle of an instance.
        None => line(&mut text, "point_round", ""),
    }
    for (rank, ring) in &status.rings {
        let _ = write!(text, "\r\n# Ring {}\r\n", rank.0);
        line(&mut text, "state", &ring.state);
        let needed = status.waits_for.iter().find(|need| need.rank == *rank);
        line(
            &mut text,
            "needed_up_to_round",
            needed.map_or_else(String::new, |need| need.round.to_string()),
        );
        if let Some(wait) = wait(status, *rank) {
            line(&mut text, "merge_waiting_bytes", wait.waiting_bytes);
            line(&mut text, "merge_wait_us", mean_us(&wait.times));
        }
        for (name, count) in &ring.counters {
            line(&mut text, name, count);
        }
        for note in &ring.notes {
            line(&mut text, "note", note);
        }
        if let Some(table) = table(status, *rank) {
            accounts(&mut text, table);
        }
    }
    for (rank, ring) in &status.founded {
        let _ = write!(text, "\r\n# Founded {}\r\n", rank.0);
        founded(&mut text, ring);
    }
    Reply::Text(text)
}

/// A ring that was founded while processes ran.
fn founded(text: &mut String, ring: &FoundedRing) {
    let (state, of) = match ring {
        FoundedRing::Open(of) => ("open".to_owned(), Some(of)),
        FoundedRing::Unopened(of, why) => (format!("not open: {why}"), Some(of)),
        FoundedRing::Elsewhere(of) => ("of other nodes".to_owned(), Some(of)),
        FoundedRing::Refused(why) => (format!("refused: {why}"), None),
    };
    line(text, "state", state);
    if let Some(of) = of {
        line(text, "origin", of.origin);
    }
}

fn line(text: &mut String, name: &str, value: impl fmt::Display) {
    let _ = write!(text, "{name}:{value}\r\n");
}

fn wait(status: &RingsStatus, rank: Rank) -> Option<&MergeWait> {
    let mut waits = status.merge.iter();
    waits.find(|(of, _)| *of == rank).map(|(_, wait)| wait)
}

/// The mean of times, in microseconds; 0 if there is none.
fn mean_us(times: &Histogram) -> u64 {
    let nanos = times.sum_nanos().checked_div(times.count());
    nanos.unwrap_or(0) / 1_000
}

fn table(status: &RingsStatus, rank: Rank) -> Option<&Table> {
    let mut tables = status.accounts.iter();
    tables.find(|(of, _)| *of == rank).map(|(_, table)| table)
}

fn accounts(text: &mut String, table: &Table) {
    for partition in table.partitions() {
        if let Some((needs, replicas)) = table.account(partition) {
            let nodes: Vec<String> = replicas.iter().map(|node| node.get().to_string()).collect();
            let _ = write!(
                text,
                "account_{partition}:needs={needs},replicas={}\r\n",
                nodes.join("/")
            );
        }
    }
    for (node, next, until) in table.pins() {
        let _ = write!(text, "pin_{node}:needs={next},until_ns={until}\r\n");
    }
}

/// Writes the metrics of rings and of their merge.
pub fn tell(text: &mut Text, status: &RingsStatus) {
    let of = |rank: Rank| format!("ring=\"{}\"", rank.0);
    text.head(
        ("ring_operational", "gauge"),
        "It orders messages: 0 while it forms, or has no majority.",
    );
    for (rank, ring) in &status.rings {
        let is_well = u8::from(ring.state.starts_with("operational"));
        text.value("ring_operational", &of(*rank), is_well);
    }
    text.head(
        ("ring_needed_rounds", "gauge"),
        "The merge waits for this ring, so many rounds beyond its point: 0 where it does not.",
    );
    let round = status.point.map(|point| point.round);
    for (rank, _) in &status.rings {
        let need = status.waits_for.iter().find(|need| need.rank == *rank);
        let rounds = need.map_or(0, |need| {
            need.round.saturating_sub(round.unwrap_or(need.round)) + 1
        });
        text.value("ring_needed_rounds", &of(*rank), rounds);
    }
    merge(text, status);
    text.head(
        ("ring_account_needs", "gauge"),
        "The first instance of the ring that a partition still needs.",
    );
    for (rank, table) in &status.accounts {
        for partition in table.partitions() {
            if let Some((needs, _)) = table.account(partition) {
                let of = format!("{},partition=\"{partition}\"", of(*rank));
                text.value("ring_account_needs", &of, needs);
            }
        }
    }
    text.head(
        ("ring_pins", "gauge"),
        "Replicas that recover, for which the ring keeps what they need.",
    );
    for (rank, table) in &status.accounts {
        text.value("ring_pins", &of(*rank), table.pins().count());
    }
    text.head(
        ("ring_counter", "gauge"),
        "What the ring has counted, by the names that counters have in a daemon's metrics.",
    );
    for (rank, ring) in &status.rings {
        for (name, count) in &ring.counters {
            let of = format!("{},name=\"{name}\"", of(*rank));
            text.value("ring_counter", &of, count);
        }
    }
}

fn merge(text: &mut Text, status: &RingsStatus) {
    text.head(
        ("merge_waiting_bytes", "gauge"),
        "Messages of a ring that wait for other rings.",
    );
    for (rank, wait) in &status.merge {
        let of = format!("ring=\"{}\"", rank.0);
        text.value("merge_waiting_bytes", &of, wait.waiting_bytes);
    }
    text.head(
        ("merge_wait_seconds", "histogram"),
        "How long messages of a ring have waited for other rings: one message in sixteen.",
    );
    for (rank, wait) in &status.merge {
        let of = format!("ring=\"{}\"", rank.0);
        let mut sum = 0;
        for (at, count) in wait.times.buckets().iter().enumerate() {
            sum += count;
            let end = Histogram::bound_micros(at).map(|micros| (micros as f64 / 1e6).to_string());
            let of = format!("{of},le=\"{}\"", end.as_deref().unwrap_or("+Inf"));
            text.value("merge_wait_seconds_bucket", &of, sum);
        }
        let seconds = wait.times.sum_nanos() as f64 / 1e9;
        text.value("merge_wait_seconds_sum", &of, seconds);
        text.value("merge_wait_seconds_count", &of, sum);
    }
}

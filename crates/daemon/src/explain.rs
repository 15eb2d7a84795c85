//! The troubles of a ring, in words: the words of several daemons on themselves, compared.
//!
//! A slow node, a link that loses datagrams and a client that does not read all make a ring slow. They are
//! told apart by where the token's time goes, by whose packets come late at whom, and by what waits for whom.
//! All of it is judged over an interval: what was wrong yesterday is not in it.

mod clients;
mod links;
mod reach;
mod ring;
mod token;

#[cfg(test)]
mod reach_tests;
#[cfg(test)]
mod tests;

use rota_core::contract::Histogram;
use serde::Serialize;

use crate::status::{DaemonStatus, sum};

pub use ring::{company, missing};

/// The states of a daemon at the beginning of the interval, and at its end.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// At the beginning.
    pub before: DaemonStatus,
    /// At the end.
    pub after: DaemonStatus,
}

/// A sentence for the operator.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// Something has to be done.
    pub wrong: bool,
    /// The sentence.
    pub text: String,
}

impl Finding {
    fn wrong(text: String) -> Self {
        Self { wrong: true, text }
    }

    fn note(text: String) -> Self {
        Self { wrong: false, text }
    }
}

impl Seen {
    /// The node.
    pub const fn node(&self) -> u16 {
        self.after.node
    }

    /// The length of the interval, in microseconds.
    pub fn micros(&self) -> u64 {
        let micros = self.after.uptime_us.saturating_sub(self.before.uptime_us);
        micros.max(1)
    }

    /// The growth of a counter.
    pub fn grown(&self, name: &str) -> u64 {
        let of = |status: &DaemonStatus| status.counters.get(name).copied().unwrap_or(0);
        of(&self.after).saturating_sub(of(&self.before))
    }

    /// The growth of the daemon's times of rotations: the number, and the mean in microseconds.
    pub fn rotations(&self) -> (u64, f64) {
        let (before, after) = (&self.before.token.rotation, &self.after.token.rotation);
        let count = after.count.saturating_sub(before.count);
        let sum = after.sum_us.saturating_sub(before.sum_us);
        (count, sum as f64 / count.max(1) as f64)
    }

    /// The number of rotations that took longer than `micros` microseconds, as far as the bounds of the daemon's
    /// histogram tell.
    pub fn rotations_beyond(&self, micros: u64) -> u64 {
        let (before, after) = (&self.before.token.rotation, &self.after.token.rotation);
        let grown = after.buckets.iter().enumerate().map(|(at, count)| {
            let before = before.buckets.get(at).copied().unwrap_or(0);
            (at, count.saturating_sub(before))
        });
        // The bound of the bucket before.
        let least = |at: usize| at.checked_sub(1).and_then(Histogram::bound_micros);
        let is_beyond = |at: usize| least(at).is_some_and(|least| least >= micros);
        let beyond = grown.filter(|(at, _)| is_beyond(*at));
        sum(beyond.map(|(_, count)| count))
    }
}

/// The same without daemons that were asked at two places.
pub fn distinct(seen: Vec<Seen>) -> Vec<Seen> {
    let mut all: Vec<Seen> = Vec::new();
    for one in seen {
        let process = |one: &Seen| (one.node(), one.after.pid);
        let is_known =
            one.after.pid != 0 && all.iter().any(|other| process(other) == process(&one));
        if !is_known {
            all.push(one);
        }
    }
    all
}

/// The findings, the worst first; never none, unless nobody has answered.
pub fn explain(seen: &[Seen]) -> Vec<Finding> {
    let mut findings = ring::look(seen);
    // If packets do not arrive, tokens carry requests for them round and round: they are slow for no other reason.
    if reach::look(seen).is_none() {
        findings.extend(token::look(seen));
    }
    findings.extend(links::look(seen));
    findings.extend(clients::look(seen));
    if !findings.iter().any(|finding| finding.wrong) && !seen.is_empty() {
        findings.push(all_well(seen));
    }
    findings
}

fn all_well(seen: &[Seen]) -> Finding {
    let members = seen.iter().map(|one| one.after.members.len()).max();
    let (count, micros) = seen
        .iter()
        .map(Seen::rotations)
        .max_by_key(|(count, _)| *count)
        .unwrap_or_default();
    let delivered = seen.iter().map(delivered_per_second).fold(0.0, f64::max);
    let token = if count > 0 {
        format!("the token goes round in {}", time(micros))
    } else if delivered > 0.0 {
        format!("{} messages a second are delivered", delivered.ceil())
    } else {
        "nothing is going on".to_owned()
    };
    let (asked, members) = (seen.len(), members.unwrap_or(0));
    Finding::note(format!(
        "all well: {members} on one ring, {token} ({asked} of them asked)"
    ))
}

/// Messages that a node's engine has delivered: not every engine has a token.
fn delivered_per_second(seen: &Seen) -> f64 {
    seen.grown("net_deliveries") as f64 / (seen.micros() as f64 / 1e6)
}

/// A time in microseconds, for people.
pub fn time(micros: f64) -> String {
    match micros {
        ..1000.0 => format!("{:.2} ms", micros / 1e3),
        1000.0..1_000_000.0 => format!("{:.1} ms", micros / 1e3),
        _ => format!("{:.1} s", micros / 1e6),
    }
}

/// Bytes, for people.
pub fn bytes(bytes: usize) -> String {
    match bytes {
        0..=9_999 => format!("{bytes} bytes"),
        10_000..=999_999 => format!("{} kB", bytes / 1000),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// Names in a row.
fn list(nodes: impl IntoIterator<Item = u16>) -> String {
    let names: Vec<String> = nodes.into_iter().map(|node| node.to_string()).collect();
    names.join(", ")
}

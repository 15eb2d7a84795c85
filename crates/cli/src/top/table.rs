//! What daemons have done in one interval, as rows: for a page of text, and for the screen.

use std::cmp::Reverse;
use std::fmt::Write as _;

use rota_daemon::explain::{Finding, Seen, bytes, company, distinct, explain, time};
use rota_daemon::{ClientStatus, DaemonStatus};

use super::Answer;
use crate::ask::Place;
use crate::say::escaped;

/// Clients that are shown: those for whom most waits.
const CLIENTS: usize = 10;

/// Columns of the table.
pub const COLUMNS: usize = 12;

/// The columns' names.
pub const NAMES: [&str; COLUMNS] = [
    "node", "name", "ring", "rounds/s", "round", "held", "token", "sent/s", "told/s", "lost",
    "waits", "clients",
];

/// What daemons have done in one interval, and what comes of it: a screen is drawn with each key.
pub struct Interval {
    /// A row for each place that was asked.
    pub rows: Vec<Row>,
    /// What was seen of each place; none where a daemon has not answered twice.
    pub seen: Vec<Option<Seen>>,
    /// What is wrong, or that all is well.
    pub findings: Vec<Finding>,
    /// Clients for whom something waits, those for whom most does first.
    pub lagging: Vec<ClientStatus>,
}

impl Interval {
    /// Compares what daemons have said at the beginning and at the end.
    pub fn between(places: &[Place], before: &[Answer], after: &[Answer]) -> Self {
        let (mut rows, mut seen) = (Vec::new(), Vec::new());
        for ((place, before), after) in places.iter().zip(before).zip(after) {
            let one = match (before, after) {
                (Ok(before), Ok(after)) => Some(Seen {
                    before: before.clone(),
                    after: after.clone(),
                }),
                _ => None,
            };
            rows.push(match (&one, after) {
                (Some(one), _) => Row::of(one),
                (None, Err(what)) => Row::Said(what.clone()),
                (None, Ok(_)) => Row::Said(format!("{place}: just started")),
            });
            seen.push(one);
        }
        Self::of(rows, seen)
    }

    /// With these rows, and what was seen of each place.
    pub fn of(rows: Vec<Row>, seen: Vec<Option<Seen>>) -> Self {
        // Each daemon once.
        let daemons = distinct(seen.iter().flatten().cloned().collect());
        Self {
            rows,
            seen,
            findings: explain(&daemons),
            lagging: lagging(daemons),
        }
    }

    /// The page of text.
    pub fn text(&self) -> String {
        let mut text = aligned(&self.rows);
        clients(&mut text, &self.lagging);
        text.push('\n');
        for finding in &self.findings {
            put(&mut text, format_args!("{}", escaped(&finding.text)));
        }
        text
    }
}

/// Clients for whom something waits, those for whom most does first.
fn lagging(seen: Vec<Seen>) -> Vec<ClientStatus> {
    let of = |one: Seen| one.after.clients;
    let mut lagging: Vec<ClientStatus> = seen
        .into_iter()
        .flat_map(of)
        .filter(|client| client.waiting_bytes > 0)
        .collect();
    lagging.sort_by_key(|client| Reverse(client.waiting_bytes));
    lagging
}

/// A row of the table, or a sentence in its place.
pub enum Row {
    Cells(Box<[String; COLUMNS]>),
    Said(String),
}

impl Row {
    fn head() -> Self {
        Self::Cells(Box::new(NAMES.map(str::to_owned)))
    }

    fn of(seen: &Seen) -> Self {
        let status = &seen.after;
        let seconds = seen.micros() as f64 / 1e6;
        let per_second = |count: u64| format!("{:.0}", count as f64 / seconds);
        let (rounds, round) = seen.rotations();
        let (held, before) = (&status.token.held, &seen.before.token.held);
        let held_us = held.sum_us.saturating_sub(before.sum_us);
        let visits = held.count.saturating_sub(before.count);
        let lost = lost(seen);
        let mean = |sum: f64, count: u64| match count {
            0 => "-".to_owned(),
            count => time(sum / count as f64),
        };
        Self::Cells(Box::new([
            status.node.to_string(),
            escaped(&status.name),
            escaped(short_ring(status)),
            per_second(rounds),
            mean(round * rounds as f64, rounds),
            mean(held_us as f64, visits),
            format!("{:.1}%", 100.0 * held_us as f64 / seen.micros() as f64),
            per_second(sent(seen)),
            per_second(status.told().saturating_sub(seen.before.told())),
            per_second(lost),
            (status.queues.packets)
                .saturating_add(status.queues.requests)
                .to_string(),
            status.clients.len().to_string(),
        ]))
    }
}

/// Columns as wide as what is in them: the first three are text, the others numbers.
fn aligned(rows: &[Row]) -> String {
    let mut widths = [0; COLUMNS];
    let head = Row::head();
    let rows = || std::iter::once(&head).chain(rows);
    for row in rows() {
        if let Row::Cells(cells) = row {
            for (width, cell) in widths.iter_mut().zip(cells.iter()) {
                *width = cell.chars().count().max(*width);
            }
        }
    }
    let mut text = String::new();
    for row in rows() {
        let line = match row {
            Row::Said(what) => format!("{:>1$} {what}", "-", widths[0]),
            Row::Cells(cells) => {
                let cells = cells.iter().zip(widths).enumerate();
                let cells = cells.map(|(column, (cell, width))| match column {
                    1 | 2 => format!("{cell:<width$}"),
                    _ => format!("{cell:>width$}"),
                });
                cells.collect::<Vec<_>>().join(" ")
            }
        };
        put(&mut text, format_args!("{line}"));
    }
    text
}

/// The nodes on the ring, in few characters; of a node that is on none, the first of its words. `--explain` says the
/// rest.
fn short_ring(status: &DaemonStatus) -> String {
    let Some(nodes) = company(status).filter(|_| status.is_operational()) else {
        let end = status.ring.find([':', ';', '(']);
        return status.ring[..end.unwrap_or(status.ring.len())]
            .trim()
            .to_owned();
    };
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for node in nodes {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(node) => *last = node,
            _ => ranges.push((node, node)),
        }
    }
    let range = |(first, last): &(u16, u16)| match last - first {
        0 => first.to_string(),
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

fn put(text: &mut String, line: std::fmt::Arguments<'_>) {
    // A string takes everything.
    let _ = writeln!(text, "{line}");
}

/// Messages that the daemon has given its engine, whichever that is; of a daemon that does not count them, packets.
pub fn sent(seen: &Seen) -> u64 {
    let is_counted = seen.after.counters.contains_key("net_submissions");
    let name = if is_counted {
        "net_submissions"
    } else {
        "packets_sent"
    };
    seen.grown(name)
}

/// Packets that came only when asked for.
pub fn lost(seen: &Seen) -> u64 {
    seen.after.repaired().saturating_sub(seen.before.repaired())
}

/// Clients for whom something waits.
fn clients(text: &mut String, lagging: &[ClientStatus]) {
    if !lagging.is_empty() {
        put(
            text,
            format_args!("\n{:<40} {:>12} {:>12}", "client", "waiting", "unread"),
        );
    }
    for client in lagging.iter().take(CLIENTS) {
        let unread = time(client.unread_ms as f64 * 1e3);
        let waiting = bytes(client.waiting_bytes);
        let name = escaped(&client.name);
        put(text, format_args!("{name:<40} {waiting:>12} {unread:>12}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_said_in_few_characters_and_whole() {
        let ring = |text: &str| {
            let ring = text.to_owned();
            short_ring(&DaemonStatus {
                ring,
                ..DaemonStatus::default()
            })
        };
        assert_eq!(ring("operational: 1, 2, 3, 5, 7, 8"), "1-3,5,7,8");
        assert_eq!(
            ring("operational: 1, 3 (configuration 2, coordinator 1)"),
            "1,3"
        );
        assert_eq!(
            ring("operational: 4; its disk has had votes for 2.0 s"),
            "4"
        );
        assert_eq!(
            ring("no majority: nothing is ordered, as of"),
            "no majority"
        );
        assert_eq!(ring("in no view; operational: 1"), "in no view");
        assert_eq!(ring("gathering: waiting for 3"), "gathering");
    }

    #[test]
    fn a_daemon_has_a_row_and_who_lags_too_and_who_does_not_answer_is_said() {
        let mut before = DaemonStatus {
            node: 7,
            name: "seven".to_owned(),
            groups_ready: true,
            ..DaemonStatus::default()
        };
        before.ring = "operational: 1, 2, 3, 4, 5, 6, 7".to_owned();
        let mut after = before.clone();
        after.uptime_us = 500_000;
        after.counters.insert("packets_sent".into(), 100);
        after.token.held.count = 10;
        after.token.held.sum_us = 50_000;
        let lagging = ClientStatus {
            name: "#lag#seven".to_owned(),
            waiting_bytes: 5_000,
            unread_ms: 20,
            messages: 50,
            ..ClientStatus::default()
        };
        after.clients = vec![lagging];
        let places = ["/a", "/b"].map(|path| path.parse().expect("a path"));
        let gone = || Err("/b: No such file".to_owned());
        let after = [Ok(after), gone()];
        let text = Interval::between(&places, &[Ok(before), gone()], &after).text();
        let words = |start: &str| {
            let line = text
                .lines()
                .find(|line| line.trim_start().starts_with(start));
            let line = line.unwrap_or_else(|| panic!("{start}: {text}"));
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let row = words("7 seven");
        // Sent, told, lost, waiting, clients.
        assert_eq!(row[row.len() - 5..], ["200", "100", "0", "0", "1"]);
        assert!(
            text.contains("10.0%") && text.contains("5.0 ms") && row[2] == "1-7",
            "{text}"
        );
        // A terminal of the usual width has room for it.
        let table = text.lines().take(2);
        assert!(
            table
                .map(|line| line.chars().count())
                .all(|width| width <= 80),
            "{text}"
        );
        assert_eq!(words("#lag#seven")[1..], ["5000", "bytes", "20.0", "ms"]);
        assert!(text.contains("- /b: No such file"), "{text}");
    }
}

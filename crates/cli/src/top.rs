//! `rota top`: what daemons do, again and again.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use rota_daemon::{ClientStatus, DaemonStatus};

use crate::ask::{AskOptions, Place, ask_all};
use crate::client::Failure;
use crate::explain::{Seen, bytes, company, distinct, explain, time};
use crate::say::{self, print};

/// Clients that are shown: those for whom most waits.
const CLIENTS: usize = 10;

/// Columns of the table.
const COLUMNS: usize = 12;

/// Goes to the upper left corner, and clears what is there.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Options of `rota top`.
#[derive(Clone, Debug, clap::Args)]
pub struct TopOptions {
    #[command(flatten)]
    ask: AskOptions,
    /// How long to look each time, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..=600_000))]
    interval: u64,
    /// Print one table and end
    #[arg(long)]
    once: bool,
}

/// Prints a table for each interval, until it is killed.
pub fn main(options: &TopOptions) -> ExitCode {
    let places = match options.ask.places() {
        Ok(places) => places,
        Err(failure) => return failure.exit(),
    };
    let is_screen = std::io::stdout().is_terminal() && has_terminal(std::env::var("TERM").ok());
    let mut before = answers(&places);
    loop {
        thread::sleep(Duration::from_millis(options.interval));
        let after = answers(&places);
        let answered = after.iter().any(Result::is_ok);
        let table = table(&places, &before, &after);
        if options.once {
            print(&table.trim_end());
            return ExitCode::from(u8::from(!answered));
        }
        let clear = if is_screen { CLEAR } else { "" };
        print(&format!("{clear}{}", table.trim_end()));
        if say::is_over() {
            return ExitCode::SUCCESS;
        }
        before = after;
    }
}

/// Whether a terminal of this name can be cleared.
fn has_terminal(name: Option<String>) -> bool {
    name.is_some_and(|name| !name.is_empty() && name != "dumb")
}

type Answer = Result<DaemonStatus, String>;

fn answers(places: &[Place]) -> Vec<Answer> {
    let status = |answer: Result<(String, DaemonStatus), Failure>| {
        let status = answer.map(|(_, status)| status);
        status.map_err(|failure| failure.to_string())
    };
    ask_all(places).into_iter().map(status).collect()
}

fn table(places: &[Place], before: &[Answer], after: &[Answer]) -> String {
    let mut rows = vec![Row::head()];
    let mut seen = Vec::new();
    for ((place, before), after) in places.iter().zip(before).zip(after) {
        match (before, after) {
            (Ok(before), Ok(after)) => {
                let one = Seen {
                    before: before.clone(),
                    after: after.clone(),
                };
                rows.push(Row::of(&one));
                seen.push(one);
            }
            (_, Err(what)) => rows.push(Row::Said(what.clone())),
            (Err(_), Ok(_)) => rows.push(Row::Said(format!("{place}: just started"))),
        }
    }
    let mut text = aligned(&rows);
    let seen = distinct(seen);
    clients(&mut text, &seen);
    text.push('\n');
    for finding in explain(&seen) {
        put(&mut text, format_args!("{}", finding.text));
    }
    text
}

/// A row of the table, or a sentence in its place.
enum Row {
    Cells(Box<[String; COLUMNS]>),
    Said(String),
}

impl Row {
    fn head() -> Self {
        let names = [
            "node", "name", "ring", "rounds/s", "round", "held", "token", "sent/s", "told/s",
            "lost/s", "waiting", "clients",
        ];
        Self::Cells(Box::new(names.map(str::to_owned)))
    }

    fn of(seen: &Seen) -> Self {
        let status = &seen.after;
        let seconds = seen.micros() as f64 / 1e6;
        let per_second = |count: u64| format!("{:.0}", count as f64 / seconds);
        let (rounds, round) = seen.rotations();
        let (held, before) = (&status.token.held, &seen.before.token.held);
        let held_us = held.sum_us.saturating_sub(before.sum_us);
        let visits = held.count.saturating_sub(before.count);
        let repaired =
            |status: &DaemonStatus| status.peers.values().map(|peer| peer.repaired).sum::<u64>();
        let lost = repaired(status).saturating_sub(repaired(&seen.before));
        let mean = |sum: f64, count: u64| match count {
            0 => "-".to_owned(),
            count => time(sum / count as f64),
        };
        Self::Cells(Box::new([
            status.node.to_string(),
            status.name.clone(),
            short_ring(status),
            per_second(rounds),
            mean(round * rounds as f64, rounds),
            mean(held_us as f64, visits),
            format!("{:.1}%", 100.0 * held_us as f64 / seen.micros() as f64),
            per_second(sent(seen)),
            per_second(told(status).saturating_sub(told(&seen.before))),
            per_second(lost),
            (status.queues.packets + status.queues.requests).to_string(),
            status.clients.len().to_string(),
        ]))
    }
}

/// Columns as wide as what is in them: the first three are text, the others numbers.
fn aligned(rows: &[Row]) -> String {
    let mut widths = [0; COLUMNS];
    for row in rows {
        if let Row::Cells(cells) = row {
            for (width, cell) in widths.iter_mut().zip(cells.iter()) {
                *width = cell.chars().count().max(*width);
            }
        }
    }
    let mut text = String::new();
    for row in rows {
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
    let Some(nodes) = company(status).filter(|_| status.ring.starts_with("operational")) else {
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
fn sent(seen: &Seen) -> u64 {
    let is_counted = seen.after.counters.contains_key("net_submissions");
    let name = if is_counted {
        "net_submissions"
    } else {
        "packets_sent"
    };
    seen.grown(name)
}

/// Messages that clients that are there were told.
fn told(status: &DaemonStatus) -> u64 {
    status.clients.iter().map(|client| client.messages).sum()
}

/// Clients for whom something waits.
fn clients(text: &mut String, seen: &[Seen]) {
    let of = |one: &Seen| one.after.clients.clone();
    let mut lag: Vec<ClientStatus> = seen
        .iter()
        .flat_map(of)
        .filter(|client| client.waiting_bytes > 0)
        .collect();
    lag.sort_by_key(|client| std::cmp::Reverse(client.waiting_bytes));
    if !lag.is_empty() {
        put(
            text,
            format_args!("\n{:<40} {:>12} {:>12}", "client", "waiting", "unread"),
        );
    }
    for client in lag.iter().take(CLIENTS) {
        let unread = time(client.unread_ms as f64 * 1e3);
        let waiting = bytes(client.waiting_bytes);
        put(
            text,
            format_args!("{:<40} {waiting:>12} {unread:>12}", client.name),
        );
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
        let text = table(&places, &[Ok(before), gone()], &[Ok(after), gone()]);
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

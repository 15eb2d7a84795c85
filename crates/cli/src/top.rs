//! `rota top`: what daemons do, again and again.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use rota_daemon::{ClientStatus, DaemonStatus};

use crate::ask::{AskOptions, Place, ask_all};
use crate::client::Failure;
use crate::explain::{Seen, bytes, distinct, explain, time};
use crate::say::{self, print};

/// Clients that are shown: those for whom most waits.
const CLIENTS: usize = 10;

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
    let mut text = format!(
        "{:>5} {:<12} {:<24} {:>9} {:>9} {:>9} {:>6} {:>9} {:>9} {:>7} {:>8} {:>7}\n",
        "node",
        "name",
        "ring",
        "rounds/s",
        "round",
        "held",
        "token",
        "sent/s",
        "told/s",
        "lost/s",
        "waiting",
        "clients"
    );
    let mut seen = Vec::new();
    for ((place, before), after) in places.iter().zip(before).zip(after) {
        match (before, after) {
            (Ok(before), Ok(after)) => {
                let one = Seen {
                    before: before.clone(),
                    after: after.clone(),
                };
                row(&mut text, &one);
                seen.push(one);
            }
            (_, Err(what)) => put(&mut text, format_args!("    - {what}")),
            (Err(_), Ok(_)) => put(&mut text, format_args!("    - {place}: just started")),
        }
    }
    let seen = distinct(seen);
    clients(&mut text, &seen);
    text.push('\n');
    for finding in explain(&seen) {
        put(&mut text, format_args!("{}", finding.text));
    }
    text
}

fn put(text: &mut String, line: std::fmt::Arguments<'_>) {
    // A string takes everything.
    let _ = writeln!(text, "{line}");
}

fn row(text: &mut String, seen: &Seen) {
    let status = &seen.after;
    let seconds = seen.micros() as f64 / 1e6;
    let per_second = |count: u64| format!("{:.0}", count as f64 / seconds);
    let (rounds, round) = seen.rotations();
    let held_us = status
        .token
        .held
        .sum_us
        .saturating_sub(seen.before.token.held.sum_us);
    let visits = status
        .token
        .held
        .count
        .saturating_sub(seen.before.token.held.count);
    let repaired =
        |status: &DaemonStatus| status.peers.values().map(|peer| peer.repaired).sum::<u64>();
    let lost = repaired(status).saturating_sub(repaired(&seen.before));
    let mut ring = status.ring.clone();
    if ring.chars().count() > 24 {
        ring = ring.chars().take(23).chain(['…']).collect();
    }
    let mean = |sum: f64, count: u64| {
        if count > 0 {
            time(sum / count as f64)
        } else {
            "-".to_owned()
        }
    };
    put(
        text,
        format_args!(
            "{:>5} {:<12} {ring:<24} {:>9} {:>9} {:>9} {:>5.1}% {:>9} {:>9} {:>7} {:>8} {:>7}",
            status.node,
            status.name,
            per_second(rounds),
            mean(round * rounds as f64, rounds),
            mean(held_us as f64, visits),
            100.0 * held_us as f64 / seen.micros() as f64,
            per_second(sent(seen)),
            per_second(told(status).saturating_sub(told(&seen.before))),
            per_second(lost),
            status.queues.packets + status.queues.requests,
            status.clients.len(),
        ),
    );
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
            text.contains("10.0%")
                && text.contains("5.0 ms")
                && text.contains("operational: 1, 2, 3, 4…"),
            "{text}"
        );
        assert_eq!(words("#lag#seven")[1..], ["5000", "bytes", "20.0", "ms"]);
        assert!(text.contains("- /b: No such file"), "{text}");
    }
}

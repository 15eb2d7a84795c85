//! `rota top`: what daemons do, again and again.

mod history;
mod screen;
mod table;
mod terminal;

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use rota_daemon::DaemonStatus;
use rota_daemon::explain::Finding;
use serde::Serialize;

use crate::ask::{AskOptions, Place, ask_all};
use crate::client::Failure;
use crate::say::{self, complain, print, print_json};
use table::Interval;

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
    /// Print one JSON object instead of a table: what each daemon says at the end, and what is wrong
    #[arg(long, requires = "once")]
    json: bool,
}

/// The answer of a daemon; an error in words.
type Answer = Result<DaemonStatus, String>;

/// One interval, for programs.
#[derive(Debug, Serialize)]
struct Once<'a> {
    daemons: Vec<&'a DaemonStatus>,
    silent: Vec<&'a str>,
    findings: &'a [Finding],
}

/// Shows each interval, until it is told to end.
pub fn main(options: &TopOptions) -> ExitCode {
    let places = match options.ask.places() {
        Ok(places) => places,
        Err(failure) => return failure.exit(),
    };
    let interval = Duration::from_millis(options.interval);
    if options.once {
        return once(&places, interval, options.json);
    }
    let is_screen = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if is_screen && has_terminal(std::env::var("TERM").ok()) {
        return match terminal::run(places, interval) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                complain(&format!("the terminal: {error}"));
                ExitCode::FAILURE
            }
        };
    }
    let mut before = answers(&places);
    loop {
        thread::sleep(interval);
        let after = answers(&places);
        let text = Interval::between(&places, &before, &after).text();
        print(&text.trim_end());
        if say::is_over() {
            return ExitCode::SUCCESS;
        }
        before = after;
    }
}

/// Shows one interval.
fn once(places: &[Place], length: Duration, json: bool) -> ExitCode {
    let before = answers(places);
    thread::sleep(length);
    let after = answers(places);
    let interval = Interval::between(places, &before, &after);
    if json {
        print_json(&Once {
            daemons: after.iter().flatten().collect(),
            silent: after
                .iter()
                .filter_map(|answer| answer.as_ref().err().map(String::as_str))
                .collect(),
            findings: &interval.findings,
        });
    } else {
        print(&interval.text().trim_end());
    }
    ExitCode::from(u8::from(!after.iter().any(Result::is_ok)))
}

/// Whether a terminal of this name can be drawn on.
fn has_terminal(name: Option<String>) -> bool {
    name.is_some_and(|name| !name.is_empty() && name != "dumb")
}

fn answers(places: &[Place]) -> Vec<Answer> {
    let status = |answer: Result<(String, DaemonStatus), Failure>| {
        let status = answer.map(|(_, status)| status);
        status.map_err(|failure| failure.to_string())
    };
    ask_all(places).into_iter().map(status).collect()
}

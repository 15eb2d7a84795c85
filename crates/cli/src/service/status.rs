//! The states of all processes of a service.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;

use super::info::ask;
use super::who::Who;
use crate::say::{complain, escaped_lines, print, print_json};

/// Options of a command that asks all processes.
#[derive(Clone, Debug, clap::Args)]
pub struct StatusOptions {
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    #[command(flatten)]
    pub who: Who,
    /// Print one JSON object on the last line
    #[arg(long)]
    pub json: bool,
}

/// The state of a process.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    node: u16,
    address: Option<SocketAddr>,
    /// The troubles, in words.
    wrong: Vec<String>,
    /// Its words on itself (`INFO`).
    info: BTreeMap<String, String>,
}

/// The fields of a process's words on itself.
pub struct Info<'a>(&'a BTreeMap<String, String>);

impl Info<'_> {
    /// One of them; nothing where it is not there.
    pub fn of(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }
}

/// The column for a field: its head, the field's name, and its width.
pub type Column = (&'static str, &'static str, usize);

/// A service, as it is configured, and what an operator should know of it.
pub struct Shows<'a> {
    /// The nodes, each with the address at which its clients connect.
    pub processes: Vec<(u16, Option<SocketAddr>)>,
    pub columns: &'a [Column],
    pub wrong: fn(&Info<'_>) -> Vec<String>,
}

/// Reads the configuration file of a service.
pub fn read<T, E: ToString>(
    file: &Path,
    from_toml: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string());
    let read = text.and_then(|text| from_toml(&text).map_err(|error| error.to_string()));
    read.map_err(|error| format!("{}: {error}", file.display()))
}

/// Asks all of them.
pub fn main(options: &StatusOptions, shows: Result<Shows<'_>, String>) -> ExitCode {
    let shows = match shows {
        Ok(shows) => shows,
        Err(error) => {
            complain(&error);
            return ExitCode::from(2);
        }
    };
    let lines: Vec<Line> = std::thread::scope(|scope| {
        let (shows, who) = (&shows, &options.who);
        let ask = |of: &(u16, Option<SocketAddr>)| {
            let of = *of;
            scope.spawn(move || line(of, shows, who))
        };
        let asked: Vec<_> = shows.processes.iter().map(ask).collect();
        asked.into_iter().flat_map(|asked| asked.join()).collect()
    });
    print(&escaped_lines(table(&lines, shows.columns).trim_end()));
    if options.json {
        print_json(&lines);
    }
    match lines.iter().all(|line| line.wrong.is_empty()) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn line((node, address): (u16, Option<SocketAddr>), shows: &Shows<'_>, who: &Who) -> Line {
    let mut line = Line {
        node,
        address,
        wrong: Vec::new(),
        info: BTreeMap::new(),
    };
    let Some(address) = address else {
        line.wrong.push("it has no port for clients".to_owned());
        return line;
    };
    match ask(address, who) {
        Ok(info) => {
            line.wrong = (shows.wrong)(&Info(&info));
            line.info = info;
        }
        Err(error) => line.wrong.push(error),
    }
    line
}

fn table(lines: &[Line], columns: &[Column]) -> String {
    let mut text = format!("{:<8}{:<23}", "process", "address");
    for (head, _, width) in columns {
        text += &format!("{head:>width$}");
    }
    text += "  state\n";
    for line in lines {
        let address = line.address.map_or_else(String::new, |at| at.to_string());
        text += &format!("{:<8}{address:<23}", line.node);
        for (_, name, width) in columns {
            let value = line.info.get(*name).map_or("-", String::as_str);
            text += &format!("{value:>width$}");
        }
        let state = match line.wrong.is_empty() {
            true => "well".to_owned(),
            false => line.wrong.join("; "),
        };
        text += &format!("  {state}\n");
    }
    text
}

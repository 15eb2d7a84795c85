//! `rota log status`: how all processes are.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rota_log::LogConfig;
use serde::Serialize;

use crate::say::{complain, print, print_json};
use crate::service::info::ask;
use crate::service::who::Who;

/// Options of `rota log status`.
#[derive(Clone, Debug, clap::Args)]
pub struct StatusOptions {
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    #[command(flatten)]
    who: Who,
    /// Print one JSON object on the last line
    #[arg(long)]
    json: bool,
}

/// How a process is.
#[derive(Clone, Debug, Serialize)]
struct Line {
    node: u16,
    address: Option<SocketAddr>,
    /// What is wrong, in words.
    wrong: Vec<String>,
    /// What it says of itself (`INFO`).
    info: BTreeMap<String, String>,
}

/// The file of a service.
pub fn read(file: &Path) -> Result<LogConfig, String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string());
    let config = text.and_then(|text| LogConfig::from_toml(&text).map_err(|e| e.to_string()));
    config.map_err(|error| format!("{}: {error}", file.display()))
}

/// Asks all of them.
pub fn main(options: &StatusOptions) -> ExitCode {
    let config = match read(&options.config) {
        Ok(config) => config,
        Err(error) => {
            complain(&error);
            return ExitCode::from(2);
        }
    };
    let lines: Vec<Line> = std::thread::scope(|scope| {
        let (config, who) = (&config, &options.who);
        let ask = |process| scope.spawn(move || line(config, process, who));
        let asked: Vec<_> = config.log.process.iter().map(ask).collect();
        asked.into_iter().flat_map(|asked| asked.join()).collect()
    });
    print(&table(&lines).trim_end());
    if options.json {
        print_json(&lines);
    }
    match lines.iter().all(|line| line.wrong.is_empty()) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn line(config: &LogConfig, process: &rota_log::ProcessSection, who: &Who) -> Line {
    let address = config.clients_of(process);
    let mut line = Line {
        node: process.node,
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
            line.wrong = wrong(&info);
            line.info = info;
        }
        Err(error) => line.wrong.push(error),
    }
    line
}

/// What an operator should know.
fn wrong(info: &BTreeMap<String, String>) -> Vec<String> {
    let of = |name: &str| info.get(name).map_or("", String::as_str);
    let mut wrong = Vec::new();
    if of("open") == "0" {
        wrong.push("its replica has not caught up, or gets a state of another one".to_owned());
    }
    if of("full") == "1" {
        wrong.push("its disk has no room, or fails: clients append nothing there".to_owned());
    }
    if of("missing") != "0" {
        wrong.push(format!(
            "{} entries are missing, and got from others",
            of("missing")
        ));
    }
    wrong
}

fn table(lines: &[Line]) -> String {
    let mut text = format!(
        "{:<8}{:<23}{:>8}{:>16}{:>10}{:>9}  {}\n",
        "process", "address", "logs", "bytes on disk", "readers", "clients", "state"
    );
    for line in lines {
        let of = |name: &str| line.info.get(name).map_or("-", String::as_str);
        let address = line.address.map_or_else(String::new, |at| at.to_string());
        let state = match line.wrong.is_empty() {
            true => "well".to_owned(),
            false => line.wrong.join("; "),
        };
        let _ = writeln!(
            text,
            "{:<8}{address:<23}{:>8}{:>16}{:>10}{:>9}  {state}",
            line.node,
            of("logs"),
            of("disk_bytes"),
            of("blocked_clients"),
            of("connected_clients")
        );
    }
    text
}

//! `rota kv status`: how all processes of a store are.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rota_kv::KvConfig;
use serde::Serialize;

use crate::say::{complain, print, print_json};
use crate::service::info::ask;
use crate::service::who::Who;

/// Options of `rota kv status`.
#[derive(Clone, Debug, clap::Args)]
pub struct StatusOptions {
    /// The store's file
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
    partition: u16,
    address: Option<SocketAddr>,
    /// What is wrong, in words.
    wrong: Vec<String>,
    /// What it says of itself (`INFO`).
    info: BTreeMap<String, String>,
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
        let asked: Vec<_> = config.kv.process.iter().map(ask).collect();
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

/// A store's file.
pub fn read(file: &Path) -> Result<KvConfig, String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string());
    let config = text.and_then(|text| KvConfig::from_toml(&text).map_err(|e| e.to_string()));
    config.map_err(|error| format!("{}: {error}", file.display()))
}

fn line(config: &KvConfig, process: &rota_kv::ProcessSection, who: &Who) -> Line {
    let address = config.clients_of(process);
    let mut line = Line {
        node: process.node,
        partition: process.partition,
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
        wrong.push("its partition is full: it takes no writes that could grow".to_owned());
    }
    if of("processes_connected") != of("processes_configured") {
        wrong.push(format!(
            "it reaches {} of {} other processes",
            of("processes_connected"),
            of("processes_configured")
        ));
    }
    if !of("answers_waiting_for_partitions").is_empty() {
        wrong.push(format!(
            "{} answers wait for partition {}",
            of("answers_waiting"),
            of("answers_waiting_for_partitions")
        ));
    }
    wrong
}

fn table(lines: &[Line]) -> String {
    let mut text = format!(
        "{:<8}{:<11}{:<23}{:>10}{:>14}{:>9}  {}\n",
        "process", "partition", "address", "keys", "bytes", "clients", "state"
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
            "{:<8}{:<11}{address:<23}{:>10}{:>14}{:>9}  {state}",
            line.node,
            line.partition,
            of("keys"),
            of("used_memory"),
            of("connected_clients")
        );
    }
    text
}

//! `rota kv status`: how all processes of a store are.

use std::path::Path;
use std::process::ExitCode;

use rota_kv::KvConfig;

use crate::service::rings::{self, RingsOptions};
use crate::service::status::{self, Column, Info, Shows, StatusOptions};

const COLUMNS: &[Column] = &[
    ("partition", "partition", 11),
    ("keys", "keys", 10),
    ("bytes", "used_memory", 14),
    ("clients", "connected_clients", 9),
];

/// A store's file.
pub fn read(file: &Path) -> Result<KvConfig, String> {
    status::read(file, KvConfig::from_toml)
}

/// Asks all of them.
pub fn main(options: &StatusOptions) -> ExitCode {
    let shows = read(&options.config).map(|config| {
        let of = config.kv.process.iter();
        Shows {
            processes: of
                .map(|process| (process.node, config.clients_of(process)))
                .collect(),
            columns: COLUMNS,
            wrong,
        }
    });
    status::main(options, shows)
}

/// Shows the rings below all of them, or has something ordered there.
pub fn rings(options: &RingsOptions) -> ExitCode {
    let processes = read(&options.config).map(|config| {
        let of = config.kv.process.iter();
        of.map(|process| (process.node, config.clients_of(process)))
            .collect()
    });
    rings::main(options, processes)
}

/// The troubles that an operator should know.
fn wrong(info: &Info<'_>) -> Vec<String> {
    let of = |name: &str| info.of(name);
    let mut wrong = Vec::new();
    if of("open") == "0" {
        wrong.push("its replica has not caught up, or gets a state of another one".to_owned());
    }
    wrong.extend(rings::unreadable(of("unreadable")));
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

//! `rota log status`: how all processes are.

use std::path::Path;
use std::process::ExitCode;

use rota_log::LogConfig;

use crate::service::rings::{self, RingsOptions};
use crate::service::status::{self, Column, Info, Shows, StatusOptions};

const COLUMNS: &[Column] = &[
    ("logs", "logs", 10),
    ("bytes on disk", "disk_bytes", 16),
    ("readers", "blocked_clients", 10),
    ("clients", "connected_clients", 9),
];

/// The file of a service.
pub fn read(file: &Path) -> Result<LogConfig, String> {
    status::read(file, LogConfig::from_toml)
}

/// Asks all of them.
pub fn main(options: &StatusOptions) -> ExitCode {
    let shows = read(&options.config).map(|config| {
        let of = config.log.process.iter();
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
        let of = config.log.process.iter();
        of.map(|process| (process.node, config.clients_of(process)))
            .collect()
    });
    rings::main(options, processes)
}

/// The troubles that an operator should know.
fn wrong(info: &Info<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    if info.of("open") == "0" {
        wrong.push("its replica has not caught up, or gets a state of another one".to_owned());
    }
    wrong.extend(rings::unreadable(info.of("unreadable")));
    if info.of("full") == "1" {
        wrong.push("its disk has no room, or fails: clients append nothing there".to_owned());
    }
    if info.of("missing") != "0" {
        wrong.push(format!(
            "{} entries are missing, and got from others",
            info.of("missing")
        ));
    }
    wrong
}

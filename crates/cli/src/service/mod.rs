//! The common parts of the commands of services.

pub mod connection;
pub mod figures;
pub mod info;
pub mod local;
pub mod place;
pub mod processes;
pub mod processor;
pub mod rings;
pub mod serve;
pub mod status;
pub mod talk;
pub mod trouble;
pub mod where_to;
pub mod who;

use std::process::ExitCode;

use rota_node::VoteStorage;
use serde::Serialize;

use crate::say::{complain, print, print_json};

/// The results of a run.
pub trait Shown: Serialize {
    /// For people.
    fn text(&self) -> String;

    /// Nothing was wrong.
    fn is_well(&self) -> bool;
}

/// Says what a run has shown, or why it has shown nothing. `json`: an object on the last line, too.
pub fn conclude<R: Shown>(run: Result<R, String>, json: bool) -> ExitCode {
    let report = match run {
        Ok(report) => report,
        Err(what) => {
            complain(&what);
            return ExitCode::FAILURE;
        }
    };
    print(&report.text());
    if json {
        print_json(&report);
    }
    match report.is_well() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// The storage of votes, as it is written.
pub fn storage(text: &str) -> Result<VoteStorage, String> {
    match text {
        "sync" => Ok(VoteStorage::Sync),
        "async" => Ok(VoteStorage::Async),
        "memory" => Ok(VoteStorage::Memory),
        _ => Err("sync, async or memory".to_owned()),
    }
}

//! `rota log check`: a history.

use std::path::PathBuf;
use std::process::ExitCode;

use rota_check::logs::{Logs, Step, judge};
use serde::{Deserialize, Serialize};

use crate::say::{complain, print_json};

/// Options of `rota log check`.
#[derive(Clone, Debug, clap::Args)]
pub struct CheckOptions {
    /// What clients asked and were told, and what the logs had at the end
    file: PathBuf,
}

/// The contents of a file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct History {
    /// The requests of clients, and the answers.
    pub steps: Vec<Step>,
    /// The contents of the logs at the end.
    pub logs: Logs,
}

/// Checks the history in a file.
pub fn main(options: &CheckOptions) -> ExitCode {
    let text = std::fs::read_to_string(&options.file).map_err(|error| error.to_string());
    let read = |text: String| serde_json::from_str(&text).map_err(|error| error.to_string());
    let history: History = match text.and_then(read) {
        Ok(history) => history,
        Err(error) => {
            complain(&format!("{}: {error}", options.file.display()));
            return ExitCode::from(2);
        }
    };
    match judge(&history.steps, &history.logs) {
        Ok(summary) => {
            print_json(&summary);
            ExitCode::SUCCESS
        }
        Err(wrong) => {
            complain(&format!("it is not explained: {wrong}"));
            ExitCode::FAILURE
        }
    }
}

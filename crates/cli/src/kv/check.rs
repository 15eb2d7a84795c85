//! `rota kv check`: whether one order explains a history.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rota_check::history::{Step, judge};

use crate::say::{complain, print, print_json};

/// Options of `rota kv check`.
#[derive(Clone, Debug, clap::Args)]
pub struct CheckOptions {
    /// Histories: those of all clients of one store
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Checks them.
pub fn main(options: &CheckOptions) -> ExitCode {
    let mut steps = Vec::new();
    for file in &options.files {
        if let Err(error) = read(file, &mut steps) {
            complain(&format!("{}: {error}", file.display()));
            return ExitCode::from(2);
        }
    }
    match judge(&steps) {
        Ok(summary) => {
            match options.json {
                true => print_json(&summary),
                false => print(&format!(
                    "one order explains all: {} answered, {} not, {} reads, {} writes, {} of several keys",
                    summary.answered,
                    summary.unanswered,
                    summary.reads,
                    summary.writes,
                    summary.several
                )),
            }
            ExitCode::SUCCESS
        }
        Err(wrong) => {
            complain(&format!("no order explains it: {wrong}"));
            ExitCode::FAILURE
        }
    }
}

fn read(file: &Path, steps: &mut Vec<Step>) -> Result<(), String> {
    let file = File::open(file).map_err(|error| error.to_string())?;
    for (at, line) in BufReader::new(file).lines().enumerate() {
        let line = line.map_err(|error| error.to_string())?;
        let step = serde_json::from_str(&line);
        steps.push(step.map_err(|error| format!("line {}: {error}", at + 1))?);
    }
    Ok(())
}

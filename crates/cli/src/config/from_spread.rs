//! `rota config from-spread`: a `spread.conf` as a configuration of Rota.

mod read;
mod write;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::say::{complain, print, tell};

/// Options of `rota config from-spread`.
#[derive(Clone, Debug, clap::Args)]
pub struct FromSpreadOptions {
    /// Spread's configuration file
    file: PathBuf,
}

/// Prints the configuration, and what did not come along on standard error.
pub fn from_spread(options: &FromSpreadOptions) -> ExitCode {
    let text = match std::fs::read_to_string(&options.file) {
        Ok(text) => text,
        Err(error) => {
            complain(&format!("cannot read {}: {error}", options.file.display()));
            return ExitCode::from(2);
        }
    };
    let converted = read::read(&text).and_then(|spread| write::write(&spread));
    match converted {
        Ok((config, remarks)) => {
            print(&config.trim_end());
            remarks.iter().for_each(tell);
            ExitCode::SUCCESS
        }
        Err(what) => {
            complain(&format!("{}: {what}", options.file.display()));
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests;

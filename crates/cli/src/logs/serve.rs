//! `rota log serve`: one process of a service of logs.

use std::path::Path;
use std::process::ExitCode;

use rota_log::LogProcess;

use super::status::read;
use crate::service::serve::{self, ServeOptions, Serves};

impl Serves for LogProcess {
    fn ended(&self) -> Option<String> {
        Self::ended(self)
    }

    fn reload(&self, file: &Path) -> Result<bool, String> {
        let config = read(file)?;
        Self::reload(self, &config).map_err(|error| error.to_string())
    }
}

/// Runs until it is told to stop by a signal.
pub fn main(options: &ServeOptions) -> ExitCode {
    serve::main(options, |node| {
        let config = read(&options.config)?;
        rota_daemon::ask_for_descriptors(config.log.clients.unwrap_or(10_000) as usize);
        LogProcess::start(&config, node).map_err(|error| error.to_string())
    })
}

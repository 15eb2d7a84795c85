//! `rota kv serve`: one process of a store.

use std::path::Path;
use std::process::ExitCode;

use rota_kv::Kv;

use super::status::read;
use crate::service::serve::{self, ServeOptions, Serves};

impl Serves for Kv {
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
        rota_daemon::ask_for_descriptors(config.kv.clients() as usize);
        Kv::start(&config, node).map_err(|error| error.to_string())
    })
}

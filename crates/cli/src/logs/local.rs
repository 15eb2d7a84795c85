//! Logs whose processes are all on this host.

use rota_log::{LogConfig, ProcessSection};
use rota_node::VoteStorage;

use crate::service::local::{self, OnThisHost, local};
use crate::service::processes::{One, Service};

/// Running processes, and what they keep until this is dropped.
pub type Local = local::Local<LogConfig>;

impl OnThisHost for LogConfig {
    const DIRECTORIES: [&'static str; 2] = ["votes", "logs"];

    fn file(&self) -> Result<String, String> {
        self.to_toml().map_err(|error| error.to_string())
    }

    fn processes(&self) -> Vec<One> {
        let one = |process: &ProcessSection| One {
            address: local(process.redis_port),
            states: self.log.state_dir.join(format!("node-{}", process.node)),
        };
        self.log.process.iter().map(one).collect()
    }
}

/// Starts a service with a number of rings and a number of processes.
pub fn start(of: (u16, u16), storage: VoteStorage) -> Result<Local, String> {
    let service = Service {
        name: "log",
        asks: &["DBSIZE"],
        replicas: usize::from(of.1),
    };
    let make =
        |port, directory: &std::path::Path| LogConfig::loopback(of, port, (directory, storage));
    Local::start(service, LogConfig::ports(of), make)
}

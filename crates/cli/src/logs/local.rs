//! A service of logs whose processes are all on this host.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use rota_log::{LogConfig, ProcessSection};
use rota_node::VoteStorage;

use crate::demo::ports::free_range;
use crate::demo::scratch::Scratch;
use crate::service::processes::{One, Processes, Service};

/// Running processes, and what they keep until this is dropped.
pub struct Local {
    pub config: LogConfig,
    pub processes: Processes,
    _scratch: Scratch,
}

impl Local {
    /// So many rings, and so many processes.
    pub fn start(of: (u16, u16), storage: VoteStorage) -> Result<Self, String> {
        let failed = |error: io::Error| format!("its directory: {error}");
        let scratch = Scratch::with_own_interrupt().map_err(failed)?;
        let port = free_range(LogConfig::ports(of)).ok_or("there are not so many free ports")?;
        let config = LogConfig::loopback(of, port, (scratch.path(), storage));
        for name in ["votes", "logs"] {
            fs::create_dir(scratch.path().join(name)).map_err(failed)?;
        }
        let file = scratch.path().join("rota.toml");
        let text = config.to_toml().map_err(|error| error.to_string())?;
        fs::write(&file, text).map_err(failed)?;
        let one = |process: &ProcessSection| One {
            address: address(process),
            states: config.log.state_dir.join(format!("node-{}", process.node)),
        };
        let all = config.log.process.iter().map(one).collect();
        let service = Service {
            name: "log",
            asks: &["DBSIZE"],
            replicas: usize::from(of.1),
        };
        Ok(Self {
            processes: Processes::start(service, file, all)?,
            config,
            _scratch: scratch,
        })
    }
}

/// Where clients of a process connect.
pub fn address(process: &ProcessSection) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, process.redis_port.unwrap_or_default()))
}

//! A service whose processes are all on this host.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use super::processes::{One, Processes, Service};
use crate::demo::ports::free_range;
use crate::demo::scratch::Scratch;

/// The configuration of a service whose processes are all on this host.
pub trait OnThisHost: Sized {
    /// The names of the directories of votes and of states, below the directory.
    const DIRECTORIES: [&'static str; 2];

    /// As a file.
    fn file(&self) -> Result<String, String>;

    /// Its processes.
    fn processes(&self) -> Vec<One>;
}

/// Running processes, and what they keep until this is dropped.
pub struct Local<C> {
    pub config: C,
    pub processes: Processes,
    _scratch: Scratch,
}

impl<C: OnThisHost> Local<C> {
    /// Starts them. It needs so many ports; `make` has the first of them, and a directory.
    pub fn start(
        service: Service,
        ports: u16,
        make: impl FnOnce(u16, &Path) -> C,
    ) -> Result<Self, String> {
        let failed = |error: io::Error| format!("its directory: {error}");
        let scratch = Scratch::with_own_interrupt().map_err(failed)?;
        let port = free_range(ports).ok_or("there are not so many free ports")?;
        let config = make(port, scratch.path());
        for name in C::DIRECTORIES {
            fs::create_dir(scratch.path().join(name)).map_err(failed)?;
        }
        let file = scratch.path().join("rota.toml");
        fs::write(&file, config.file()?).map_err(failed)?;
        Ok(Self {
            processes: Processes::start(service, file, config.processes())?,
            config,
            _scratch: scratch,
        })
    }
}

/// The address at which clients of a process connect.
pub fn local(port: Option<u16>) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port.unwrap_or_default()))
}

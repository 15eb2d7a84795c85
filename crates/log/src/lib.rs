//! Shared logs: many writers, and one order across all of them (Benz et al. 2014, §6.2).
//!
//! | module or type | contents |
//! |---|---|
//! | [`machine`] | the logs and their commands: the state machine, without I/O |
//! | [`store`] | entries, on the disk and of late in memory |
//! | [`replicated`] | both together, as a machine that is replicated |
//! | [`redis`] | the commands and replies of clients of Redis' streams, without I/O |
//! | [`LogProcess`] | a process: a replica, its store, its clients |
//! | [`LogConfig`] | the configuration of the processes |

#![forbid(unsafe_code)]

mod config;
#[cfg(test)]
#[path = "../../core/tests/golden/mod.rs"]
mod golden;
pub mod machine;
pub mod mutants;
mod process;
pub mod redis;
pub mod replicated;
pub mod store;

pub use config::{ConfigError, LogConfig, LogSection, ProcessSection};
pub use process::{LogProcess, StartError};

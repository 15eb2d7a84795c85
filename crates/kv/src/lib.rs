//! A key-value store in partitions, each of which several processes have: one machine to its users (Benz et al. 2014, §6.1).
//!
//! | module or type | contents |
//! |---|---|
//! | [`store`] | the state of a partition, and its commands: the state machine, without I/O |
//! | [`changes`] | the recent changes of keys, for watchers, without I/O |
//! | [`outlook`] | the condition under which an answer may be told, without I/O |
//! | [`redis`] | the commands and replies of Redis' clients, as operations of that machine, without I/O |
//! | [`Kv`] | a process: a replica, its clients, its way to the other processes |
//! | [`KvConfig`] | the configuration of the processes |
//! | [`moving`] | the move of slots from one partition to another, without I/O |
//! | [`Map`] | the partition of each of the 16,384 slots of keys |

#![forbid(unsafe_code)]

pub mod changes;
mod config;
#[cfg(test)]
#[path = "../../core/tests/golden/mod.rs"]
mod golden;
mod map;
pub mod moving;
pub mod mutants;
pub mod outlook;
mod process;
pub mod redis;
mod slots;
pub mod store;

pub use config::{ConfigError, KvConfig, KvSection, PartitionSection, ProcessSection};
pub use map::{Map, MapError, Partition, Partitions};
pub use process::{Kv, StartError};
pub use rota_front::{SealError, TlsSection, access};
pub use slots::Slots;

//! A key-value store in partitions, each of which several processes have: one machine to its users (Benz et al. 2014, §6.1).
//!
//! | where | what |
//! |---|---|
//! | [`store`] | what a partition keeps, and what commands do to it: the state machine, without I/O |
//! | [`outlook`] | when what was answered may be told, without I/O |
//! | [`redis`] | what Redis' clients say and hear, as operations of that machine, without I/O |
//! | [`Kv`] | a process: a replica, its clients, its way to the other processes |
//! | [`KvConfig`] | what processes are told |
//! | [`moving`] | how slots get from one partition to another, without I/O |
//! | [`Map`] | which partition has which of the 16,384 slots of keys |

#![forbid(unsafe_code)]

mod config;
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

//! Processes of a service of logs on real sockets and real disks, and clients of Redis' streams.

mod cluster;
#[path = "../../../kv/tests/common/mod.rs"]
mod common;
mod disk;
#[cfg(feature = "mutants")]
mod mutants;
mod readers;
mod streams;

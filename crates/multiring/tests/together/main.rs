//! Processes of several rings, whole: engines, their leveling, learners and applications that keep states, over links that break and disks that forget
//! what was not synced, with processes that are killed, stopped, or lose their states.

#![cfg_attr(
    feature = "mutants",
    allow(dead_code, unused_imports, reason = "not all is used with them")
)]

mod accounts;
mod changes;
#[path = "../../../paxos/tests/uring/disk.rs"]
#[allow(dead_code, reason = "not all is used here")]
mod disk;
mod host;
mod judge;
#[path = "../../../paxos/tests/uring/links.rs"]
#[allow(dead_code, reason = "not all is used here")]
mod links;
#[cfg(feature = "mutants")]
mod mutants;
mod observing;
mod partitions;
mod runs;
mod situations;
mod trace;
mod trouble;
mod turn;
mod world;

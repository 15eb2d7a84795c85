//! U-Ring Paxos, and Ring Paxos, whole: engines, links that break, disks that are slow and forget what was not synced, processes that are
//! killed one by one or all at once.

#![cfg_attr(
    feature = "mutants",
    allow(dead_code, unused_imports, reason = "not all is used with them")
)]

mod accounts;
mod alone;
mod archive;
mod base;
mod behind;
#[cfg(not(feature = "mutants"))]
mod buffers;
mod charters;
mod cut;
mod cut_links;
mod datagrams;
mod devices;
mod disk;
mod foundations;
mod full;
#[cfg(not(feature = "mutants"))]
mod golden;
#[cfg(not(feature = "mutants"))]
mod hostile;
mod judge;
mod links;
mod lists;
mod logs;
mod lost;
#[cfg(feature = "mutants")]
mod mutants;
mod node;
mod observers;
mod outside;
mod passed;
mod rate;
mod resumed;
mod rounds;
mod rules;
mod runs;
mod seats;
#[cfg(not(feature = "mutants"))]
mod shared;
mod slow;
#[cfg(not(feature = "mutants"))]
mod tables;
mod trouble;
mod turns;
mod world;
mod worse;

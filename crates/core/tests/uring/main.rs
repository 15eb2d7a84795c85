//! U-Ring Paxos whole: engines, links that break, disks that are slow and forget what was not synced, processes that are
//! killed one by one or all at once.

mod disk;
mod judge;
mod links;
mod node;
mod runs;
mod trouble;
mod world;

//! All schedules of a few real engines, up to a depth: the datagram that arrives next, the timer that fires, losses and
//! deaths.
//!
//! A state is the engines, the datagrams on their way between them, their disks and the events that their applications
//! have seen. From each state the search makes every step that may happen:
//!
//! * a datagram **arrives**. Each link has two lanes, for data and for tokens with all else; within a
//!   lane nothing overtakes, unless [`Options::reorder`] is set;
//! * a **write** becomes durable;
//! * a node's next **timer** fires. Time is a node's own: its clock goes on to its next timer, and those
//!   of the others stand still. So any node may be any amount of time ahead of the others. When
//!   something else could happen as well the timer is *early*, and [`Options::early`] of them may be;
//! * a datagram is **lost**, [`Options::losses`] in all;
//! * a node **dies**, [`Options::crashes`] in all, and at any later time starts again. Datagrams on their way to it,
//!   and records that it had not been told to be durable, are lost.
//!
//! All that a process does at one input, its outputs and its deliveries, is one step. States are told apart by a hash
//! of 64 bits: of each engine's fingerprint, in which times count from now, of the datagrams on their way, and of all
//! that each application has seen, as the right deliveries depend on it. Nothing else is merged, so a state that is
//! passed by has the future of one that was looked at.
//!
//! Checked in each state: the online properties of `rota-check`, at most one token of each ring that
//! would be taken, one membership for each ring. And from a share of the states on, that all come
//! together on one ring with all messages delivered when nothing more goes wrong.

mod judge;
mod node;
pub mod paxos;
mod report;
mod search;
mod seen;
mod settle;
mod start;
mod state;

pub use report::{Report, Violation};
pub use search::explore;
pub use start::Start;

use rota_ring::Protocol;

/// The options of a search.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The ring.
    pub protocol: Protocol,
    /// Nodes.
    pub nodes: usize,
    /// The state that the search starts from.
    pub start: Start,
    /// Steps in a row, at most.
    pub depth: u32,
    /// Datagrams that may be lost.
    pub losses: u32,
    /// Nodes that may die.
    pub crashes: u32,
    /// Timers that may fire though something else could happen.
    pub early: u32,
    /// Datagrams of one link may overtake each other.
    pub reorder: bool,
    /// Distinct states after which the search ends.
    pub states: u64,
    /// From one of so many states on it is looked whether all come together.
    pub settle: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            protocol: Protocol::Accelerated,
            nodes: 2,
            start: Start::Heard,
            depth: 30,
            losses: 0,
            crashes: 0,
            early: 0,
            reorder: false,
            states: 10_000_000,
            settle: 64,
        }
    }
}

impl Options {
    /// Checks that a search with these options is possible.
    ///
    /// # Errors
    /// A line for people.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=8).contains(&self.nodes) {
            return Err("a search is of 1 to 8 nodes".to_owned());
        }
        if self.settle == 0 || self.states == 0 {
            return Err("at least one state has to be looked at".to_owned());
        }
        if self.depth > 10_000 {
            return Err("a search is at most 10000 steps deep".to_owned());
        }
        Ok(())
    }
}

//! Several rings on the same hosts, in one order: hosts that carry an engine of each ring they are on, with its leveling,
//! and the merge above all of them.
//!
//! A host has one network card, one port and one processor for all of its rings, and a disk and links for each. It works as
//! `rota_node::rings` does: each ring that has something to do does some of it, then the rings tell each other of their
//! values, and the merge tells them what it waits for. A delivery is what the merge hands out.
//!
//! The engine is U-Ring Paxos: each host pays for messages of links, for deliveries and submissions, and for nothing that
//! the merge or an idle ring's turn may take.
//!
//! | file | holds |
//! |---|---|
//! | `setup` | the hosts, the rings on them, the loads |
//! | `host` | a machine: its rings, the merge above them |
//! | `world` | the loop, and the stages of a run |
//! | `turn` | one turn of a machine |
//! | `output` | what an engine asks for |
//! | `meter` | delays, throughput and work by ring |
//! | `judge` | one order at all hosts |

mod host;
mod judge;
mod meter;
mod output;
mod setup;
mod turn;
mod world;

pub use meter::{RingRun, RingsRun};
pub use setup::{OneRing, RingsSetup};

/// Simulates several rings.
///
/// # Panics
/// If a ring has no hosts or acceptors, or its rank twice; or if its load is one that only a token can time
/// ([`Load::Visit`](crate::Load::Visit)).
pub fn run_rings(setup: &RingsSetup) -> RingsRun {
    world::World::new(setup).run()
}

//! The engines that ship, in virtual time, on a network with bandwidth: how fast they would be on machines that nobody
//! here has.
//!
//! `rota-sim` has the world of faults, in which anything may fail and every property is checked. This is the world of
//! performance: nothing fails but what a queue does not hold and what a setup wants lost, and everything takes its time.
//! Frames wait in the queue of a network card and in that of a switch's port, and a processor pays for each call,
//! datagram, byte, token and delivery. An engine is driven by the law of `rota_core::contract`, as `rota-node` drives it.
//!
//! [`Setup`] says what is simulated, [`run`] does it, and [`Run`] is what was measured. One setup is the whole run: the
//! same setup gives the same figures, to the last digit.
//!
//! | file | holds |
//! |---|---|
//! | `setup` | the network, the machines, the engine, the load |
//! | `agenda` | what happens next |
//! | `queue` | things that come at a time each |
//! | `wire` | network cards, the switch, and frames between them |
//! | `links` | the room of reliable links on the same ports |
//! | `disk` | the time at which records are durable |
//! | `engines` | the engines, as this world needs to know them |
//! | `source` | the times at which a node's application submits |
//! | `meter` | delays, throughput, and the order at each node |
//! | `node` | a machine: sockets, processor, application |
//! | `world`, `step`, `output` | the loop of the world; one turn of a machine; what its engine asks for |
//! | `rings` | several rings on the same hosts, in one order |
//! | `tape` | the way of each frame, for drawings |

#![forbid(unsafe_code)]

mod agenda;
mod disk;
mod engines;
mod links;
mod meter;
mod node;
mod output;
mod queue;
mod rings;
mod setup;
mod source;
mod step;
mod tape;
mod wire;
mod world;

pub use meter::{Delays, Run, Traffic};
pub use rings::{OneRing, RingRun, RingsRun, RingsSetup, run_rings};
pub use setup::{
    Costs, DiskPlan, EnginePlan, Generated, Interface, LinkPlan, Load, LossPlan, RingPlan, Setup,
    Span, WirePlan,
};
pub use tape::{Passage, Tape};

use engines::build;
use world::World;

/// Simulates a setup.
///
/// # Panics
/// If the setup has no nodes, or an engine cannot run with its settings.
pub fn run(setup: &Setup) -> Run {
    build(setup, Runs { tape: false }).0
}

/// Simulates a setup, and writes down the way of each frame in the measured time.
///
/// # Panics
/// As [`run`].
pub fn run_taped(setup: &Setup) -> (Run, Tape) {
    build(setup, Runs { tape: true })
}

/// Runs a world of whichever engine.
struct Runs {
    tape: bool,
}

impl engines::Visitor for Runs {
    type Result = (Run, Tape);

    fn visit<E: engines::Simulated>(self, setup: &Setup, engines: Vec<E>) -> (Run, Tape) {
        World::new(setup, engines, self.tape).run()
    }
}

//! The time at which answers may be told.

use rota_core::contract::NodeId;

#[cfg(feature = "mutants")]
mod mutants;
// Broken versions are switched on for the whole process.
#[path = "../common/rings.rs"]
mod rings;
#[cfg(not(feature = "mutants"))]
mod rules;
mod world;

fn node(number: u16) -> NodeId {
    NodeId::new(number).expect("not 0")
}

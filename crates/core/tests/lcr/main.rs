//! The data path LCR: searched through, and in a network with slow and breaking links.

mod model;
mod network;
mod plan;
mod ring;
mod runs;

#[cfg(not(feature = "mutants"))]
mod all_schedules;
#[cfg(feature = "mutants")]
mod mutants;
#[cfg(not(feature = "mutants"))]
mod networks;

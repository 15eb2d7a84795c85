//! The data path LCR: searched through, and in a network with slow and breaking links.
#![cfg_attr(
    feature = "mutants",
    allow(dead_code, reason = "not all is used with them")
)]

#[cfg(not(feature = "mutants"))]
mod model;
mod network;
mod plan;
#[cfg(not(feature = "mutants"))]
#[path = "../../../core/tests/property/mod.rs"]
mod property;
mod ring;
mod runs;

#[cfg(not(feature = "mutants"))]
mod all_schedules;
#[cfg(not(feature = "mutants"))]
mod bytes;
#[cfg(feature = "mutants")]
mod mutants;
#[cfg(not(feature = "mutants"))]
mod networks;

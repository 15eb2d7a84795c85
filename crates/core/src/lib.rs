//! Rota's ordering protocols as plain state machines.
//!
//! Nothing in here opens a socket, reads a clock, starts a thread, touches a file or draws a random
//! number of its own: time and randomness are arguments, and whatever has to happen in the world is
//! an [`contract::Output`] that a driver carries out. The same inputs give the same outputs, bit for
//! bit, which is what makes the protocols testable.
//!
//! Start with [`contract`]: its two enums are everything an engine can be told and can ask for. The protocols
//! themselves are `rota-ring` (the Accelerated Ring and the original Totem ring), `rota-views` (primary views, FastCast, LCR)
//! and `rota-paxos` (the roles of Paxos, Ring Paxos); here is what they share. [`primary`] and [`groups`] are layers over any
//! engine.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod buffer;
pub mod burst;
pub mod bytes;
pub mod contract;
mod counted;
mod engine_name;
pub mod fair;
pub mod fingerprint;
pub mod groups;
pub mod invariants;
pub mod mutants;
pub mod pack;
pub mod primary;
pub mod random;
pub mod resume;
pub mod shares;
pub mod timing;
pub mod wire;

pub use engine_name::EngineName;

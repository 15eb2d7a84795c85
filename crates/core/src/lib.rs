//! Rota's ordering protocols as plain state machines.
//!
//! Nothing in here opens a socket, reads a clock, starts a thread, touches a file or draws a random
//! number of its own: time and randomness are arguments, and whatever has to happen in the world is
//! an [`contract::Output`] that a driver carries out. The same inputs give the same outputs, bit for
//! bit, which is what makes the protocols testable.
//!
//! Start with [`contract`]: its two enums are everything an engine can be told and can ask for.
//! [`ring`] holds the Accelerated Ring and the original Totem ring; [`primary`] and
//! [`groups`] are layers over any of them.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod contract;
mod counted;
pub mod fastcast;
mod fingerprint;
pub mod groups;
mod invariants;
pub mod lcr;
pub mod membership;
pub mod mutants;
pub mod pack;
pub mod paxos;
pub mod primary;
pub mod random;
pub mod ring;
pub mod uring;
pub mod views;
pub mod wire;

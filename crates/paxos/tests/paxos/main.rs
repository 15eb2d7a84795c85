//! The consensus of Ring Paxos in a world where anything may be lost, late, twice or in another order, where processes
//! die between any two steps, with what they had not made durable, and where stores are lost and replaced.
#![cfg_attr(
    feature = "mutants",
    allow(dead_code, reason = "not all is used with them")
)]

#[cfg(not(feature = "mutants"))]
mod by_hand;
mod judge;
mod life;
#[cfg(feature = "mutants")]
mod mutants;
mod ranges;
mod rules;
#[cfg(not(feature = "mutants"))]
mod runs;
mod site;
mod world;

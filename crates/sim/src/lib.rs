//! Runs Rota's engines in virtual time, under faults drawn from a seed.
//!
//! The engines are those of `rota-core`, driven as `rota-net` drives them; clocks, disks, applications
//! and the network are simulated, in one thread. One seed is the whole run: the same seed gives the
//! same events, bit for bit. First anything may fail; then the world heals, and has to come to rest.
//!
//! [`plan`] has the draws of a seed; [`world`] runs a plan; [`observe`] lets checkers watch.

pub mod campaign;
pub mod checks;
pub mod explore;
pub mod groups;
pub mod observe;
pub mod plan;
pub mod ring;
pub mod rng;
pub mod trace;
pub mod uring;
pub mod view_checks;
pub mod views;
pub mod world;

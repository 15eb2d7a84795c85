//! What must hold of Rota's engines, as predicates over what processes saw.
//!
//! [`event`] is what is looked at, whether it comes from a trace file or from a simulation.

pub mod event;

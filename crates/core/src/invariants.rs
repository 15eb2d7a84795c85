//! Invariants of the machines, checked after each input in builds with debug assertions.
//!
//! Each machine states its invariants in one function, `check`, beside its state; an engine calls those of its parts,
//! and its own, when it has handled an input. A check whose time grows with the state runs only while the state is
//! small ([`FEW`]): the same code runs with small and with large states, and tests and simulations have both.
//!
//! Mutants break rules on purpose, and a property has to find them. While a mutant is on nothing is checked here,
//! unless it is one that no property finds and an invariant has to.

use crate::mutants;

/// The most items that are looked at with each input.
pub const FEW: usize = 64;

/// Whether machines check themselves.
pub fn are_checked() -> bool {
    mutants::keeps_checks() || cfg!(debug_assertions) && !mutants::any()
}

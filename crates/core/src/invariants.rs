//! What always holds of the machines, looked at after each input in builds with debug assertions.
//!
//! Each machine states it in one function, `check`, beside its state; an engine calls those of its parts, and its own, when
//! it has done what an input asks for. What would take long where there is much is looked at while there is little
//! ([`FEW`]): the same code runs in both cases, and tests and simulations have both.
//!
//! Mutants break rules on purpose, and a property has to find them: while one is on, nothing is checked, unless it is one that no property finds and an
//! invariant has to.

use crate::mutants;

/// No more of something than can be looked at with each input.
pub const FEW: usize = 64;

/// Whether machines check themselves.
pub fn are_checked() -> bool {
    mutants::keeps_checks() || cfg!(debug_assertions) && !mutants::any()
}

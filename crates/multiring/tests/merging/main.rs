//! The merge of several rings, their leveling and subscriptions.

mod check;
#[cfg(feature = "mutants")]
mod mutants;
mod rule;
#[cfg(not(feature = "mutants"))]
mod rules;
#[cfg(not(feature = "mutants"))]
mod schedules;
mod traces;
mod world;

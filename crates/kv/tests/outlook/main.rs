//! When what was answered may be told.

#[cfg(feature = "mutants")]
mod mutants;
mod rules;
mod world;

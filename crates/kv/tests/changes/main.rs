//! What watchers are told of changes.

#[cfg(feature = "mutants")]
mod mutants;
// Broken versions are switched on for the whole process.
mod world;

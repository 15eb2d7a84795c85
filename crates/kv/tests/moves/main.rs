//! Slots that get from one partition to another while clients go on.

#[cfg(feature = "mutants")]
mod mutants;
mod world;

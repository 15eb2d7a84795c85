//! Moves of slots from one partition to another while clients go on.

mod answers;
mod disturb;
mod ends;
#[cfg(feature = "mutants")]
mod mutants;
#[path = "../common/rings.rs"]
mod rings;
#[path = "../common/run.rs"]
mod run;
mod world;

//! The events of processes, and the lines of a trace: what a process writes down of itself, and a checker reads.
//!
//! [`event`] has the events of processes and of their clients. [`TraceWriter`] writes them as lines. Nothing here judges
//! or reads: that is `rota-check`'s.

mod client_fields;
pub mod event;
pub mod name;
mod write;

pub use write::TraceWriter;

//! What a service's logs are, and what commands do to them: without I/O. Every replica that applies the same commands has the same logs.

mod apply;
mod log;
mod operation;
mod outcome;
mod producers;
mod state;

pub use apply::{Applied, Effect, encode_entry};
pub use log::{Limits, Log};
pub use operation::{Append, Batch, Keep, Operation, Pack};
pub use outcome::{Answer, Fault, Outcome};
pub use state::Logs;

/// A position in a log: dense, from 1.
pub type Position = u64;

/// An entry has so many bytes at most.
pub const MOST_ENTRY_BYTES: usize = 768 << 10;
/// What is ordered at once has so many bytes at most: all of it is one message.
pub const MOST_BATCH_BYTES: usize = 1 << 20;
/// And so many entries and operations.
pub const MOST_OPERATIONS: usize = 4_096;
/// So many batches are in a message at most.
pub const MOST_PACKED: usize = 1_024;
/// A log's name has so many bytes at most.
pub const MOST_NAME_BYTES: usize = 1_024;
/// So many logs are there at most.
pub const MOST_LOGS: usize = 1 << 20;

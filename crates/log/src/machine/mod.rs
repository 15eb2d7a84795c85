//! The logs of a service and their commands: a state machine without I/O. Replicas that apply the same commands have
//! the same logs.

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

/// The bytes of an entry, at most.
pub const MOST_ENTRY_BYTES: usize = 768 << 10;
/// The bytes of a batch, at most: all of it is in one message.
pub const MOST_BATCH_BYTES: usize = 1 << 20;
/// The number of entries and operations of a batch, at most.
pub const MOST_OPERATIONS: usize = 4_096;
/// The number of batches in a message, at most.
pub const MOST_PACKED: usize = 1_024;
/// The bytes of a log's name, at most.
pub const MOST_NAME_BYTES: usize = 1_024;
/// The number of logs, at most.
pub const MOST_LOGS: usize = 1 << 20;

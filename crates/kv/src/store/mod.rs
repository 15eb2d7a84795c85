//! What a partition keeps, and what commands do to it. The same commands in the same order make the same state: time is what commands say it is.

mod action;
mod apply;
mod batch;
mod frozen;
mod look;
mod moves;
mod outcome;
mod pack;
mod state;
mod step;
mod value;

pub use action::{Action, Life, Only, OnlyLife};
pub use batch::{Batch, Operation, Test, Wanted};
pub use frozen::FrozenStore;
pub use moves::Snapshot;
pub use outcome::{Answer, Answered, Fault, Found, Kind, Outcome};
pub(crate) use outcome::{put_version, take_version};
pub use pack::{MOST_PACKED, Pack};
pub use state::{Store, Witness};
pub use step::{Copied, Freeze, MoveName, Step};
pub use value::{Entry, Value};

/// A key may have so many bytes.
pub const MOST_KEY_BYTES: usize = 64 << 10;
/// A value may have so many bytes, and so may a field with its name.
pub const MOST_VALUE_BYTES: usize = 768 << 10;
/// All fields of a key may have so many bytes.
pub const MOST_FIELDS_BYTES: usize = 64 << 20;
/// What is ordered at once may have so many bytes, and so many operations.
pub const MOST_BATCH_BYTES: usize = 1 << 20;
/// See above.
pub const MOST_OPERATIONS: usize = 65_536;
/// A range looks at so many keys at most.
pub const MOST_LOOKED: usize = 10_000;
/// A range is answered with about so many bytes at most.
pub const MOST_RANGE_BYTES: usize = 512 << 10;
/// What one message is answered by a partition has about so many bytes at most, beside what each of its batches may have: each replica makes it.
pub const MOST_ANSWER_BYTES: usize = 3 << 20;
/// A batch may be answered with so much, whatever else is in its message.
pub const LEAST_ANSWER_BYTES: usize = 64 << 10;

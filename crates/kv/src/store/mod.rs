//! The state of a partition, and its commands. The same commands in the same order make the same state: time is a part
//! of commands.

mod action;
mod apply;
mod arrived;
mod batch;
mod changed;
mod frozen;
mod keys;
mod look;
mod moves;
mod outcome;
mod pack;
mod sizes;
mod state;
mod step;
mod value;
mod witness;

pub use action::{Action, Life, Only, OnlyLife};
pub use batch::{Batch, Operation, Test, Wanted};
pub use changed::{Change, Changed, MOST_TOLD_BYTES, MOST_TOLD_TOGETHER, Told};
pub use frozen::FrozenStore;
pub use look::Looking;
pub use moves::Snapshot;
pub use outcome::{Answer, Answered, Fault, Found, Kind, Outcome};
pub(crate) use outcome::{put_version, take_version};
pub use pack::{MOST_PACKED, Pack};
pub use state::Store;
pub use step::{Copied, Freeze, MoveName, Step};
pub use value::{Entry, Value};
pub use witness::Witness;

/// The bytes of a key, at most.
pub const MOST_KEY_BYTES: usize = 64 << 10;
/// The bytes of a value, at most, and of a field with its name.
pub const MOST_VALUE_BYTES: usize = 768 << 10;
/// The bytes of all fields of a key, at most.
pub const MOST_FIELDS_BYTES: usize = 64 << 20;
/// The bytes of a batch, at most.
pub const MOST_BATCH_BYTES: usize = 1 << 20;
/// The number of operations of a batch, at most.
pub const MOST_OPERATIONS: usize = 65_536;
/// The number of keys that a range looks at, at most.
pub const MOST_LOOKED: usize = 10_000;
/// The bytes of the answer to a range, at most, about.
pub const MOST_RANGE_BYTES: usize = 512 << 10;
/// The bytes of a partition's answer to one message, at most, about, beside [`LEAST_ANSWER_BYTES`] for each of its
/// batches, and beside what its batches have that [`MOST_TOGETHER_BYTES`] is for: each replica makes the answer.
pub const MOST_ANSWER_BYTES: usize = 3 << 20;
/// The bytes of a partition's answer to a batch that writes, and of which other partitions do a part, at most: whatever
/// else is in its message, as it cannot be left undone in one partition only. The sender has found out before that it
/// has no more than [`MOST_ANSWER_BYTES`], by what keys had then. A partition bounds no sum of these: it is the sender
/// that puts only so many of them in one message.
pub const MOST_TOGETHER_BYTES: usize = 2 * MOST_ANSWER_BYTES;
/// The bytes that the answer to a batch may have in any case, whatever else is in its message.
pub const LEAST_ANSWER_BYTES: usize = 64 << 10;
/// The number of ended keys, at most, that a command removes: a command takes no longer for others' sake.
const MOST_SWEPT: usize = 32;
/// The same for a message without commands.
const MOST_SWEPT_IDLE: usize = 1_024;
/// Milliseconds by which clocks of two processes may be apart. Where the next sender's clock is behind by no more than
/// that, less is told to be left of lives, or it would be more than was set. Where it is behind by more, one of them was
/// wrong.
const MOST_APART: u64 = 1_000;
/// The number of keys that a message settles, at most, of slots that have come or gone.
const MOST_SETTLED: usize = 512;
/// The same for a message without commands.
const MOST_SETTLED_IDLE: usize = 4_096;

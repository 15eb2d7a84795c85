//! The store of records, on directories that fail and forget, and on real ones.

// The directory that fails takes the numbers of errors from `libc`, of which this needs these.
extern crate self as libc;

#[path = "../../../storage/tests/sim/mod.rs"]
mod sim;

mod faults;
mod model;
mod real;
mod world;

pub(crate) const EIO: i32 = 5;
pub(crate) const ENOSPC: i32 = 28;
pub(crate) const EROFS: i32 = 30;

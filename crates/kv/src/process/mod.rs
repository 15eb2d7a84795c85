//! A process of the store: a replica of a partition, its clients, and its way to the other processes.

mod client;
mod desk;
mod door;
mod facts;
mod frame;
mod gateway;
mod held;
mod info;
mod lane;
mod link;
mod listen;
mod local;
mod looks;
mod maps;
mod metrics;
mod moves;
mod order;
mod pulse;
mod question;
mod ready;
mod sealed;
mod start;
mod times;
mod walks;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

pub use sealed::SealError;
pub use start::{Kv, StartError};

/// Milliseconds since 1970.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_millis() as u64)
}

/// What is behind a mutex, also where a thread that held it has panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

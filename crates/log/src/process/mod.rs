//! A process: a replica of all logs, its store, and its clients.

mod answer;
mod around;
mod client;
mod door;
mod info;
mod lag;
mod merging;
mod metrics;
mod names;
mod pulse;
mod reading;
mod server;
mod source;
mod start;
mod streams;
mod waiters;
mod way;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use start::{LogProcess, StartError};

/// What is behind a mutex, also where a thread that held it has panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

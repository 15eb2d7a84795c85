//! What clients of Redis' protocol meet in front of a service, whichever it is.
//!
//! | where | what |
//! |---|---|
//! | [`command`] | the table of a service's commands, and their arguments |
//! | [`session`] | what is between a client and its server, and concerns no service |
//! | [`access`] | users, and what they may do |
//! | [`Guests`] | where clients connect, and what is counted of them |
//! | [`Sealer`], [`Stream`] | their connections, by TLS where the file says so |
//! | [`Held`] | what is kept for clients, all together |
//! | [`lane`] | what waits to be ordered |
//! | [`metrics`] | `GET /metrics` |

#![forbid(unsafe_code)]

pub mod access;
pub mod command;
pub mod glob;
mod guests;
mod held;
pub mod lane;
pub mod local;
pub mod metrics;
mod sealed;
pub mod session;
mod times;
mod who;
mod wire;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

pub use guests::{Counted, Guests};
pub use held::{Held, Share};
pub use local::Local;
pub use sealed::{SealError, Sealer, Stream, TlsSection};
pub use times::Times;
pub use who::{Hello, Who};
pub use wire::Wire;

/// Milliseconds since 1970.
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_millis() as u64)
}

/// What is behind a mutex, also where a thread that held it has panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! The part of a server for clients of Redis' protocol that all services share.
//!
//! | module or type | contents |
//! |---|---|
//! | [`command`] | the table of a service's commands, and their arguments |
//! | [`session`] | the commands of a connection, which concern no service |
//! | [`access`], [`Roster`] | users, and their permissions |
//! | [`Guests`] | the listeners for clients, and their counters |
//! | [`Sealer`], [`Stream`] | their connections, by TLS where the file says so |
//! | [`Held`] | the memory that is kept for all clients together |
//! | [`lane`] | the queue of commands that wait to be ordered |
//! | [`metrics`] | `GET /metrics` |
//! | [`place`] | places in the order, as text |
//! | [`replica`] | the metrics of a service's replica |
//! | [`rings`] | the rings below a service, for its operator |

#![forbid(unsafe_code)]

pub mod access;
pub mod command;
pub mod glob;
mod guests;
mod held;
pub mod lane;
pub mod local;
pub mod metrics;
pub mod place;
pub mod replica;
pub mod rings;
mod roster;
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
pub use roster::{ReloadError, Roster};
pub use sealed::{SealError, Sealer, Stream, TlsSection};
pub use times::Times;
pub use who::{Hello, Who};
pub use wire::Wire;

/// Milliseconds since 1970.
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_millis() as u64)
}

/// Locks a mutex, also after a thread that held it has panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! A process of the store: a replica of a partition, its clients, and its way to the other processes.

mod client;
mod desk;
mod door;
mod facts;
mod frame;
mod gateway;
mod info;
mod link;
mod listen;
mod looks;
mod maps;
mod metrics;
mod moves;
mod order;
mod pulse;
mod question;
mod start;
mod walks;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::map::Partitions;
use crate::store::{Answer, MOST_PACKED};
use gateway::OrderError;

pub use start::{Kv, StartError};

/// What is behind a mutex, also where a thread that held it has panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What waits to be ordered.
type Lane = rota_front::lane::Lane<Partitions, Said>;
type Item = rota_front::lane::Item<Partitions, Said>;
type Teller = rota_front::lane::Teller<Said>;
/// What each of a batch's partitions says.
type Said = Result<Vec<Answer>, OrderError>;

fn lane() -> Arc<Lane> {
    Arc::new(Lane::new(MOST_PACKED, || Err(OrderError::Busy)))
}

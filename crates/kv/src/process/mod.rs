//! A process of the store: a replica of a partition, its clients, and its links to the other processes.

mod client;
mod clock;
mod desk;
mod door;
mod error;
mod facts;
mod frame;
mod full;
mod gateway;
mod info;
mod link;
mod listen;
mod looks;
mod maps;
mod metrics;
mod moves;
mod order;
mod outbox;
mod peers;
mod pipeline;
mod pulse;
mod question;
mod recent;
mod start;
mod walks;
mod watching;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::map::Partitions;
use crate::store::{Answer, MOST_PACKED};
use gateway::OrderError;

pub use error::StartError;
pub use start::Kv;

/// Locks a mutex, also after a thread that held it has panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The queue of batches that wait to be ordered.
type Lane = rota_front::lane::Lane<Partitions, Said>;
type Item = rota_front::lane::Item<Partitions, Said>;
type Teller = rota_front::lane::Teller<Said>;
/// The answer of each partition of a batch.
type Said = Result<Vec<Answer>, OrderError>;

fn lane() -> Arc<Lane> {
    Arc::new(Lane::new(MOST_PACKED, || Err(OrderError::Busy)))
}

//! What all clients of a process have in common.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rota_front::Guests;
use rota_storage::acceptor::FileDir;

use super::lag::Lag;
use super::source::Source;
use super::waiters::Waiters;
use super::way::Way;
use crate::replicated::View;
use crate::store::Store;

/// See the module's page.
pub(super) struct Server {
    pub(super) guests: Arc<Guests>,
    pub(super) way: Way,
    pub(super) store: Arc<Store<FileDir>>,
    pub(super) source: Arc<Source>,
    pub(super) view: View,
    pub(super) waiters: Waiters,
    /// How late the thread of the clients is.
    pub(super) lag: Lag,
    /// So many other processes have all logs, too.
    pub(super) others: usize,
    /// What clients had ordered together.
    pub(super) batches: AtomicU64,
    /// Of those, how many were told that nobody knows.
    pub(super) unknown: AtomicU64,
    /// Entries that were told, and their bytes.
    pub(super) told: AtomicU64,
    pub(super) told_bytes: AtomicU64,
}

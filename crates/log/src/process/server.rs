//! The state that all clients of a process share.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rota_front::Guests;
use rota_storage::acceptor::FileDir;

use super::lag::Lag;
use super::scrub::Scrubbed;
use super::source::Source;
use super::waiters::Waiters;
use super::way::Way;
use crate::replicated::View;
use crate::store::Store;

/// The state that all clients of a process share.
pub(super) struct Server {
    pub(super) guests: Arc<Guests>,
    pub(super) way: Way,
    pub(super) store: Arc<Store<FileDir>>,
    pub(super) source: Arc<Source>,
    /// What was read to look for damage.
    pub(super) scrubbed: Arc<Scrubbed>,
    pub(super) view: View,
    pub(super) waiters: Waiters,
    /// The lag of the thread of the clients.
    pub(super) lag: Lag,
    /// The number of other processes, which have all logs, too.
    pub(super) others: usize,
    /// The number of batches that were ordered.
    pub(super) batches: AtomicU64,
    /// The number of batches whose outcome is not known.
    pub(super) unknown: AtomicU64,
    /// The number of messages and batches that were ordered and could not be read.
    pub(super) unreadable: Arc<AtomicU64>,
    /// Entries that were told, and their bytes.
    pub(super) told: AtomicU64,
    pub(super) told_bytes: AtomicU64,
}

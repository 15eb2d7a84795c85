//! What a process says of itself, in `INFO` and in its metrics.

use std::sync::atomic::Ordering::SeqCst;

use super::gateway::Gateway;
use super::link::Link;
use crate::map::Partitions;
use crate::store::Store;

/// As it is now. While a state is taken in, there are no keys.
pub(super) struct Facts {
    pub(super) keys: usize,
    /// Of those, how many have an end.
    pub(super) ending: usize,
    pub(super) bytes: usize,
    pub(super) is_open: bool,
    pub(super) is_full: bool,
    /// Other processes that it is connected to, and that there are.
    pub(super) connected: usize,
    pub(super) configured: usize,
    /// Answers that wait for these partitions.
    pub(super) waiting: usize,
    pub(super) waits_for: Partitions,
}

impl Facts {
    pub(super) fn of(gateway: &Gateway) -> Self {
        let look = |store: &Store| (store.len(), store.ending(), store.bytes());
        let (keys, ending, bytes) = gateway.orders.read(look).unwrap_or_default();
        let (waiting, waits_for) = gateway.desk.waits();
        Self {
            keys,
            ending,
            bytes,
            is_open: gateway.orders.is_open(),
            is_full: gateway.is_full.load(SeqCst),
            connected: gateway
                .links
                .values()
                .filter(|link| Link::is_up(link))
                .count(),
            configured: gateway.links.len(),
            waiting,
            waits_for,
        }
    }
}

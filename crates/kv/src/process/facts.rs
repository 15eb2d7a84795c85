//! The facts about a process, for `INFO` and its metrics.

use std::sync::atomic::Ordering::SeqCst;

use super::gateway::Gateway;
use super::link::Link;
use crate::map::Partitions;
use crate::store::Store;

/// The facts at a moment. While the replica takes in a state, there are no keys.
pub(super) struct Facts {
    pub(super) keys: usize,
    /// The number of keys that have an end.
    pub(super) ending: usize,
    pub(super) bytes: usize,
    /// The slots of its partition, and the number of slots of all partitions that are frozen, since they move.
    pub(super) slots: usize,
    pub(super) frozen: usize,
    /// The epoch of the map: the number of moves of slots, and 1.
    pub(super) epoch: u64,
    pub(super) is_open: bool,
    pub(super) is_full: bool,
    /// The number of other processes that are connected, and of those that are configured.
    pub(super) connected: usize,
    pub(super) configured: usize,
    /// The number of answers that wait, and the partitions for which they wait.
    pub(super) waiting: usize,
    pub(super) waits_for: Partitions,
}

impl Facts {
    pub(super) fn of(gateway: &Gateway) -> Self {
        let look = |store: &Store| {
            let frozen = store.frozen().map_or(0, |frozen| frozen.slots.len());
            (store.len(), store.ending(), store.bytes(), frozen)
        };
        let (keys, ending, bytes, frozen) = gateway.orders.read(look).unwrap_or_default();
        let map = gateway.maps.now();
        let (waiting, waits_for) = gateway.desk.waits();
        Self {
            keys,
            ending,
            bytes,
            slots: map.slots_of(gateway.own).len(),
            frozen,
            epoch: map.epoch(),
            is_open: gateway.ready.is_open(),
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

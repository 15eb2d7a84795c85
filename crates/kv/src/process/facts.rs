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
    /// Slots of its partition, and how many of all nobody writes to, since they move.
    pub(super) slots: usize,
    pub(super) frozen: usize,
    /// How often slots have moved, with the beginning.
    pub(super) epoch: u64,
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

//! The facts about a process, for `INFO` and its metrics.

use super::gateway::Gateway;
use crate::map::Partitions;
use crate::store::Store;

/// The facts at a moment. While the replica takes in a state, there are no keys.
pub(super) struct Facts {
    pub(super) keys: usize,
    /// The number of keys that have an end.
    pub(super) ending: usize,
    pub(super) bytes: usize,
    /// Whether the keys of slots that have moved are where they belong.
    pub(super) is_settled: bool,
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
            let keys = (store.len(), store.ending(), store.bytes());
            (keys, frozen, store.is_settled())
        };
        let ((keys, ending, bytes), frozen, is_settled) =
            gateway.orders.read(look).unwrap_or_default();
        let map = gateway.maps.now();
        let (waiting, waits_for) = gateway.desk.waits();
        let (connected, configured) = gateway.peers.connected();
        Self {
            keys,
            ending,
            bytes,
            is_settled,
            slots: map.slots_of(gateway.own).len(),
            frozen,
            epoch: map.epoch(),
            is_open: gateway.peers.is_ready(),
            is_full: gateway.peers.is_full(gateway.own),
            connected,
            configured,
            waiting,
            waits_for,
        }
    }
}

//! The ring beside a data path.

use rota_ring::RingConfig;

use super::WORD_BYTES;

/// The limit, in bytes, of a view member's messages to the others that wait for the ring beside.
const BACKLOG_BYTES: usize = 4 << 20;

/// The configuration of the ring that only says which nodes are there, beside a data path with the settings of `ring`. It
/// carries the messages of view members to each other when the view changes, and nothing of applications.
pub fn ring_beside(ring: &RingConfig) -> RingConfig {
    let mut beside = ring.clone();
    beside.message_bytes = WORD_BYTES;
    beside.backlog_bytes = BACKLOG_BYTES;
    beside.trace = false;
    beside
}

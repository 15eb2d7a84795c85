//! The settings for what clients do not read.

use super::sums;
use crate::config::DaemonConfig;

/// What may wait for clients, and what becomes of those for which too much does.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueuePolicy {
    /// The bytes that may wait for one client.
    pub queue_bytes: usize,
    /// The bytes that may be kept for all clients together.
    pub queues_bytes: u64,
    /// The size of the memory for the frames of a client of this host; 0: there is none.
    pub memory_bytes: usize,
    /// Senders may be made to wait for a client.
    pub may_throttle: bool,
    /// The longest time for which they wait, in milliseconds.
    pub throttle_ms: u32,
    /// Clients may be made to skip.
    pub may_skip: bool,
}

impl QueuePolicy {
    pub fn of(config: &DaemonConfig) -> Self {
        Self {
            queue_bytes: config.client_queue_bytes,
            // The largest messages of two clients always fit.
            queues_bytes: config
                .queues_bytes
                .max(2 * sums::SHARES * config.client_queue_bytes as u64),
            memory_bytes: config.client_memory_bytes,
            may_throttle: config.slow_clients.may_throttle(),
            throttle_ms: config.throttle_ms,
            may_skip: config.slow_clients.may_skip(config.throttle_then),
        }
    }
}

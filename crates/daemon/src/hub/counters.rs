//! The counters of clients.

/// Counters of clients since the start of the daemon.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Counters {
    /// Clients let in.
    pub connected: u64,
    /// Clients let in that get their frames through memory.
    pub with_memory: u64,
    /// Clients not let in: for their name, or for want of room.
    pub refused: u64,
    /// Clients that did not say in time who they are.
    pub silent: u64,
    /// Clients that sent what is no request.
    pub garbled: u64,
    /// Clients disconnected because they did not read.
    pub slow: u64,
    /// Clients not let in: nothing allows them to connect.
    pub not_allowed: u64,
    /// Joins, messages and questions of clients without the right.
    pub requests_not_allowed: u64,
    /// Peers that asked for the status of the daemon without the right.
    pub admins_not_allowed: u64,
    /// Warnings to clients that read too slowly.
    pub lagging: u64,
    /// Times that a client was made to skip.
    pub skipped: u64,
    /// Clients disconnected because new rules do not let them connect.
    pub dismissed: u64,
    /// Memberships ended because new rules do not let a client be in the group.
    pub memberships_ended: u64,
    /// Times that others were made to wait for a client.
    pub throttling: u64,
    /// The time of all throttles that are over, in microseconds.
    pub throttling_us: u64,
    /// Clients for whom senders have waited long enough.
    pub throttled_long: u64,
    /// Messages of clients that waited for a client of some daemon.
    pub held: u64,
    /// The time that these messages waited, in microseconds.
    pub held_us: u64,
}

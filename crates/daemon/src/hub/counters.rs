//! What is counted of clients.

/// Counters, for people.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Counters {
    /// Clients let in.
    pub connected: u64,
    /// Of these, those that are told things through memory.
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
    /// Joins, messages and questions of clients that may not.
    pub requests_not_allowed: u64,
    /// Those who wanted to know how the daemon is and may not.
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
    /// For how long, in microseconds, of all that are over.
    pub throttling_us: u64,
    /// Clients for whom others have waited long enough.
    pub throttled_long: u64,
    /// Messages of clients that waited for a client of some daemon.
    pub held: u64,
    /// For how long these waited, in microseconds.
    pub held_us: u64,
}

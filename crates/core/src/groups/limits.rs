//! The limits of what is kept for clients, and the errors beyond them.

use core::fmt;
use core::net::IpAddr;

use super::message::PIECE_BYTES;

/// The limits of what is kept for clients. Each daemon has its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Clients of this daemon.
    pub clients: usize,
    /// Groups that the clients of this daemon are in, all together: bounds what daemons tell each other.
    pub memberships: usize,
    /// Groups that one client is in.
    pub client_memberships: usize,
    /// Groups that the clients of one owner are in, all together.
    pub owner_memberships: usize,
    /// Bytes of a client's requests that have not come back in the order. One larger request fits
    /// when there is no other.
    pub backlog_bytes: usize,
    /// Bytes of the application in one message. Messages that are larger than `backlog_bytes` are sent in parts; this
    /// number of their bytes waits for all clients together, or one message.
    pub payload_bytes: usize,
    /// Requests of all clients handed to the engine that have not come back, at most: these are handed over a second
    /// time when the configuration changes.
    pub window: usize,
    /// Bytes of each message in which daemons tell each other what they know, and of each part of a large
    /// message, but for the last: at most [`PIECE_BYTES`], and at least 1.
    pub piece_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            clients: 4096,
            memberships: 16_384,
            client_memberships: 1024,
            owner_memberships: 4096,
            backlog_bytes: 256 << 10,
            payload_bytes: 128 << 10,
            window: 1024,
            piece_bytes: PIECE_BYTES,
        }
    }
}

/// An owner of clients: its clients share limits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Owner {
    /// A user of this host.
    User(u32),
    /// The clients from this address.
    Address(IpAddr),
}

/// The reason for which a request of a client was not taken. Nothing of the request was kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestError {
    /// There is no such connection.
    NotConnected,
    /// Another client of this daemon has that name.
    NotUnique,
    /// Too much of this client is on its way: ask again later.
    Full,
    /// The daemon has as many clients, or its clients, those of this owner or this one are in as many groups, as they may.
    TooMany,
    /// The message is too large.
    TooLarge {
        /// The limit that was passed, in bytes.
        limit: usize,
    },
    /// A message needs from 1 to 100 destinations.
    Destinations,
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotConnected => f.write_str("not connected"),
            Self::NotUnique => f.write_str("another client of this daemon has that name"),
            Self::Full => f.write_str("too much is on its way; ask again later"),
            Self::TooMany => f.write_str("the daemon takes no more of these"),
            Self::TooLarge { limit } => write!(f, "a message may have at most {limit} bytes"),
            Self::Destinations => f.write_str("a message needs from 1 to 100 destinations"),
        }
    }
}

impl core::error::Error for RequestError {}

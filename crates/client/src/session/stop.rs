//! Why a call that waits comes back without what it waited for.

use std::io;

use crate::error::{ConnectionLost, RequestError, SendError};

/// Why waiting came to nothing.
#[derive(Debug)]
pub enum Stop {
    TimedOut,
    /// More than this may not lie unread.
    Unread(usize),
    Lost(ConnectionLost),
}

impl From<ConnectionLost> for Stop {
    fn from(lost: ConnectionLost) -> Self {
        Self::Lost(lost)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Lost(error.into())
    }
}

impl From<Stop> for SendError {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::TimedOut => Self::WouldBlock,
            Stop::Unread(limit) => Self::Unread { limit },
            Stop::Lost(lost) => Self::Lost(lost),
        }
    }
}

impl From<Stop> for RequestError {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::TimedOut => Self::TimedOut,
            Stop::Unread(limit) => Self::Unread { limit },
            Stop::Lost(lost) => Self::Lost(lost),
        }
    }
}

//! The reasons for which a wait of a call fails.

use std::io;

use crate::error::{ConnectionLost, RequestError, SendError};

/// The reason for which a wait failed.
#[derive(Debug)]
pub enum Stop {
    TimedOut,
    /// This many bytes of events, the limit, lie unread.
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

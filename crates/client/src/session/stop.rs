//! The reasons for which a wait of a call fails.

use std::io;
use std::time::{Duration, Instant};

use crate::error::{ConnectionLost, RequestError, SendError};

/// The time for which a client reads on behind a deadline or a failed write, while there is something to read. A daemon
/// may send without end.
const LATE: Duration = Duration::from_millis(250);

/// Whether the time has come so long ago that nothing more is read.
pub fn is_long_over(deadline: Instant) -> bool {
    let over = Instant::now().checked_duration_since(deadline);
    over.is_some_and(|over| over >= LATE)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// The number is the promise, and not the constant: a daemon that sends without end keeps a call so much longer.
    #[test]
    fn a_quarter_of_a_second_behind_its_time_a_call_reads_nothing_more() {
        let now = Instant::now();
        let before = now.checked_sub(Duration::from_millis(250));
        assert!(is_long_over(before.expect("the clock is older than that")));
        assert!(!is_long_over(now + Duration::from_secs(3600)));
    }
}

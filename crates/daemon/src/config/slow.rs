//! What becomes of clients that read too slowly.

use std::fmt;

use serde::Deserialize;

use super::DaemonConfig;

/// What becomes of a client for which too much waits.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SlowClients {
    /// It is disconnected.
    #[default]
    Disconnect,
    /// What waits is dropped: it is told how much that was, and for everybody else it has disconnected and
    /// joined its groups again. One that cannot be told, like Spread's, is disconnected.
    Skip,
    /// Those who send to its groups, at all daemons, are made to wait before it comes to that; for so long as
    /// `throttle_ms` says, and then `throttle_then` says what becomes of it.
    Throttle,
}

/// What becomes of a client for which others have waited long enough.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThrottleThen {
    /// As with [`SlowClients::Disconnect`].
    #[default]
    Disconnect,
    /// As with [`SlowClients::Skip`].
    Skip,
}

impl DaemonConfig {
    /// Clients may be made to skip.
    pub(crate) fn may_skip(&self) -> bool {
        match self.slow_clients {
            SlowClients::Disconnect => false,
            SlowClients::Skip => true,
            SlowClients::Throttle => self.throttle_then == ThrottleThen::Skip,
        }
    }

    /// Others may be made to wait for a client.
    pub(crate) fn may_throttle(&self) -> bool {
        self.slow_clients == SlowClients::Throttle
    }
}

impl fmt::Display for SlowClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disconnect => "disconnect",
            Self::Skip => "skip",
            Self::Throttle => "throttle",
        })
    }
}

impl fmt::Display for ThrottleThen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disconnect => "disconnect",
            Self::Skip => "skip",
        })
    }
}

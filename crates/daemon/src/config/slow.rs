//! The policies for clients that read too slowly.

use std::fmt;

use serde::Deserialize;

/// The policy for a client for which too much waits.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SlowClients {
    /// The client is disconnected.
    #[default]
    Disconnect,
    /// The waiting messages are dropped: the client is told their number and bytes, and for everybody else it has
    /// disconnected and joined its groups again. A client that cannot be told, like Spread's, is disconnected.
    Skip,
    /// Senders to its groups, at all daemons, first wait for it, for at most `throttle_ms`; then `throttle_then`
    /// applies.
    Throttle,
}

/// The policy for a client for which senders have waited long enough.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThrottleThen {
    /// As with [`SlowClients::Disconnect`].
    #[default]
    Disconnect,
    /// As with [`SlowClients::Skip`].
    Skip,
}

impl SlowClients {
    /// Clients may be made to skip, at once or after a throttle.
    pub(crate) fn may_skip(self, then: ThrottleThen) -> bool {
        match self {
            Self::Disconnect => false,
            Self::Skip => true,
            Self::Throttle => then == ThrottleThen::Skip,
        }
    }

    /// Others may be made to wait for a client.
    pub(crate) fn may_throttle(self) -> bool {
        self == Self::Throttle
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

//! The reasons of a daemon that refuses, fails a request, or closes.

use std::fmt;

/// Why a daemon refuses a client, fails a request, or closes a connection: one number space for all
/// three. A client has to expect numbers it does not know.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Code {
    /// The two sides have no version of the protocol in common.
    Version,
    /// Another client of this daemon has the name: take another, or none and have one invented.
    NameInUse,
    /// The name is none.
    IllegalName,
    /// The daemon has as many clients as it may: try another daemon, or later.
    TooManyClients,
    /// The client may not do that.
    NotAllowed,
    /// The daemon is being stopped: try another, or later.
    ShuttingDown,
    /// Too much waited for this client: it has to take its events faster.
    TooSlow,
    /// The client sent bytes that are not the protocol.
    ProtocolError,
    /// The client sent more than its credit.
    CreditExceeded,
    /// The daemon takes no more of these: its clients are in as many groups as they may.
    Quota,
    /// A message is larger than the largest.
    TooLarge,
    /// The client did not say hello in time.
    TimedOut,
    /// The daemon cannot do it now, for a reason of its own: try later.
    Unavailable,
    /// A number of a later version.
    Other(u16),
}

impl Code {
    /// The number that frames carry.
    pub const fn number(self) -> u16 {
        match self {
            Self::Version => 1,
            Self::NameInUse => 2,
            Self::IllegalName => 3,
            Self::TooManyClients => 4,
            Self::NotAllowed => 5,
            Self::ShuttingDown => 6,
            Self::TooSlow => 7,
            Self::ProtocolError => 8,
            Self::CreditExceeded => 9,
            Self::Quota => 10,
            Self::TooLarge => 11,
            Self::TimedOut => 12,
            Self::Unavailable => 13,
            Self::Other(number) => number,
        }
    }

    /// The code of a number.
    pub const fn from_number(number: u16) -> Self {
        match number {
            1 => Self::Version,
            2 => Self::NameInUse,
            3 => Self::IllegalName,
            4 => Self::TooManyClients,
            5 => Self::NotAllowed,
            6 => Self::ShuttingDown,
            7 => Self::TooSlow,
            8 => Self::ProtocolError,
            9 => Self::CreditExceeded,
            10 => Self::Quota,
            11 => Self::TooLarge,
            12 => Self::TimedOut,
            13 => Self::Unavailable,
            other => Self::Other(other),
        }
    }

    /// Whether the same request may succeed later without anybody having changed it.
    pub const fn may_pass(self) -> bool {
        !matches!(
            self,
            Self::Version
                | Self::IllegalName
                | Self::NotAllowed
                | Self::ProtocolError
                | Self::CreditExceeded
                | Self::TooLarge
        )
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Version => "no version of the protocol in common",
            Self::NameInUse => "another client of this daemon has that name",
            Self::IllegalName => "not a name",
            Self::TooManyClients => "the daemon has as many clients as it may",
            Self::NotAllowed => "not allowed",
            Self::ShuttingDown => "the daemon is shutting down",
            Self::TooSlow => "the client did not take its events fast enough",
            Self::ProtocolError => "not the protocol",
            Self::CreditExceeded => "more was sent than the credit",
            Self::Quota => "the daemon takes no more of these",
            Self::TooLarge => "the message is too large",
            Self::TimedOut => "no hello in time",
            Self::Unavailable => "the daemon cannot do it now",
            Self::Other(number) => return write!(f, "code {number}"),
        })
    }
}

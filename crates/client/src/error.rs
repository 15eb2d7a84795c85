//! The errors of a client: one type for each operation.

use std::convert::Infallible;
use std::error::Error;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::{fmt, io};

use rota_core::groups::NameError;

use crate::protocol::{Code, DecodeError, VERSION};

/// The end of a connection. It is final: connect again, or use [`crate::Reconnecting`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ConnectionLost {
    /// The daemon closed it, and said why.
    Goodbye {
        /// Why.
        code: Code,
        /// Why, for people.
        text: String,
    },
    /// The daemon closed it without a word, or died; or this side closed it.
    Ended,
    /// The socket failed, or the stream was cut short: within a frame, or by TLS before the daemon said that it ends.
    Io(Arc<io::Error>),
    /// The daemon sent bytes that are not the protocol.
    Protocol(DecodeError),
    /// The daemon sent a frame that does not belong into a connection.
    Unexpected,
}

impl From<io::Error> for ConnectionLost {
    fn from(error: io::Error) -> Self {
        Self::Io(Arc::new(error))
    }
}

impl From<DecodeError> for ConnectionLost {
    fn from(error: DecodeError) -> Self {
        Self::Protocol(error)
    }
}

impl fmt::Display for ConnectionLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Goodbye { code, text } => {
                put_reason(f, "the daemon closed the connection", *code, text)
            }
            Self::Ended => f.write_str("the connection has ended"),
            Self::Io(error) => write!(f, "the connection failed: {error}"),
            Self::Protocol(error) => write!(f, "not the protocol: {error}"),
            Self::Unexpected => f.write_str("the daemon sent a frame that does not belong here"),
        }
    }
}

impl Error for ConnectionLost {}

/// Writes a failure and the daemon's reason; the daemon's words too, unless they say the same. They are shown to people,
/// often by a terminal: so what would tell that something is written as in a string of Rust.
fn put_reason(f: &mut fmt::Formatter<'_>, what: &str, code: Code, text: &str) -> fmt::Result {
    let reason = code.to_string();
    if text.is_empty() || text == reason {
        return write!(f, "{what}: {reason}");
    }
    write!(f, "{what}: {reason} (")?;
    for character in text.chars() {
        match character.is_control() {
            true => write!(f, "{}", character.escape_default())?,
            false => f.write_char(character)?,
        }
    }
    f.write_char(')')
}

/// The reason for which there is no connection.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// The name asked for is none.
    Name(NameError),
    /// The address is not loopback, and TCP protects nothing: use a Unix socket, or say
    /// [`crate::Builder::insecure`].
    Insecure(SocketAddr),
    /// One side does not take the other's certificate, or there is no TLS: why.
    Tls(String),
    /// The socket could not be connected, or failed.
    Io(io::Error),
    /// The daemon does not take this client.
    Refused {
        /// Why.
        code: Code,
        /// Why, for people.
        text: String,
    },
    /// The daemon chose a version that was not offered.
    Version(u16),
    /// The connection ended before the daemon answered.
    Lost(ConnectionLost),
    /// The daemon did not answer in time ([`crate::Builder::timeout`]).
    TimedOut,
}

impl ConnectError {
    /// Whether another attempt may succeed without anybody having changed a setting.
    pub const fn may_pass(&self) -> bool {
        match self {
            Self::Refused { code, .. } => code.may_pass(),
            Self::Io(_) | Self::TimedOut => true,
            Self::Lost(lost) => !matches!(
                lost,
                ConnectionLost::Protocol(_) | ConnectionLost::Unexpected
            ),
            Self::Name(_) | Self::Insecure(_) | Self::Tls(_) | Self::Version(_) => false,
        }
    }
}

impl From<NameError> for ConnectError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

impl From<io::Error> for ConnectError {
    fn from(error: io::Error) -> Self {
        #[cfg(feature = "tls")]
        if let Some(tls) = error.get_ref()
            && tls.is::<rustls::Error>()
        {
            return Self::Tls(tls.to_string());
        }
        Self::Io(error)
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => write!(f, "not a client's name: {error}"),
            Self::Insecure(address) => {
                write!(f, "{address} is not loopback, and TCP protects nothing")
            }
            Self::Tls(what) => write!(f, "no TLS: {what}"),
            Self::Io(error) => write!(f, "no connection: {error}"),
            Self::Refused { code, text } => put_reason(f, "refused", *code, text),
            Self::Version(version) => {
                write!(f, "the daemon speaks version {version}, not {VERSION}")
            }
            Self::Lost(lost) => lost.fmt(f),
            Self::TimedOut => f.write_str("the daemon did not answer in time"),
        }
    }
}

impl Error for ConnectError {}

/// Why a message was not sent. Nothing of it was.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SendError {
    /// A destination is none.
    Destination(NameError),
    /// A message needs from 1 to 100 destinations.
    Destinations,
    /// The payload is too large: split it.
    TooLarge {
        /// The limit that was passed, in bytes.
        limit: usize,
    },
    /// There is no credit now, and the call was not to wait.
    WouldBlock,
    /// While waiting for credit more arrived than may lie unread ([`crate::Builder::unread_bytes`]):
    /// take some events, then send again.
    Unread {
        /// The limit that was passed, in bytes.
        limit: usize,
    },
    /// There is no connection any more.
    Lost(ConnectionLost),
}

impl From<NameError> for SendError {
    fn from(error: NameError) -> Self {
        Self::Destination(error)
    }
}

impl From<Infallible> for SendError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl From<ConnectionLost> for SendError {
    fn from(lost: ConnectionLost) -> Self {
        Self::Lost(lost)
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Destination(error) => write!(f, "not a destination: {error}"),
            Self::Destinations => f.write_str("a message needs from 1 to 100 destinations"),
            Self::TooLarge { limit } => write!(f, "a message may have at most {limit} bytes"),
            Self::WouldBlock => f.write_str("there is no credit now"),
            Self::Unread { limit } => put_unread(f, *limit),
            Self::Lost(lost) => lost.fmt(f),
        }
    }
}

impl Error for SendError {}

fn put_unread(f: &mut fmt::Formatter<'_>, limit: usize) -> fmt::Result {
    write!(f, "{limit} bytes of events are unread: take some first")
}

/// Why a join, a leave or a list has no answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RequestError {
    /// The name is none of a group.
    Name(NameError),
    /// The daemon would not. Nothing has changed.
    Failed {
        /// Why.
        code: Code,
        /// Why, for people.
        text: String,
    },
    /// While waiting for the answer more arrived than may lie unread ([`crate::Builder::unread_bytes`]):
    /// take some events. The request may still take effect, and may be made again.
    Unread {
        /// The limit that was passed, in bytes.
        limit: usize,
    },
    /// The answer did not come in time ([`crate::Builder::timeout`]). The request may still take effect,
    /// and may be made again.
    TimedOut,
    /// There is no connection any more. The request may have taken effect, until the daemon noticed.
    Lost(ConnectionLost),
}

impl From<NameError> for RequestError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

impl From<ConnectionLost> for RequestError {
    fn from(lost: ConnectionLost) -> Self {
        Self::Lost(lost)
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => write!(f, "not a group: {error}"),
            Self::Failed { code, text } => put_reason(f, "failed", *code, text),
            Self::Unread { limit } => put_unread(f, *limit),
            Self::TimedOut => f.write_str("no answer in time"),
            Self::Lost(lost) => lost.fmt(f),
        }
    }
}

impl Error for RequestError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_not_said_twice() {
        let code = Code::NotAllowed;
        for (text, said) in [
            ("", "failed: not allowed"),
            ("not allowed", "failed: not allowed"),
            ("rule 2", "failed: not allowed (rule 2)"),
        ] {
            let text = text.to_owned();
            assert_eq!(RequestError::Failed { code, text }.to_string(), said);
        }
    }
}

//! The errors of reading bytes that are no frame, and of writing a frame that cannot be.

use std::fmt;

use rota_core::groups::NameError;

use super::Code;

/// The reason for which bytes are no frame. The connection they came from cannot go on: the bytes behind them have no
/// meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeError {
    /// The length of the frame is 0 or more than the limit.
    Length {
        /// The length it gives, in bytes.
        length: u32,
        /// The limit.
        limit: usize,
    },
    /// No frame of this direction has this kind.
    Kind(u8),
    /// The frame ends before its last field does.
    Short,
    /// Bytes, in this number, follow the frame's last field.
    Trailing(usize),
    /// A hello does not begin with `ROTA`.
    Magic,
    /// The lowest version of a hello is 0 or above its highest.
    Versions,
    /// No service has this number.
    Service(u8),
    /// A bit without a meaning is set.
    Flags(u8),
    /// A message cannot have this number of destinations.
    Destinations(u8),
    /// A client that has skipped cannot have missed messages of this number of groups.
    Groups(u32),
    /// A name is none.
    Name(NameError),
    /// A text is not UTF-8.
    Text,
    /// A node has the number 0.
    Node,
    /// No view has this cause.
    Cause(u8),
    /// A view's changed member does not fit its cause: the network changes none, all else one.
    Changed,
    /// A view's sets are not its members, each in one set; or not caused by the network, and has sets.
    Sets,
    /// The view has no member of this index.
    OwnIndex(u32),
}

impl DecodeError {
    /// The code by which a daemon tells the client.
    pub const fn code(&self) -> Code {
        match self {
            Self::Name(_) => Code::IllegalName,
            Self::Length { length: 1.., .. } => Code::TooLarge,
            _ => Code::ProtocolError,
        }
    }
}

impl From<NameError> for DecodeError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { length, limit } => {
                write!(
                    f,
                    "a frame of {length} bytes; it may have from 1 to {limit}"
                )
            }
            Self::Kind(kind) => write!(f, "there is no frame of kind {kind:#x} here"),
            Self::Short => f.write_str("the frame ends before its last field does"),
            Self::Trailing(bytes) => write!(f, "{bytes} bytes follow the frame's last field"),
            Self::Magic => f.write_str("a hello begins with ROTA"),
            Self::Versions => f.write_str("the lowest version is 0 or above the highest"),
            Self::Service(service) => write!(f, "there is no service {service}"),
            Self::Flags(flags) => write!(f, "flags {flags:#x} have bits that mean nothing"),
            Self::Destinations(count) => write!(f, "a message cannot have {count} destinations"),
            Self::Groups(count) => write!(f, "no client is in {count} groups"),
            Self::Name(error) => error.fmt(f),
            Self::Text => f.write_str("a text is not UTF-8"),
            Self::Node => f.write_str("no node has the number 0"),
            Self::Cause(cause) => write!(f, "there is no cause {cause}"),
            Self::Changed => f.write_str("the changed member does not fit the cause"),
            Self::Sets => f.write_str("the sets are not the members, each in one set"),
            Self::OwnIndex(index) => write!(f, "the view has no member {index}"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// The reason for which a frame cannot be written: a mistake of the caller. Nothing was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EncodeError {
    /// A list, or the whole frame, is longer than its number can say.
    TooLong,
    /// A message needs from 1 to 100 destinations.
    Destinations,
    /// The sets of a view are not its members, each in one set.
    Sets,
    /// The view has no member of that index.
    OwnIndex,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "longer than a frame can be",
            Self::Destinations => "a message needs from 1 to 100 destinations",
            Self::Sets => "the sets are not the members, each in one set",
            Self::OwnIndex => "the view has no member of that index",
        })
    }
}

impl std::error::Error for EncodeError {}

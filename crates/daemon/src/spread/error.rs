//! The reasons for refusing a client, for ending a session, and for an event that cannot be encoded.

use std::fmt;

use super::NameError;

/// Why a client is not taken: the one byte it gets before its socket closes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i8)]
pub enum Refusal {
    /// There are as many sessions as may be.
    Quota = -3,
    /// Its name is too long or has a character outside `$` to `~`.
    IllegalName = -5,
    /// Another client of this daemon has its name.
    NotUnique = -6,
    /// Its library is older than 3.1.0.
    Version = -7,
    /// The client did not pass, or did not choose, a required check.
    Auth = -9,
}

impl Refusal {
    /// The number clients know it by.
    pub const fn code(self) -> i8 {
        self as i8
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Quota => "there are as many sessions as may be",
            Self::IllegalName => "the client's name is too long or has an illegal character",
            Self::NotUnique => "another client has this name",
            Self::Version => "the client's library is too old",
            Self::Auth => "the client did not pass the checks that are asked for",
        })
    }
}

impl std::error::Error for Refusal {}

/// The reason for which bytes are no request. The session they came from cannot go on: the bytes behind them have no
/// meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestError {
    /// The type has half of the mark that tells the byte order.
    Mark(u32),
    /// The type asks for no service or request, or for more than one.
    Kind(u32),
    /// The type uses the bit of messages between daemons.
    DaemonsOnly(u32),
    /// The sender that the request names is not this session.
    Sender,
    /// The request counts more groups than a message may have, or a negative number of them.
    Groups(u32),
    /// The request is longer than messages may be, or its length is negative.
    Length(u32),
    /// The hint has bits that mean nothing.
    Hint([u8; 4]),
    /// A name in its list is none.
    Name(NameError),
    /// A join or leave has to name one group, a disconnect its own session.
    Target,
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mark(bits) => write!(f, "type {bits:#x} has half a mark of its byte order"),
            Self::Kind(bits) => write!(f, "type {bits:#x} asks for none or several things"),
            Self::DaemonsOnly(bits) => write!(f, "type {bits:#x} is for daemons only"),
            Self::Sender => f.write_str("the sender is not the session's own name"),
            Self::Groups(count) => write!(f, "{count} groups are more than a message may have"),
            Self::Length(bytes) => write!(f, "{bytes} bytes are more than a message may have"),
            Self::Hint(bytes) => write!(f, "hint {bytes:02x?} has bits that mean nothing"),
            Self::Name(error) => write!(f, "in the list of groups: {error}"),
            Self::Target => f.write_str("a join or leave has one group, a disconnect its session"),
        }
    }
}

impl std::error::Error for RequestError {}

impl From<NameError> for RequestError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

/// Why a session ended by what its client sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionError {
    /// The client was refused: send the bytes that wait, then close.
    Refused(Refusal),
    /// The client broke the protocol: close.
    Request(RequestError),
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => write!(f, "refused: {refusal}"),
            Self::Request(error) => write!(f, "not a request: {error}"),
        }
    }
}

impl std::error::Error for SessionError {}

impl From<Refusal> for SessionError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<RequestError> for SessionError {
    fn from(error: RequestError) -> Self {
        Self::Request(error)
    }
}

/// Why something cannot be told to a client. The daemon's own mistake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EncodeError {
    /// Its lists or data do not fit the numbers of a header.
    TooLong,
    /// No set of a view caused by the network holds the receiver.
    NotInView,
    /// The session is not open.
    Stage(WrongStage),
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => f.write_str("the message is longer than its header can say"),
            Self::NotInView => f.write_str("the receiver is in no set of the view"),
            Self::Stage(stage) => stage.fmt(f),
        }
    }
}

impl std::error::Error for EncodeError {}

/// A session was told something that does not belong to where it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WrongStage;

impl fmt::Display for WrongStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the session is at another stage")
    }
}

impl std::error::Error for WrongStage {}

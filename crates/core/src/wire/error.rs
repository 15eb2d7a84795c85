//! Reasons for which bytes are not a packet.

use core::fmt;

use super::VERSION;

/// The reason for which a datagram was refused. Each is counted; none is fatal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeError {
    /// It ends before its fields do.
    Short,
    /// It goes on after its last field.
    Trailing,
    /// It is of another version of the format.
    Version(u8),
    /// No such kind of packet.
    Kind(u8),
    /// No such service.
    Service(u8),
    /// A node id is 0.
    ZeroNode,
    /// A data packet without a sequence number.
    ZeroSeq,
    /// An incarnation of 2⁵³ or more.
    Incarnation,
    /// The members of a ring are not listed by ascending id.
    MembersNotAscending,
    /// A token whose fields contradict each other.
    Token(&'static str),
    /// A join whose fields contradict each other.
    Join(&'static str),
    /// A commit token whose fields contradict each other.
    Commit(&'static str),
    /// A FastCast control datagram whose fields contradict each other.
    Control(&'static str),
    /// A part of a value that does not fit into it.
    Part(&'static str),
    /// A frame whose records contradict each other.
    Frame(&'static str),
    /// A message between neighbours of a view's ring whose records contradict each other.
    Lcr(&'static str),
}

impl DecodeError {
    /// Whether the bytes are a datagram of an older or a newer program: the high half of the first byte names the
    /// family of formats, which all versions share, and the low half the version.
    pub fn is_other_version(self) -> bool {
        matches!(self, Self::Version(version) if version >> 4 == VERSION >> 4)
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => f.write_str("the datagram ends too early"),
            Self::Trailing => f.write_str("the datagram has bytes after its end"),
            Self::Version(version) => write!(f, "version {version} is not spoken here"),
            Self::Kind(kind) => write!(f, "there is no packet kind {kind}"),
            Self::Service(service) => write!(f, "there is no service {service}"),
            Self::ZeroNode => f.write_str("node id 0 is reserved"),
            Self::ZeroSeq => f.write_str("sequence numbers start at 1"),
            Self::Incarnation => f.write_str("an incarnation must be below 2^53"),
            Self::MembersNotAscending => f.write_str("members must be listed by ascending id"),
            Self::Token(what)
            | Self::Join(what)
            | Self::Commit(what)
            | Self::Control(what)
            | Self::Part(what)
            | Self::Frame(what)
            | Self::Lcr(what) => f.write_str(what),
        }
    }
}

impl core::error::Error for DecodeError {}

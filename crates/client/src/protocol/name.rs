//! The private names of clients, and the destinations of messages.

use std::fmt;
use std::str::FromStr;

use rota_core::groups::{ClientName, DaemonName, GroupName, NameError};

/// A client as others know it, written `#client#daemon`. Ordered by the client's name, then its
/// daemon's; members of a view come in an order of their own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrivateName {
    /// The name of the client at its daemon.
    pub client: ClientName,
    /// The name of its daemon.
    pub daemon: DaemonName,
}

impl PrivateName {
    /// Reads the text of a private name.
    pub(super) fn from_bytes(text: &[u8]) -> Result<Self, NameError> {
        let parts = text.strip_prefix(b"#").and_then(|rest| {
            let middle = rest.iter().position(|&byte| byte == b'#')?;
            Some((&rest[..middle], &rest[middle + 1..]))
        });
        let (client, daemon) = parts.ok_or(NameError::Private)?;
        Ok(Self {
            client: ClientName::from_bytes(client)?,
            daemon: DaemonName::from_bytes(daemon)?,
        })
    }
}

impl FromStr for PrivateName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::from_bytes(text.as_bytes())
    }
}

impl fmt::Display for PrivateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}#{}", self.client, self.daemon)
    }
}

impl fmt::Debug for PrivateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// The destination of a message.
///
/// Unlike [`rota_core::groups::Destination`] it names a client's daemon and not its node: only daemons know which node,
/// if any, has that name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Destination {
    /// To the members of a group.
    Group(GroupName),
    /// To one client. If there is none of that name, the message still goes to its other destinations.
    Client(PrivateName),
}

impl Destination {
    /// Reads the text `#client#daemon`, or else the name of a group.
    pub(super) fn from_bytes(text: &[u8]) -> Result<Self, NameError> {
        if text.first() == Some(&b'#') {
            PrivateName::from_bytes(text).map(Self::Client)
        } else {
            GroupName::from_bytes(text).map(Self::Group)
        }
    }
}

impl FromStr for Destination {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::from_bytes(text.as_bytes())
    }
}

impl From<GroupName> for Destination {
    fn from(name: GroupName) -> Self {
        Self::Group(name)
    }
}

impl From<PrivateName> for Destination {
    fn from(name: PrivateName) -> Self {
        Self::Client(name)
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group(name) => name.fmt(f),
            Self::Client(name) => name.fmt(f),
        }
    }
}

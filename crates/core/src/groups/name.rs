//! Names of groups, clients and daemons, and their text form for clients.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

use crate::contract::NodeId;

/// A name of at most `MOST` bytes: one or more of the characters `$` to `~`, so no space and no `#`.
///
/// The unused bytes are zero, which no name has: the derived order is the order of the texts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name<const MOST: usize> {
    bytes: [u8; MOST],
    len: u8,
}

/// Names a group.
pub type GroupName = Name<31>;

/// The name that a client gives itself: unique among the clients of its daemon.
pub type ClientName = Name<10>;

/// Names a daemon, in `#client#daemon`.
pub type DaemonName = Name<19>;

/// The reason for which a text is no name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NameError {
    /// No characters at all.
    Empty,
    /// More characters than such a name may have.
    TooLong {
        /// The most characters that it may have.
        limit: usize,
    },
    /// A character that is not one of `$` to `~`.
    Character,
    /// It begins like `#client#daemon` and does not go on so.
    Private,
    /// No daemon has this name.
    UnknownDaemon,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a name has at least one character"),
            Self::TooLong { limit } => write!(f, "the name may have at most {limit} characters"),
            Self::Character => f.write_str(
                "names consist of letters, digits and other printable ASCII characters, but for the space and ! \" #",
            ),
            Self::Private => f.write_str("the name of a client is written #client#daemon"),
            Self::UnknownDaemon => f.write_str("no daemon has this name"),
        }
    }
}

impl core::error::Error for NameError {}

impl<const MOST: usize> Name<MOST> {
    /// The most characters it may have.
    pub const MOST: usize = MOST;

    /// No name: before all names.
    pub(super) const NONE: Self = Self {
        bytes: [0; MOST],
        len: 0,
    };

    /// A name from its text.
    pub fn new(text: &str) -> Result<Self, NameError> {
        Self::from_bytes(text.as_bytes())
    }

    /// A name from its characters.
    pub fn from_bytes(text: &[u8]) -> Result<Self, NameError> {
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if text.len() > MOST {
            return Err(NameError::TooLong { limit: MOST });
        }
        if text.iter().any(|byte| !(b'$'..=b'~').contains(byte)) {
            return Err(NameError::Character);
        }
        let mut bytes = [0; MOST];
        bytes[..text.len()].copy_from_slice(text);
        let len = text.len() as u8;
        Ok(Self { bytes, len })
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// Its characters.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl<const MOST: usize> fmt::Display for Name<MOST> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<const MOST: usize> fmt::Debug for Name<MOST> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// The destination of a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Destination {
    /// To the members of a group.
    Group(GroupName),
    /// To one client.
    Client(ClientName, NodeId),
}

/// The names of the daemons: the same on all of them. One that is not listed is called by its number.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Directory(BTreeMap<NodeId, DaemonName>);

impl Directory {
    /// From the names as configured.
    pub fn new(names: impl IntoIterator<Item = (NodeId, DaemonName)>) -> Self {
        Self(names.into_iter().collect())
    }

    /// The name of a daemon.
    pub fn daemon(&self, node: NodeId) -> String {
        let listed = self.0.get(&node);
        listed.map_or_else(|| node.to_string(), ToString::to_string)
    }

    /// The daemon with this name.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        let mut listed = self.0.iter();
        if let Some((node, _)) = listed.find(|(_, listed)| listed.as_str() == name) {
            return Some(*node);
        }
        let node = NodeId::new(name.parse().ok()?)?;
        (self.daemon(node) == name).then_some(node)
    }

    /// The private name of a client: `#client#daemon`.
    pub fn private(&self, client: ClientName, node: NodeId) -> String {
        format!("#{client}#{}", self.daemon(node))
    }

    /// Reads a destination: `#client#daemon`, or else the name of a group.
    pub fn destination(&self, text: &str) -> Result<Destination, NameError> {
        let Some(private) = text.strip_prefix('#') else {
            return GroupName::new(text).map(Destination::Group);
        };
        let (client, daemon) = private.split_once('#').ok_or(NameError::Private)?;
        let client = ClientName::new(client)?;
        let node = self.node(daemon).ok_or(NameError::UnknownDaemon)?;
        Ok(Destination::Client(client, node))
    }
}

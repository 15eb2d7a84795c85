//! What clients of a process saw of their groups.
//!
//! A client is a connection, named by its private group (`#name#daemon`). Its events are written by the
//! process it is connected to, in the order in which it is given them: a message or a view that waits
//! for a slow client has its place in its stream already. Views are written whether or not the client
//! takes membership messages.
//!
//! A connection ends with [`ClientSaw::Disconnect`] or with its process. What comes after it under the
//! same name is another connection, a member of nothing. A client that was made to skip something counts
//! as disconnected and joined again: `Disconnect`, and then the views that take it in again. Over engines with primary
//! views alone it stays the same, and `Excluded` and `Included` stand where it may have missed something.

use rota_core::contract::{ConfigurationKind, MessageId, RingId, Service};

use super::regular_of;

/// Something that a client saw or did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientEvent {
    /// Which client, by its private group.
    pub client: String,
    /// What.
    pub saw: ClientSaw,
}

/// What a client saw or did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClientSaw {
    /// Its request to join a group was accepted.
    Join(String),
    /// Its request to leave a group was accepted.
    Leave(String),
    /// The connection is over: closed, broken, or cut because the client was too slow.
    Disconnect,
    /// Its message was accepted.
    Send {
        /// The message.
        post: Post,
        /// Whether the sender wants no copy of its own.
        discard: bool,
    },
    /// A message was given to it: once, if it is a member of several of the groups.
    Deliver(Post),
    /// A view of a group that it is a member of.
    View(GroupView),
    /// Until the next view, what is delivered is promised of those only who stay with it.
    Transition {
        /// The group.
        group: String,
        /// The view that ends.
        gid: Gid,
    },
    /// It is no member of the group any more, as it asked.
    SelfLeave(String),
    /// Its process is in no view of processes: until the next of these it is given nothing.
    Excluded,
    /// Its process is in a view again.
    Included {
        /// It has missed what was delivered meanwhile.
        missed: bool,
    },
}

/// A message of a client to groups.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Post {
    /// Which message: clients' messages are numbered by the process of their sender, on their own or as
    /// the messages that carry them, if each carries one.
    pub message: MessageId,
    /// To which groups, private ones included.
    pub groups: Vec<String>,
    /// The guarantee it asks for.
    pub service: Service,
    /// The first 64 bits of the SHA-256 of its payload.
    pub hash: u64,
}

/// Names a view of a group. It grows from view to view: first by the regular configuration, then by the
/// transitional one that ends it, in which each part of a broken group numbers on its own, then by the
/// index.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Gid {
    /// The configuration of processes in which the view was made.
    pub conf: ConfigurationKind,
    /// Counts the group's views there.
    pub index: u64,
}

impl Gid {
    const fn key(self) -> (RingId, Option<RingId>, u64) {
        let new = match self.conf {
            ConfigurationKind::Regular(_) => None,
            ConfigurationKind::Transitional { new, .. } => Some(new),
        };
        (regular_of(self.conf), new, self.index)
    }
}

impl PartialOrd for Gid {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Gid {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// Why a group has another view.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cause {
    /// A client joined: the one set holds it.
    Join,
    /// A client left: the one set holds it.
    Leave,
    /// A client is gone: the one set holds it.
    Disconnect,
    /// The configuration of processes changed: the sets are those of members who come together from one
    /// view, and together they are all members.
    Network,
}

impl Cause {
    /// As traces name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Join => "join",
            Self::Leave => "leave",
            Self::Disconnect => "disconnect",
            Self::Network => "network",
        }
    }
}

/// Who is in a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupView {
    /// Which group.
    pub group: String,
    /// Which of its views.
    pub gid: Gid,
    /// Why it differs from the one before.
    pub cause: Cause,
    /// Its members, in the same order everywhere.
    pub members: Vec<String>,
    /// See [`Cause`].
    pub vs_sets: Vec<Vec<String>>,
}

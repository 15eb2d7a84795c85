//! The events of the clients of a process and of their groups.
//!
//! A client is a connection, named by its private group (`#name#daemon`). Its events are written by the
//! process it is connected to, in the order in which it is given them: a message or a view that waits
//! for a slow client has its place in its stream already. Views are written whether or not the client
//! takes membership messages.
//!
//! A connection ends with [`ClientSaw::Disconnect`] or with its process. A later event under the same name is of
//! another connection, a member of nothing. A client that was made to skip events counts as disconnected and joined
//! again: `Disconnect`, and then the views that take it in again. Over engines with primary views alone it stays the
//! same, and `Excluded` and `Included` stand where it may have missed something.

use rota_core::contract::{ConfigurationKind, MessageId, RingId, Service};

use super::regular_of;

/// An event of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientEvent {
    /// The client, by its private group.
    pub client: String,
    /// The event.
    pub saw: ClientSaw,
}

/// The kinds of events that a client saw or caused.
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
        /// True if the sender wants no copy of its own.
        discard: bool,
    },
    /// A message was given to it, once even if the client is a member of several of the groups.
    Deliver(Post),
    /// A view of a group that it is a member of.
    View(GroupView),
    /// Until the next view, deliveries are promised only of the members that stay with this client.
    Transition {
        /// The group.
        group: String,
        /// The view that ends.
        gid: Gid,
    },
    /// The client is no member of the group any more, as it asked.
    SelfLeave(String),
    /// Its process is in no view of processes: the client is given nothing until the process is in one again.
    Excluded,
    /// Its process is in a view again.
    Included {
        /// The client has missed the messages that were delivered meanwhile.
        missed: bool,
    },
}

/// A message of a client to groups.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Post {
    /// The name of the message: clients' messages are numbered by the process of their sender, on their own or as the
    /// messages that carry them, if each carries one.
    pub message: MessageId,
    /// The groups that it is for, private ones included.
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
    /// The number of the view among the group's views there.
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

/// The cause of another view of a group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cause {
    /// A client joined: the one set holds it.
    Join,
    /// A client left: the one set holds it.
    Leave,
    /// A client is gone: the one set holds it.
    Disconnect,
    /// The configuration of processes changed: each set has members that come together from one view, and together the
    /// sets have all members.
    Network,
}

impl Cause {
    /// The name in traces.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Join => "join",
            Self::Leave => "leave",
            Self::Disconnect => "disconnect",
            Self::Network => "network",
        }
    }
}

/// The members of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupView {
    /// The group.
    pub group: String,
    /// The name of the view.
    pub gid: Gid,
    /// The cause of the view.
    pub cause: Cause,
    /// Its members, in the same order everywhere.
    pub members: Vec<String>,
    /// See [`Cause`].
    pub vs_sets: Vec<Vec<String>>,
}
